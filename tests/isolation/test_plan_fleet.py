"""What the planner gives on hosts as they are met, read from trees of kernel files; each for one reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cotenant.isolation.memory_shares import PAGE_BYTES
from cotenant.isolation.plan import Plan, Policy, plan, tenants_by_default
from cotenant.machine.accelerators import visible_variables
from cotenant.machine.topology import Machine
from cotenant.procfs import format_list
from machine import fleet

GIB = 1 << 30


@dataclass(frozen=True)
class Case:
    why: str
    host: Callable[[Path], Machine]
    processors: list[str]
    nodes: str
    """The nodes of each tenant's memory."""
    users: int | None = None
    policy: Policy = "cores"
    devices: str = ""
    """The numbers of each tenant's devices."""
    unused: str = ""
    rules: tuple[str, ...] = ()


ALL_SIXTEEN = [f"{16 * i}-{16 * i + 15},{16 * i + 128}-{16 * i + 143}" for i in range(8)]

CASES = [
    Case(
        "eight devices on two nodes: each tenant beside its own, siblings k and k + 128 together",
        fleet.dgx,
        ALL_SIXTEEN,
        nodes="0 0 0 0 1 1 1 1",
        devices="0 1 2 3 4 5 6 7",
    ),
    Case(
        "fewer users than devices: two devices each, two idle, and 42 cores do not divide a node of 64",
        fleet.dgx,
        ["0-41,128-169", "42-63,106-125,170-191,234-253", "64-105,192-233"],
        users=3,
        nodes="0 0-1 1",
        devices="0-1 2-3 4-5",
        unused="126-127,254-255",
        rules=("processors_unused", "nodes_straddled", "devices_idle"),
    ),
    Case(
        "twice as many users as devices: tenants i and i + 8 share one, and both are near it",
        fleet.dgx,
        [f"{first}-{first + 7},{first + 128}-{first + 135}" for first in (*range(0, 32, 8), *range(64, 96, 8))]
        + [f"{first}-{first + 7},{first + 128}-{first + 135}" for first in (*range(32, 64, 8), *range(96, 128, 8))],
        users=16,
        nodes="0 0 0 0 1 1 1 1 0 0 0 0 1 1 1 1",
        devices="0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7",
        rules=("devices_shared",),
    ),
    Case(
        "one device whose node is unknown: one tenant has everything",
        fleet.desktop,
        ["0-15"],
        nodes="0",
        devices="0",
    ),
    Case(
        "consecutive ids where siblings are k and k + 8: every core serves both tenants",
        fleet.desktop,
        ["0-7", "8-15"],
        users=2,
        policy="contiguous",
        nodes="0 0",
        devices="0 0",
        rules=("siblings_split", "devices_shared"),
    ),
    Case(
        "wide and narrow cores: the same mixture for both",
        fleet.laptop,
        ["0-5,12-15", "6-11,16-19"],
        users=2,
        nodes="0 0",
    ),
    Case(
        "wide and narrow cores for four: one processor less each, so that all have the same mixture",
        fleet.laptop,
        ["0-1,12-13", "2-3,14-15", "4-5,16-17", "6-7,18-19"],
        users=4,
        nodes="0 0 0 0",
        unused="8-11",
        rules=("processors_unused",),
    ),
    Case(
        "wide and narrow cores for seven: no mixture comes out that is worth it, which is said",
        fleet.laptop,
        ["0-1", "2-3", "4-5", "6-7", "8-9", "10-11", "12-13"],
        users=7,
        nodes="0 0 0 0 0 0 0",
        unused="14-19",
        rules=("processors_unused", "cores_uneven"),
    ),
    Case(
        "kinds of core without SMT: known from the kernel's lists of them",
        fleet.without_siblings,
        ["0-1,8-11", "2-3,12-15", "4-5,16-19"],
        users=3,
        nodes="0 0 0",
        unused="6-7",
        rules=("processors_unused",),
    ),
    Case(
        "kinds of core that only their capacities tell apart",
        fleet.big_little,
        ["0,4", "1,5", "2,6"],
        users=3,
        nodes="0 0 0",
        unused="3,7",
        rules=("processors_unused",),
    ),
    Case("three nodes, three tenants: one each", fleet.cloud, ["0-3,12-15", "4-7,16-19", "8-11,20-23"], "0 1 2", 3),
    Case(
        "three nodes, two tenants: the middle one is halved, which is said",
        fleet.cloud,
        ["0-5,12-17", "6-11,18-23"],
        users=2,
        nodes="0-1 1-2",
        rules=("nodes_straddled",),
    ),
    Case(
        "a quota of 10 of 96 processors: five each, on a node each",
        fleet.container,
        ["0-4", "48-52"],
        users=2,
        nodes="0 1",
        unused="5-47,53-95",
        rules=("processor_quota",),
    ),
    Case(
        "a cpuset of 10 of 96 processors, 4 and 6 on two nodes: a processor too many for one node each",
        fleet.cpuset,
        ["48-52", "44-47,53"],
        users=2,
        nodes="1 0-1",
        rules=("nodes_straddled",),
    ),
    Case("one processor: one tenant by default", fleet.single, ["0"], nodes="0"),
    Case(
        "seven processors, two tenants: one stays unused",
        fleet.seven,
        ["0-2", "3-5"],
        users=2,
        nodes="0 0",
        unused="6",
        rules=("processors_unused",),
    ),
    Case(
        "holes in the numbering: the core that lost its sibling is not dealt beside whole ones",
        fleet.offline,
        ["0,4", "2,6"],
        users=2,
        nodes="0 0",
        unused="5",
        rules=("processors_unused",),
    ),
    Case(
        "eight nodes on two sockets: a node and its device each",
        fleet.nps4,
        ALL_SIXTEEN,
        nodes="0 1 2 3 4 5 6 7",
        devices="0 1 2 3 4 5 6 7",
    ),
    Case(
        "eight nodes, four tenants: two neighbouring nodes and their devices each",
        fleet.nps4,
        [f"{32 * i}-{32 * i + 31},{32 * i + 128}-{32 * i + 159}" for i in range(4)],
        users=4,
        nodes="0-1 2-3 4-5 6-7",
        devices="0-1 2-3 4-5 6-7",
        rules=("nodes_straddled",),
    ),
    Case(
        "seven instances of one device are seven devices",
        fleet.mig,
        [f"{2 * i}-{2 * i + 1},{2 * i + 16}-{2 * i + 17}" for i in range(7)],
        nodes="0 0 0 0 0 0 0",
        devices="0 0 0 0 0 0 0",
        unused="14-15,30-31",
        rules=("processors_unused",),
    ),
    Case(
        "two instances for a tenant: CUDA opens one of them, which is said",
        fleet.mig,
        ["0-4,16-20", "5-9,21-25", "10-14,26-30"],
        users=3,
        nodes="0 0 0",
        devices="0 0 0",
        unused="15,31",
        rules=("processors_unused", "devices_idle", "partitions_unused"),
    ),
    Case(
        "both devices on one node of two: the second tenant must live on the other, which is said",
        fleet.one_sided,
        ["0-3", "4-7"],
        nodes="0 1",
        devices="0 1",
        rules=("device_on_other_node",),
    ),
    Case(
        "four users of two devices: in turn",
        fleet.one_sided,
        ["0-1", "2-3", "4-5", "6-7"],
        users=4,
        nodes="0 0 1 1",
        devices="0 1 0 1",
        rules=("devices_shared", "device_on_other_node"),
    ),
    Case(
        "devices that alternate between nodes: tenant i follows device i",
        fleet.interleaved,
        ["0-3", "8-11", "4-7", "12-15"],
        nodes="0 1 0 1",
        devices="0 1 2 3",
    ),
    Case(
        "two devices each where they alternate between nodes: both of one node",
        fleet.interleaved,
        ["0-7", "8-15"],
        users=2,
        nodes="0 1",
        devices="0,2 1,3",
    ),
    Case(
        "eight siblings side by side, and nodes numbered 0 and 8",
        fleet.power,
        ["0-39", "40-79", "80-119", "120-159"],
        nodes="0 0 8 8",
        devices="0 1 2 3",
    ),
    Case(
        "a node of memory only is nobody's unless asked for",
        fleet.far_memory,
        ["0-3", "4-7"],
        users=2,
        nodes="0 1",
        rules=("memory_unused",),
    ),
]


def made_on(machine: Machine, case: Case) -> Plan:
    return plan(machine, tenants_by_default(machine, case.users), policy=case.policy)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.why.partition(":")[0].replace(" ", "-"))
def test_a_host_as_it_is_met(tmp_path: Path, case: Case) -> None:
    made = made_on(case.host(tmp_path), case)
    assert [format_list(piece.processors) for piece in made.slices] == case.processors
    assert " ".join(format_list(piece.nodes) for piece in made.slices) == case.nodes
    assert " ".join(format_list(d.index for d in piece.accelerators) for piece in made.slices).strip() == case.devices
    assert format_list(made.unused_processors) == case.unused
    assert tuple(finding.rule for finding in made.findings) == case.rules
    assert all(finding.sentence.endswith(".") for finding in made.findings)


def test_the_memory_of_equal_nodes_is_all_but_the_reserve(tmp_path: Path) -> None:
    machine = fleet.nps4(tmp_path)
    made = plan(machine, 8)
    assert made.reserve_bytes == machine.memory_bytes * 3 // 100
    assert 0 <= machine.memory_bytes - made.reserve_bytes - 8 * made.slices[0].memory_bytes < 8 * (PAGE_BYTES + 1)


def test_the_memory_of_a_container_is_its_limit(tmp_path: Path) -> None:
    made = plan(fleet.container(tmp_path), 2, reserve_bytes=2 * GIB)
    assert made.slices[0].memory_bytes == 19 * GIB


def test_overlapping_slices_share_what_lies_below_them_together(tmp_path: Path) -> None:
    """Each of two tenants alone fits its two nodes of three; both together have three, not four."""
    uneven = fleet.host(tmp_path, fleet.siblings(12), lambda p: p // 4, node_gib=(8, 8, 8, 72))
    made = plan(uneven, 2, reserve_bytes=0)
    assert [piece.nodes for piece in made.slices] == [(0, 1), (1, 2)]
    assert made.slices[0].memory_bytes == 12 * GIB


def test_all_nodes_memory_on_request(tmp_path: Path) -> None:
    made = plan(fleet.far_memory(tmp_path), 2, mems="all", reserve_bytes=0)
    assert [piece.nodes for piece in made.slices] == [(0, 1, 2)] * 2
    assert made.slices[0].memory_bytes == 96 * GIB
    assert made.findings == ()


def test_instances_are_shown_by_their_own_names(tmp_path: Path) -> None:
    made = plan(fleet.mig(tmp_path), 7)
    assert [visible_variables(piece.accelerators)["CUDA_VISIBLE_DEVICES"] for piece in made.slices] == [
        f"MIG-{i}" for i in range(7)
    ]


def test_the_remedy_for_several_instances_counts_them_all(tmp_path: Path) -> None:
    (finding,) = [f for f in plan(fleet.mig(tmp_path), 3).findings if f.rule == "partitions_unused"]
    assert finding.sentence == "A process opens one MIG instance, and a tenant here has 2: it uses the first."
    assert finding.remedy == "Use --users 7 for an instance each."
