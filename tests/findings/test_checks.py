"""Every check: silent on a host in good order, and on another it names the fault, with the numbers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cotenant.finding import Finding, Severity
from cotenant.findings import Answer, Check, ask_all
from cotenant.findings.checks import CHECKS, EVERY_SUITE
from cotenant.findings.checks.devices import compiler, ecc, foreign_processes, modes, persistence, power_cap, present
from cotenant.findings.checks.host import (
    even_speed,
    foreign_load,
    free_memory,
    governor,
    niceness,
    nodes,
    shared_memory,
    siblings,
    swap,
    turbo,
    virtual_machine,
)
from cotenant.findings.checks.isolation import backend, container, other_suites, slices
from cotenant.findings.checks.jobs import (
    apex,
    belongs,
    device_self_test,
    free_disk,
    job_input,
    lapack,
    startable,
    torch,
)
from cotenant.findings.facts import Facts, Isolation, JobNeeds, SelfTest
from cotenant.findings.rules import with_findings
from cotenant.isolation.device_modes import share_mode
from cotenant.isolation.plan import plan
from cotenant.machine.cpu import Clocking, Speed
from cotenant.machine.load import Load, Spender
from cotenant.machine.nvidia import DeviceProcess
from cotenant.machine.space import DevShm, Disk, HostMemory
from cotenant.machine.virtual import Virtual
from findings.hosts import DISK, HOLDS_ALL, LOOSE, TESTED, asked, board, host, said, server
from golden import check_golden
from machine.invented import GIB, device, machine
from results.made import a_record

NMS = "RuntimeError: operator torchvision::nms does not exist"
REFUSED = Finding("not_isolated", "error", "Isolation is required.", "Run as root.")
TIGHT = Finding("no_plan", "error", "9 users do not fit.", "Use fewer.")
PYTHON = DeviceProcess(77, "python", 2 * GIB)
MPS = DeviceProcess(5, "nvidia-cuda-mps-server", None)


def clocks(**changes: Any) -> Clocking:
    fields: dict[str, Any] = {"driver": "", "governors": (), "preferences": (), "capped": (), "boost": None}
    return Clocking(**fields | changes)


def after_test(**changes: Any) -> dict[str, Any]:
    fields = {name: getattr(TESTED, name) for name in TESTED.__slots__}
    return {"self_test": SelfTest(**fields | changes)}


def boards(**changes: Any) -> dict[str, Any]:
    """Two devices, of which the second has a fault."""
    return {"devices": (board(0), board(1, **changes))}


CASES: list[tuple[Check, dict[str, Any]]] = [
    (backend, {"isolation": Isolation("", (), (REFUSED,))}),
    (backend, {"isolation": LOOSE}),
    (slices, {"plan": None, "plan_refusal": TIGHT}),
    (slices, {"plan": plan(server(), 3)}),
    (siblings, {"plan": plan(server(), 4, policy="contiguous")}),
    (nodes, {"plan": plan(machine(nodes=2, cores=3), 3)}),
    (container, {"machine": server(without=(1,))}),
    (container, {"machine": server(memory_bytes=32 * GIB)}),
    (container, {"machine": server(quota=2.5)}),
    (other_suites, {"isolation": Isolation("v1", elsewhere=(Path("/c/7-8-9"),))}),
    (governor, {"clocking": clocks(governors=("powersave",))}),
    (governor, {"clocking": clocks(governors=("performance", "schedutil"))}),
    (governor, {"clocking": clocks(driver="intel_pstate", governors=("powersave",), preferences=("power",))}),
    (governor, {"clocking": clocks(governors=("performance",), capped=(0, 1, 2))}),
    (niceness, {"niceness": 15}),
    (turbo, {"clocking": clocks(boost=True)}),
    (foreign_load, {"load": Load(1.0, 1)}),
    (foreign_load, {"load": Load(40.0, 40)}),
    (foreign_load, {"load": Load(1.0, 1, 1.4, (Spender(7, "make", 0.98),))}),
    (virtual_machine, {"virtual": Virtual("KVM", "")}),
    (even_speed, {"speed": Speed(54.0, 97.0)}),
    (virtual_machine, {"stolen_share": 0.02}),
    (free_memory, {"memory": HostMemory(64 * GIB, 61 * GIB, 0, 0)}),
    (free_memory, {"memory_left_bytes": 7 * GIB}),
    (swap, {"memory": HostMemory(1, 1, GIB, GIB), "isolation": LOOSE}),
    (swap, {"memory": HostMemory(1, 1, GIB, GIB), "isolation": None}),
    (swap, {"memory": HostMemory(1, 1, 2 * GIB, GIB)}),
    (shared_memory, {"shared": None}),
    (shared_memory, {"shared": DevShm(64 << 20, 64 << 20)}),
    (shared_memory, {"loader_bytes": 40 * GIB}),
    (present, {"machine": server(devices=()), "silence": "its driver answers 'Driver/library version mismatch'"}),
    (foreign_processes, boards(processes=(PYTHON,))),
    (foreign_processes, boards(processes=(DeviceProcess(9, "", None),))),
    (compiler, {"compiler_lacks": "Python.h"}),
    (modes, boards(mig_pending=True)),
    (modes, boards(mig=True)),
    (modes, boards(mps=True)),
    (modes, boards(processes=(MPS,))),
    (modes, boards(compute_mode="prohibited")),
    (modes, boards(compute_mode="exclusive") | {"plan": plan(server(), 4)}),
    (ecc, boards(uncorrected_errors=3)),
    (ecc, boards(repair_pending=True)),
    (ecc, boards(ecc=False)),
    (persistence, boards(persistent=False)),
    (power_cap, boards(power_limit_w=200.0)),
    (power_cap, boards(power_limit_w=250.0, power_default_w=250.0)),
    (power_cap, boards(slowed_by=("hardware", "heat"))),
    (free_disk, {"disks": (Disk(("data",), Path("/d"), GIB, True),)}),
    (free_disk, {"disks": (DISK, Disk(("records",), Path("/r"), 1, True))}),
    (free_disk, {"disks": (Disk(("records",), Path("/r"), GIB, False),)}),
    (free_disk, {"disks": (Disk(("data",), Path("/d"), 0, False),)}),
    (torch, after_test(died="ended (killed by SIGILL)")),
    (torch, after_test(died="did not end within 120 s", timed_out=True)),
    (torch, after_test(torch_error="ImportError: libcudart")),
    (torch, after_test(torch_error="ModuleNotFoundError: No module named 'torch'")),
    (torch, after_test(vision_error=NMS)),
    (torch, after_test(vision="0.26.0", vision_error="undefined symbol")),
    (torch, after_test(vision_error="ImportError: libpng")),
    (lapack, after_test(lapack_error="RuntimeError: no LAPACK")),
    (device_self_test, after_test(devices=("", "its product is wrong"))),
    (device_self_test, after_test(devices=("",))),
    (device_self_test, after_test(devices=(), built_for="cpu")),
    (startable, {"jobs": (JobNeeds("x", TIGHT), JobNeeds("y"))}),
    (job_input, {"jobs": (JobNeeds("x", missing=(Path("/d/x"),), reads=1),)}),
    (job_input, {"jobs": (JobNeeds("x", missing=(Path("/d/x"),), reads=1, made=True),)}),
    (governor, {"clocking": clocks()}),
    (governor, {"clocking": clocks(driver="amd-pstate-epp", governors=("powersave",), preferences=("performance",))}),
    (turbo, {"clocking": clocks()}),
    (foreign_load, {"load": Load(None, None)}),
    (foreign_load, {"load": Load(0.3, 0, 0.05)}),
    (foreign_load, {"load": Load(3.0, 0)}),
    (even_speed, {"speed": Speed(50.0, 60.0)}),
    (free_memory, {"plan": None}),
    (free_memory, {"machine": server(memory_bytes=8 * GIB), "memory_left_bytes": 7 * GIB}),
    (swap, {"memory": HostMemory(1, 1, GIB, GIB)}),
    (shared_memory, {"shared": DevShm(64 << 20, 64 << 20), "loader_bytes": 1 << 20}),
    (shared_memory, {"shared": None, "isolation": Isolation("v1", own_shm=True)}),
    (present, {"machine": server(devices=()), "silence": ""}),
    (foreign_processes, boards(processes=(MPS,))),
    (modes, boards(compute_mode="exclusive")),
    (modes, boards(compute_mode="exclusive", mps=True) | {"plan": plan(server(), 4, share=share_mode("mps"))}),
    (modes, {"devices": (board(0, mig=True), board(1, mig=True))}),
    (ecc, {"devices": (board(0, ecc=None), board(1, ecc=None))}),
    (ecc, {"devices": (board(0, ecc=False), board(1, ecc=False))}),
    (persistence, {"devices": (board(0, persistent=None),)}),
    (power_cap, {"devices": (board(0, power_limit_w=None),)}),
    (siblings, {"machine": machine(cores=4)}),
    (nodes, {"machine": machine(cores=4)}),
    (nodes, {"machine": server(devices=(device(0, -1), device(1, 1)))}),
    (nodes, {"plan": plan(server(), 1)}),
    (torch, after_test(vision="")),
    (device_self_test, after_test() | {"machine": server(devices=(device(0), device(0), device(1)))}),
    (apex, {"apex": "without kernels"}),
    (apex, {"apex": "another one than NVIDIA's"}),
    (apex, {"apex": "built"}),
    (apex, {"machine": machine(cores=4)}),
    (job_input, {"jobs": (JobNeeds("x"),)}),
    (job_input, {"jobs": (JobNeeds("x", reads=2), JobNeeds("y"))}),
]
"""Faults of a host, and harmless facts, each with the check that is asked about it."""


def test_what_checks_answer() -> None:
    """Every check is asked about a host in good order first, and then about each case above."""
    lines = []
    for check, changes in [*((check, {}) for check in CHECKS), *CASES]:
        answer = asked(check, **changes)
        lines.append(f"{check.name}: {answer.text}\n")
        for finding in answer.findings:
            lines.append(f"  {finding.rule} {finding.severity}: {finding.sentence} {finding.remedy}".rstrip() + "\n")
            assert re.match(r"([A-Z0-9/]|torch).*\.$", finding.sentence)
            assert finding.severity == "info" or finding.remedy
        assert answer.text
    check_golden(Path(__file__).with_name("answers.txt"), "".join(lines))


def test_each_check_finds_its_faults_but_none_on_a_good_host() -> None:
    assert [check.name for check in CHECKS if asked(check).findings] == []
    assert {check.name for check, changes in CASES if asked(check, **changes).findings} == {
        check.name for check in CHECKS
    }


def test_swap_that_was_used_before_a_launch_spoils_no_number() -> None:
    """A launch that swaps has a finding of its own, `swapped`."""
    for changes in ({"isolation": LOOSE}, {"isolation": None}):
        found = asked(swap, memory=HostMemory(1, 1, GIB, GIB // 2), **changes).findings
        (weighed,) = with_findings([replace(a_record(), findings=list(found))])
        assert [finding.severity for finding in (*found, *weighed.findings)] == ["warning", "info"]


def test_questions_that_do_not_arise_are_not_asked() -> None:
    unknown = dict.fromkeys(("plan", "isolation", "self_test", "jobs", "speed"))
    bare = host(machine=machine(cores=4), devices=(), **unknown)
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


def test_matching_versions_of_torchvision_belong_to_torch() -> None:
    pairs = [("2.14.1+cpu", "0.29.2"), ("2.11.0", "0.26.0+cu128"), ("1.13.1", "0.14.1"), ("nightly", "0.30")]
    assert all(belongs(*pair) for pair in [*pairs, ("2.x", "0.1.0"), ("2.14.1", "dev")])
    assert not belongs("2.14.1", "0.26.0")
    remedy = said(torch, **after_test(torch="2.14.1+cpu", built_for="cpu", vision_error=NMS))
    assert remedy["torchvision_mismatch"].remedy == (
        "pip install --force-reinstall --no-deps 'torchvision==0.29.*' --index-url https://download.pytorch.org/whl/cpu"
    )


def test_an_answer_is_as_bad_as_its_worst_finding() -> None:
    worst: dict[tuple[Severity, ...], str | None] = {(): None, ("info",): "info", ("info", "warning"): "warning"}
    for severities, severity in (worst | {("info", "error", "warning"): "error"}).items():
        assert Answer("", tuple(Finding("x", each, "X.") for each in severities)).severity == severity


def test_what_the_suite_asks_needs_no_isolation() -> None:
    facts: Facts = host(isolation=HOLDS_ALL, plan=None, self_test=None, jobs=None)
    assert len(list(ask_all(EVERY_SUITE, facts))) == len(EVERY_SUITE)


def test_pasted_commands_quote_any_cgroup_name() -> None:
    """systemd writes a dash in the name of a unit as `\\x2d`, and any user may name a cgroup of theirs."""
    places = tuple(Path(f"/sys/fs/cgroup/{name}/7-8-9") for name in ("app-a\\x2db.scope", "$(reboot) "))
    (line,) = (
        one.remedy.partition("left: ")[2]
        for one in said(other_suites, isolation=Isolation("v2", elsewhere=places)).values()
    )
    assert shlex.split(line)[1:3] == list(map(str, places))
