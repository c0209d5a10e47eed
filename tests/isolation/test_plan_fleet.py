"""Plans for hosts as they are met, read from trees of kernel files; each host is here for one reason."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cotenant.isolation.memory_shares import PAGE_BYTES
from cotenant.isolation.plan import plan, tenants_by_default
from cotenant.machine.accelerators import visible_variables
from cotenant.machine.topology import Machine
from cotenant.procfs import format_list
from machine import fleet

GIB = 1 << 30
Met = Callable[[str], Machine]


CASES = """
# eight devices on two nodes: each user beside its own, siblings k and k + 128 together
dgx; cpus 0-15,128-143 16-31,144-159 32-47,160-175 48-63,176-191 64-79,192-207 80-95,208-223 96-111,224-239
  112-127,240-255; nodes 0 0 0 0 1 1 1 1; devices 0 1 2 3 4 5 6 7
# fewer users than devices: two devices each, two idle, and 42 cores do not divide a node of 64
dgx; cpus 0-41,128-169 42-63,106-125,170-191,234-253 64-105,192-233; nodes 0 0-1 1; devices 0-1 2-3 4-5; users 3;
  unused 126-127,254-255; rules processors_unused nodes_straddled devices_idle
# twice as many users as devices: users i and i + 8 share one, and both are near it
dgx; cpus 0-7,128-135 8-15,136-143 16-23,144-151 24-31,152-159 64-71,192-199 72-79,200-207 80-87,208-215 88-95,216-223
  32-39,160-167 40-47,168-175 48-55,176-183 56-63,184-191 96-103,224-231 104-111,232-239 112-119,240-247
  120-127,248-255; nodes 0 0 0 0 1 1 1 1 0 0 0 0 1 1 1 1; devices 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7; users 16; rules
  devices_shared
# wide and narrow cores: the same mixture for both
laptop; cpus 0-5,12-15 6-11,16-19; nodes 0 0; users 2
# wide and narrow cores for four: one processor less each, so that all have the same mixture
laptop; cpus 0-1,12-13 2-3,14-15 4-5,16-17 6-7,18-19; nodes 0 0 0 0; users 4; unused 8-11; rules processors_unused
# wide and narrow cores for seven: no mixture comes out that is worth it, which is reported
laptop; cpus 0-1 2-3 4-5 6-7 8-9 10-11 12-13; nodes 0 0 0 0 0 0 0; users 7; unused 14-19; rules processors_unused
  cores_uneven
# kinds of core that only their capacities tell apart
big_little; cpus 0,4 1,5 2,6; nodes 0 0 0; users 3; unused 3,7; rules processors_unused
# a quota of 10 of 96 processors: five each, on a node each
container; cpus 0-4 48-52; nodes 0 1; users 2; unused 5-47,53-95; rules processor_quota
# eight nodes on two sockets: a node and its device each
nps4; cpus 0-15,128-143 16-31,144-159 32-47,160-175 48-63,176-191 64-79,192-207 80-95,208-223 96-111,224-239
  112-127,240-255; nodes 0 1 2 3 4 5 6 7; devices 0 1 2 3 4 5 6 7
# eight nodes, four users: two neighbouring nodes and their devices each
nps4; cpus 0-31,128-159 32-63,160-191 64-95,192-223 96-127,224-255; nodes 0-1 2-3 4-5 6-7; devices 0-1 2-3 4-5 6-7;
  users 4; rules nodes_straddled
# seven instances of one device are seven devices
mig; cpus 0-1,16-17 2-3,18-19 4-5,20-21 6-7,22-23 8-9,24-25 10-11,26-27 12-13,28-29; nodes 0 0 0 0 0 0 0; devices 0 0
  0 0 0 0 0; unused 14-15,30-31; rules processors_unused
# two instances for a user: CUDA opens one of them, which is reported
mig; cpus 0-4,16-20 5-9,21-25 10-14,26-30; nodes 0 0 0; devices 0 0 0; users 3; unused 15,31; rules processors_unused
  devices_idle partitions_unused
# eight siblings side by side, and nodes numbered 0 and 8
power; cpus 0-39 40-79 80-119 120-159; nodes 0 0 8 8; devices 0 1 2 3
# a node of memory only is nobody's unless asked for
far_memory; cpus 0-3 4-7; nodes 0 1; users 2; rules memory_unused
"""
"""For each reason: a host of machine.fleet, and the shares of its tenants, in the formats of kernel lists."""


def cases() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield reason, host and fields of each."""
    for stanza in CASES.strip().removeprefix("# ").split("\n# "):
        reason, *lines = stanza.splitlines()
        host, *fields = " ".join(line.strip() for line in lines).split("; ")
        yield reason, host, {name: value for name, _, value in (field.partition(" ") for field in fields)}


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> Met:
    """Reads the host of a name in machine.fleet, each of them once."""
    return functools.cache(lambda name: getattr(fleet, name)(tmp_path_factory.mktemp(name)))


@pytest.mark.parametrize(("reason", "host", "fields"), [pytest.param(*case, id=case[0][:40]) for case in cases()])
def test_a_host_as_it_is_met(reason: str, host: str, fields: dict[str, str], met: Met) -> None:
    machine = met(host)
    users = int(fields["users"]) if "users" in fields else None
    made = plan(machine, tenants_by_default(machine, users))
    assert " ".join(format_list(piece.processors) for piece in made.slices) == fields["cpus"], reason
    assert " ".join(format_list(piece.nodes) for piece in made.slices) == fields["nodes"], reason
    devices = (format_list(device.index for device in piece.accelerators) for piece in made.slices)
    assert " ".join(devices).strip() == fields.get("devices", ""), reason
    assert format_list(made.unused_processors) == fields.get("unused", ""), reason
    assert " ".join(finding.rule for finding in made.findings) == fields.get("rules", ""), reason
    assert all(finding.sentence.endswith(".") for finding in made.findings), reason


def test_slices_of_equal_nodes_fill_memory_up_to_the_reserve(met: Met) -> None:
    machine = met("nps4")
    made = plan(machine, 8)
    assert made.reserve_bytes == machine.memory_bytes * 3 // 100
    assert 0 <= machine.memory_bytes - made.reserve_bytes - 8 * made.slices[0].memory_bytes < 8 * (PAGE_BYTES + 1)
    limited = plan(met("container"), 2, reserve_bytes=2 * GIB)
    assert limited.slices[0].memory_bytes == 19 * GIB


def test_overlapping_slices_share_what_lies_below_them_together(tmp_path: Path) -> None:
    """Each of two tenants alone fits its two nodes of three; both together have three, not four."""
    uneven = fleet.host(tmp_path, fleet.siblings(12), lambda p: p // 4, node_gib=(8, 8, 8, 72))
    made = plan(uneven, 2, reserve_bytes=0)
    assert [piece.nodes for piece in made.slices] == [(0, 1), (1, 2)]
    assert made.slices[0].memory_bytes == 12 * GIB


def test_all_nodes_memory_on_request(met: Met) -> None:
    made = plan(met("far_memory"), 2, mems="all", reserve_bytes=0)
    assert [piece.nodes for piece in made.slices] == [(0, 1, 2)] * 2
    assert made.slices[0].memory_bytes == 96 * GIB
    assert made.findings == ()


def test_mig_instances_are_shown_by_their_own_names(met: Met) -> None:
    host = met("mig")
    shown = [visible_variables(piece.accelerators)["CUDA_VISIBLE_DEVICES"] for piece in plan(host, 7).slices]
    assert shown == [f"MIG-{i}" for i in range(7)]
    (finding,) = [finding for finding in plan(host, 3).findings if finding.rule == "partitions_unused"]
    assert finding.sentence == "A process opens one MIG instance, and a user here has 2: it uses the first."
    assert finding.remedy == "Use --users 7 for an instance each."
