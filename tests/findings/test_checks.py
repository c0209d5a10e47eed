"""Every check: fine on a host in good order, and on one that is not it says what is wrong, with the numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cotenant.finding import Finding
from cotenant.findings import CHECKS, Answer, ask_all
from cotenant.findings.checks import EVERY_SUITE
from cotenant.findings.checks.devices import ecc, foreign_processes, modes, persistence, power_cap, present
from cotenant.findings.checks.host import (
    even_speed,
    foreign_load,
    free_memory,
    governor,
    nodes,
    shared_memory,
    siblings,
    swap,
    turbo,
    virtual_machine,
)
from cotenant.findings.checks.isolation import backend, container, other_suites, slices
from cotenant.findings.checks.jobs import belongs, device_self_test, free_disk, job_input, lapack, packages, torch
from cotenant.findings.facts import Facts, Isolation, JobNeeds, SelfTest
from cotenant.isolation.plan import plan
from cotenant.machine.cpu import Clocking, Speed
from cotenant.machine.load import Load, Spender
from cotenant.machine.nvidia import DeviceProcess
from cotenant.machine.space import Disk, HostMemory, SharedMemory
from cotenant.machine.virtual import Virtual
from cotenant.text import gib, listed
from findings.hosts import DISK, HOLDS_ALL, LOOSE, TESTED, asked, board, host, said, server
from machine.invented import GIB, device, machine

Case = tuple[Any, dict[str, Any], str, str, str]
NMS = "RuntimeError: operator torchvision::nms does not exist"
REFUSED = Finding("not_isolated", "error", "Isolation is required.", "Run as root.")
TIGHT = Finding("no_plan", "error", "9 tenants do not fit.", "Use fewer.")
PYTHON = DeviceProcess(77, "python", 2 * GIB)
MPS = DeviceProcess(5, "nvidia-cuda-mps-server", None)


def clocks(**changes: Any) -> Clocking:
    fields: dict[str, Any] = {"driver": "", "governors": (), "preferences": (), "capped": (), "boost": None}
    return Clocking(**fields | changes)


def after_test(**changes: Any) -> dict[str, Any]:
    fields = {name: getattr(TESTED, name) for name in TESTED.__slots__}
    return {"self_test": SelfTest(**fields | changes)}


def boards(**changes: Any) -> dict[str, Any]:
    """A fault of the second of two devices."""
    return {"devices": (board(0), board(1, **changes))}


FAULTS: list[Case] = [
    (backend, {"isolation": Isolation("", (), (REFUSED,))}, "not_isolated", "error", "required"),
    (backend, {"isolation": LOOSE}, "not_enforced", "warning", "memory, swap, pids"),
    (slices, {"plan": None, "plan_refusal": TIGHT}, "no_plan", "error", "9 tenants"),
    (slices, {"plan": plan(server(), 3)}, "devices_shared", "warning", "3 tenants"),
    (siblings, {"plan": plan(server(), 4, policy="contiguous")}, "siblings_split", "warning", "physical cores"),
    (nodes, {"plan": plan(machine(nodes=2, cores=3), 3)}, "nodes_straddled", "warning", "more than one"),
    (container, {"machine": server(without=(1,))}, "container_limits", "info", "15 of 16 processors"),
    (container, {"machine": server(memory_bytes=32 * GIB)}, "container_limits", "info", "32.00 GiB of 64.00 GiB"),
    (container, {"machine": server(quota=2.5)}, "container_limits", "info", "the time of 2.5 processors"),
    (container, {"machine": server(quota=2.5)}, "processor_quota", "warning", "2.5"),
    (other_suites, {"isolation": Isolation("v1", elsewhere=(Path("/c/7-8-9"),))}, "run_elsewhere", "warning", "7-8-9"),
    (governor, {"clocking": clocks(governors=("powersave",))}, "governor", "warning", "powersave"),
    (governor, {"clocking": clocks(governors=("performance", "schedutil"))}, "governor", "warning", "schedutil"),
    (
        governor,
        {"clocking": clocks(driver="intel_pstate", governors=("powersave",), preferences=("power",))},
        "governor",
        "warning",
        "powersave, power",
    ),
    (
        governor,
        {"clocking": clocks(governors=("performance",), capped=(0, 1, 2))},
        "frequency_capped",
        "warning",
        "0-2",
    ),
    (turbo, {"clocking": clocks(boost=True)}, "boost", "info", "boost"),
    (foreign_load, {"load": Load(1.0, 1)}, "foreign_load", "warning", "1 of 16"),
    (foreign_load, {"load": Load(40.0, 40)}, "foreign_load", "warning", "keeps 16 of 16 processors"),
    (
        foreign_load,
        {"load": Load(1.0, 1, 1.4, (Spender(7, "make", 0.98),))},
        "foreign_load",
        "warning",
        "make (pid 7, 98 %)",
    ),
    (virtual_machine, {"virtual": Virtual("KVM", "")}, "virtual_machine", "info", "KVM"),
    (even_speed, {"speed": Speed(54.0, 97.0)}, "speed_uneven", "warning", "1.8 times"),
    (virtual_machine, {"stolen_share": 0.02}, "steal", "warning", "2.0 %"),
    (free_memory, {"memory": HostMemory(64 * GIB, 61 * GIB, 0, 0)}, "memory_taken", "warning", "61.00 GiB"),
    (free_memory, {"memory_left_bytes": 7 * GIB}, "memory_taken", "warning", "others leave 7.00 GiB: "),
    (
        free_memory,
        {"memory_left_bytes": 7 * GIB},
        "memory_taken",
        "warning",
        "bring the cgroup around us out of memory",
    ),
    (swap, {"memory": HostMemory(1, 1, GIB, GIB), "isolation": LOOSE}, "swap", "warning", "1.00 GiB of swap"),
    (swap, {"memory": HostMemory(1, 1, GIB, GIB), "isolation": None}, "swap", "warning", "1.00 GiB of swap"),
    (swap, {"memory": HostMemory(1, 1, 2 * GIB, GIB)}, "swap", "info", "1.00 GiB of swap are in use"),
    (shared_memory, {"shared": None}, "shared_memory", "warning", "no /dev/shm"),
    (shared_memory, {"shared": SharedMemory(64 << 20, 64 << 20)}, "shared_memory", "warning", "64 MiB free of 64 MiB"),
    (shared_memory, {"loader_bytes": 40 * GIB}, "shared_memory", "warning", "40.00 GiB"),
    (present, {"machine": server(devices=()), "driver": True}, "devices_unseen", "warning", "NVIDIA"),
    (
        foreign_processes,
        boards(processes=(PYTHON,)),
        "device_in_use",
        "warning",
        "python (pid 77, 2.00 GiB) on device 1",
    ),
    (foreign_processes, boards(processes=(DeviceProcess(9, "", None),)), "device_in_use", "warning", "not to be seen"),
    (modes, boards(mig_pending=True), "mig_pending", "warning", "devices 1"),
    (modes, boards(mig=True), "mig_mixed", "warning", "Devices 1"),
    (modes, boards(mps=True), "mps", "warning", "devices 1"),
    (modes, boards(processes=(MPS,)), "mps", "warning", "devices 1"),
    (modes, boards(compute_mode="prohibited"), "compute_mode", "error", "PROHIBITED"),
    (
        modes,
        boards(compute_mode="exclusive") | {"plan": plan(server(), 4)},
        "compute_mode",
        "error",
        "EXCLUSIVE",
    ),
    (ecc, boards(uncorrected_errors=3), "ecc_errors", "error", "3 on device 1"),
    (ecc, boards(repair_pending=True), "memory_repair_pending", "warning", "devices 1"),
    (ecc, boards(ecc=False), "ecc_differs", "warning", "devices 1"),
    (persistence, boards(persistent=False), "persistence", "warning", "devices 1"),
    (power_cap, boards(power_limit_w=200.0), "power_cap", "warning", "device 1 200 of 300 W"),
    (power_cap, boards(power_limit_w=250.0, power_default_w=250.0), "power_differs", "warning", "250 W, 300 W"),
    (power_cap, boards(slowed_by=("hardware", "heat")), "device_slowed", "warning", "device 1 by hardware and heat"),
    (free_disk, {"disks": (Disk(("data",), Path("/d"), GIB, True),)}, "disk_full", "warning", "1.00 GiB"),
    (free_disk, {"disks": (DISK, Disk(("records",), Path("/r"), 1, True))}, "disk_full", "error", "/r"),
    (free_disk, {"disks": (Disk(("records",), Path("/r"), GIB, False),)}, "not_writable", "error", "/r"),
    (free_disk, {"disks": (Disk(("data",), Path("/d"), 0, False),)}, "not_writable", "info", "/d"),
    (torch, after_test(died="ended (killed by SIGILL)"), "torch_broken", "error", "SIGILL"),
    (torch, after_test(torch_error="ImportError: libcudart"), "torch_broken", "error", "libcudart"),
    (torch, after_test(vision_error=NMS), "torchvision_mismatch", "error", "nms"),
    (
        torch,
        after_test(vision="0.26.0", vision_error="undefined symbol"),
        "torchvision_mismatch",
        "error",
        "0.26.0",
    ),
    (torch, after_test(vision_error="ImportError: libpng"), "torchvision_broken", "error", "libpng"),
    (lapack, after_test(lapack_error="RuntimeError: no LAPACK"), "lapack", "error", "no LAPACK"),
    (
        device_self_test,
        after_test(devices=("", "its product is wrong")),
        "device_wrong",
        "error",
        "device 1: its product",
    ),
    (device_self_test, after_test(devices=("",)), "device_unseen_by_torch", "error", "1 of 2"),
    (
        device_self_test,
        after_test(devices=(), built_for="cpu"),
        "device_unseen_by_torch",
        "error",
        "torch (cpu) sees 0",
    ),
    (packages, {"jobs": (JobNeeds("ssd", packages=("PIL",)),)}, "missing_package", "error", "'PIL'"),
    (packages, {"jobs": (JobNeeds("x", TIGHT),)}, "no_plan", "error", "9 tenants"),
    (job_input, {"jobs": (JobNeeds("x", missing=(Path("/d/x"),), reads=1),)}, "missing_data", "error", "/d/x"),
    (
        job_input,
        {"jobs": (JobNeeds("x", missing=(Path("/d/x"),), reads=1, made=True),)},
        "data_to_be_made",
        "info",
        "input of x",
    ),
]


@pytest.mark.parametrize(("rule", "changes", "code", "severity", "text"), FAULTS)
def test_a_fault_is_found(rule: Any, changes: dict[str, Any], code: str, severity: str, text: str) -> None:
    finding = said(rule, **changes)[code]
    assert finding.severity == severity
    assert text in finding.sentence


@pytest.mark.parametrize(("rule", "changes", "code", "severity", "text"), FAULTS)
def test_sentences_end_and_errors_have_a_remedy(
    rule: Any, changes: dict[str, Any], code: str, severity: str, text: str
) -> None:
    finding = said(rule, **changes)[code]
    assert re.match(r"([A-Z0-9/]|torch).*\.$", finding.sentence)
    assert severity == "info" or finding.remedy
    assert asked(rule, **changes).text


def test_every_check_has_a_fault_above() -> None:
    assert {rule.name for rule, *_ in FAULTS} == {check.name for check in CHECKS}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_host_in_good_order_is_shown_as_fine(check: Any) -> None:
    answer = asked(check)
    assert answer.findings == ()
    assert answer.severity is None
    assert answer.text


FINE: list[tuple[Any, dict[str, Any], str]] = [
    (governor, {"clocking": clocks()}, "not known"),
    (
        governor,
        {"clocking": clocks(driver="amd-pstate-epp", governors=("powersave",), preferences=("performance",))},
        "amd-pstate-epp",
    ),
    (turbo, {"clocking": clocks()}, "not known"),
    (foreign_load, {"load": Load(None, None)}, "not known"),
    (foreign_load, {"load": Load(0.3, 0, 0.05)}, "0.05 of 16"),
    (foreign_load, {"load": Load(3.0, 0)}, "load average 3"),
    (even_speed, {"speed": Speed(50.0, 60.0)}, "a clock read takes 50 to 60 ns"),
    (free_memory, {"plan": None}, "available"),
    (
        free_memory,
        {"machine": server(memory_bytes=8 * GIB), "memory_left_bytes": 7 * GIB},
        "7.00 GiB of 8.00 GiB available",
    ),
    (swap, {"memory": HostMemory(1, 1, GIB, GIB)}, "closed to tenants"),
    (shared_memory, {"shared": SharedMemory(64 << 20, 64 << 20), "loader_bytes": 1 << 20}, "up to 1 MiB"),
    (present, {"machine": server(devices=()), "driver": False}, "none"),
    (foreign_processes, boards(processes=(MPS,)), "nobody else"),
    (modes, boards(compute_mode="exclusive"), "MIG off, MPS off"),
    (modes, {"devices": (board(0, mig=True), board(1, mig=True))}, "MIG on"),
    (ecc, {"devices": (board(0, ecc=None), board(1, ecc=None))}, "not known"),
    (ecc, {"devices": (board(0, ecc=False), board(1, ecc=False))}, "off"),
    (persistence, {"devices": (board(0, persistent=None),)}, "not known"),
    (power_cap, {"devices": (board(0, power_limit_w=None),)}, "not known"),
    (siblings, {"machine": machine(cores=4)}, "without siblings"),
    (nodes, {"machine": machine(cores=4)}, "one node"),
    (nodes, {"machine": server(devices=(device(0, -1), device(1, 1)))}, "1 devices do not say"),
    (torch, after_test(vision=""), "torchvision missing"),
    (device_self_test, after_test() | {"machine": server(devices=(device(0), device(0), device(1)))}, "2 compute"),
    (job_input, {"jobs": (JobNeeds("x"),)}, "no job reads"),
    (job_input, {"jobs": (JobNeeds("x", reads=2), JobNeeds("y"))}, "all 1 jobs"),
]


@pytest.mark.parametrize(("rule", "changes", "text"), FINE)
def test_what_is_no_fault(rule: Any, changes: dict[str, Any], text: str) -> None:
    answer = asked(rule, **changes)
    assert answer.findings == ()
    assert text in answer.text


def test_questions_that_do_not_arise_are_not_asked() -> None:
    bare = host(
        machine=machine(cores=4),
        devices=(),
        driver=False,
        plan=None,
        isolation=None,
        self_test=None,
        jobs=None,
        speed=None,
    )
    groups = {check.group for check, _ in ask_all(CHECKS, bare)}
    assert groups == {"isolation", "processors", "memory", "devices", "disk"}
    assert [check.name for check, _ in ask_all(CHECKS, bare) if check.group == "devices"] == ["devices"]
    assert "even speed" not in {check.name for check, _ in ask_all(CHECKS, bare)}
    broken = host(**after_test(died="ended (exit status 1)"))
    assert {"LAPACK", "device self-test"} & {check.name for check, _ in ask_all(CHECKS, broken)} == set()


def test_the_checks_stand_by_group_and_by_a_name_of_their_own() -> None:
    groups = [check.group for check in CHECKS]
    assert groups == sorted(groups, key=list(dict.fromkeys(groups)).index)
    assert list(dict.fromkeys(groups)) == ["isolation", "processors", "memory", "devices", "disk", "software", "data"]
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert set(EVERY_SUITE) < set(CHECKS)


def test_no_finding_of_a_plan_is_said_twice_or_lost() -> None:
    contiguous = plan(server(quota=3.5), 3, policy="contiguous")
    facts = host(machine=server(quota=3.5), plan=contiguous)
    answers = [finding for _, answer in ask_all(CHECKS, facts) for finding in answer.findings]
    assert len(contiguous.findings) > 2
    assert [answers.count(finding) for finding in contiguous.findings] == [1] * len(contiguous.findings)


@pytest.mark.parametrize(
    ("torch", "vision", "together"),
    [
        ("2.14.1+cpu", "0.29.2", True),
        ("2.11.0", "0.26.0+cu128", True),
        ("2.14.1", "0.26.0", False),
        ("1.13.1", "0.14.1", True),
        ("nightly", "0.30", True),
        ("2.x", "0.1.0", True),
        ("2.14.1", "dev", True),
    ],
)
def test_which_versions_are_a_pair(torch: str, vision: str, together: bool) -> None:
    assert belongs(torch, vision) is together


def test_the_remedy_of_a_broken_pair_is_a_line_for_this_build() -> None:
    remedy = said(torch, **after_test(torch="2.14.1+cpu", built_for="cpu", vision_error=NMS))
    assert remedy["torchvision_mismatch"].remedy == (
        "pip install --force-reinstall --no-deps 'torchvision==0.29.*' --index-url https://download.pytorch.org/whl/cpu"
    )


def test_a_package_is_said_once_under_the_name_it_is_installed_by() -> None:
    jobs = (JobNeeds("ssd", packages=("PIL",)), JobNeeds("reso", packages=("PIL", "zzz")))
    found = asked(packages, jobs=jobs).findings
    assert [(one.rule, one.remedy) for one in found] == [
        ("missing_package", "pip install pillow"),
        ("missing_package", "pip install zzz"),
    ]
    assert "ssd, reso" in found[0].sentence


@pytest.mark.parametrize(
    ("severities", "worst"),
    [((), None), (("info",), "info"), (("info", "error", "warning"), "error"), (("info", "warning"), "warning")],
)
def test_an_answer_is_as_bad_as_its_worst_finding(severities: tuple[Any, ...], worst: str | None) -> None:
    assert Answer("", tuple(Finding("x", severity, "X.") for severity in severities)).severity == worst


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda: listed([1, 2]), "1, 2"),
        (lambda: listed(range(6)), "0, 1, 2, 3 and 2 more"),
        (lambda: listed([]), ""),
        (lambda: gib(64 << 20), "64 MiB"),
        (lambda: gib(3 * GIB // 2), "1.50 GiB"),
    ],
)
def test_lists_and_sizes(made: Callable[[], str], text: str) -> None:
    assert made() == text


def test_what_the_suite_asks_needs_no_isolation() -> None:
    facts: Facts = host(isolation=HOLDS_ALL, plan=None, self_test=None, jobs=None)
    assert len(list(ask_all(EVERY_SUITE, facts))) == len(EVERY_SUITE)
