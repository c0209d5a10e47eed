"""The planner on invented machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from cotenant.errors import CotenantError
from cotenant.isolation import assignment
from cotenant.isolation.assignment import Merit, merit_of
from cotenant.isolation.memory_shares import PAGE_BYTES
from cotenant.isolation.plan import Plan, Policy, plan, plan_whole, ranks_of_all, split_ranks, tenants_by_default
from cotenant.isolation.plan_findings import cache_findings
from cotenant.machine.cpu import Cache
from cotenant.machine.topology import Machine
from cotenant.procfs import format_list, shortened_list
from machine.invented import GIB, device, machine, of_cores

EIGHT = tuple(device(i, node=i // 4) for i in range(8))
Cpus = tuple[int, ...]


def devices_on(*nodes: int) -> tuple[Any, ...]:
    return tuple(device(i, node=node) for i, node in enumerate(nodes))


def processors(made: Plan) -> list[Cpus]:
    return [piece.processors for piece in made.slices]


def rules(made: Plan) -> list[str]:
    return [finding.rule for finding in made.findings]


def cached(host: Machine, *caches: Cache) -> Machine:
    """The same host, whose processors have these caches."""
    cache_of = {number: cache for cache in caches for number in cache.processors}
    return replace(host, processors=tuple(replace(p, cache=cache_of.get(p.id)) for p in host.processors))


class Row(NamedTuple):
    why: str
    host: Machine
    cpus: str
    """The processors of each tenant; `unused` are nobody's, `nodes` those of each tenant's memory."""
    rules: str = ""
    unused: str = ""
    nodes: str = ""
    policy: Policy = "cores"


NODE_0 = devices_on(0, 0, 0, 0)
ROOMY = machine(nodes=2, cores=8, quota=8, devices=devices_on(1, 1, 1, 1, 0, 0))
TWO = machine(nodes=2, cores=1, devices=devices_on(1, 0))
THREE = machine(nodes=3, threads=2)
PART = machine(nodes=2, cores=48, without=(*range(44), *range(54, 96)))
SHARED, CUT = "processors_shared", "processors_shared siblings_split"
PLANS = [  # Others are in test_plan_fleet.py.
    Row("one socket without SMT", machine(cores=4), "0-1 2-3", nodes="0 0"),
    Row("siblings stay together", machine(cores=4, threads=2), "0-1,4-5 2-3,6-7"),
    Row("a core that does not divide", machine(cores=4, threads=2), "0,4 1,5 2,6", "processors_unused", "3,7"),
    Row("no core each", machine(cores=4, threads=2), "0 4 1 5 2", "processors_unused siblings_split", "3,6-7"),
    Row("near their devices", machine(nodes=2, cores=4, devices=devices_on(1, 0, 0, 1)), "4-5 0-1 2-3 6-7"),
    Row("near most of them", ROOMY, "8-11 0-3", "processor_quota device_on_other_node", "4-7,12-15"),
    Row("two near each, of one node", machine(nodes=2, cores=8, devices=devices_on(0, 1, 0, 1)), "0-7 8-15"),
    Row("all on one node", machine(nodes=2, devices=NODE_0[:2]), "0-3 4-7", "device_on_other_node", nodes="0 1"),
    Row("on no known node", machine(cores=8, threads=2, devices=devices_on(-1)), "0-15"),
    Row("one processor", machine(cores=1), "0"),
    Row("three nodes, one each", machine(nodes=3, threads=2), "0-3,12-15 4-7,16-19 8-11,20-23"),
    Row("a node is halved", THREE, "0-5,12-17 6-11,18-23", "nodes_straddled", nodes="0-1 1-2"),
    Row("of a cpuset", PART, "48-52 44-47,53", "nodes_straddled", nodes="1 0-1"),
    Row("a core without its sibling", of_cores((0, 4), (5,), (2, 6)), "0,4 2,6", "processors_unused", "5"),
    Row("holes in the numbering", of_cores((2, 10), (3, 11), (6, 14), (40, 41)), "2-3,10-11 6,14,40-41"),
    Row("less for one node", machine(nodes=2, cores=16, without=(0, 1)), "2-15 16-29", "processors_unused", "30-31"),
    Row("one user has everything", machine(nodes=2, cores=4), "0-7", nodes="0-1"),
    Row("two nodes, three users", machine(nodes=2, cores=6), "0-3 6-9 4-5,10-11", "nodes_straddled", nodes="0 1 0-1"),
    Row("splits no core", machine(cores=6, threads=2, quota=3.5), "0 1", "processor_quota processors_unused", "2-11"),
    Row("that it need not", machine(cores=6, threads=2, quota=10), "0-1,4,6-7 2-3,5,8-9", "processor_quota", "10-11"),
    Row("a quota below one processor", machine(cores=4, quota=0.5), "0", "processor_quota", "1-3"),
    Row("unequal numbers of cores", of_cores((0, 1), (2,), (3,)), "0-1 2-3", "cores_uneven"),
    Row("siblings k and k + 8", machine(cores=8, threads=2), "0-7 8-15", "siblings_split", policy="contiguous"),
    Row("and uneven", machine(cores=5), "0-1 2-3", "processors_unused", "4", policy="contiguous"),
    Row("two to a processor", machine(cores=2), "0 0 1 1", SHARED, nodes="0 0 0 0"),
    Row("three on two share both", machine(cores=2), "0-1 0-1 0-1", SHARED),
    Row("all on one", machine(cores=1), "0 0", SHARED),
    Row("in even parts", machine(cores=6), "0-2 0-2 0-2 0-2 3-5 3-5 3-5 3-5", SHARED),
    Row("of whole cores", machine(cores=2, threads=2), " ".join(["0,2"] * 4 + ["1,3"] * 4), SHARED),
    Row("or of ids", machine(threads=2), " ".join(["0-3"] * 5 + ["4-7"] * 5), CUT, policy="contiguous"),
    Row("on a node each", machine(nodes=2, cores=3), "0 0 1 1 2 2 3 3 4 4 5 5", SHARED),
    Row("as far as it comes out", machine(nodes=2, cores=1), "0-1 0-1 0-1", f"{SHARED} nodes_straddled"),
    Row("near devices that are shared, too", TWO, "1 0 1 0", f"{SHARED} devices_shared", nodes="1 0 1 0"),
    Row("under a quota", machine(nodes=2, quota=2.5), "0 0 4 4", f"processor_quota {SHARED}", "1-3,5-7"),
]


def test_who_gets_which_processors() -> None:
    for row in PLANS:
        made = plan(row.host, len(row.cpus.split()), policy=row.policy)
        assert " ".join(map(format_list, processors(made))) == row.cpus, row.why
        assert " ".join(rules(made)) == row.rules, row.why
        assert format_list(made.unused_processors) == row.unused, row.why
        assert not row.nodes or " ".join(format_list(piece.nodes) for piece in made.slices) == row.nodes, row.why
        assert [piece.tenant for piece in made.slices] == list(range(len(made.slices))), row.why


def placed(packages: Sequence[int], nodes: Sequence[int] = (), caches: Sequence[tuple[int, Cpus]] = ()) -> Machine:
    """A machine of a core for each of these sockets, on these nodes, with caches of so many MiB."""
    host = machine(nodes=len(set(nodes)) or 1, cores=len(packages) // (len(set(nodes)) or 1))
    made = zip(host.processors, packages, nodes or [0] * len(packages), strict=True)
    host = replace(host, processors=tuple(replace(p, package=package, node=node) for p, package, node in made))
    return cached(host, *(Cache(3, size << 20, serves) for size, serves in caches))


EVERY_FOURTH = [(32, tuple(range(start, 16, 4))) for start in range(4)]
PLACES = [
    ("nodes of two sockets in turn", placed((0, 1, 0, 1), (0, 1, 2, 3)), "0,2 1,3", "nodes_straddled"),
    ("sockets in turn on one node", placed((0, 1, 0, 1)), "0,2 1,3", ""),
    ("less for one socket", placed((0,) * 15 + (1,) * 17), "0-14 15-29", "processors_unused"),
    ("a socket is cut", placed((0, 1, 2)), "0-2", ""),
    ("two of three sockets", placed((0, 0, 1, 1, 2, 2)), "0-2 3-5", "sockets_straddled"),
    (
        "caches of ids that are apart",
        placed((0,) * 16, caches=EVERY_FOURTH),
        "0,4,8,12 1,5,9,13 2,6,10,14 3,7,11,15",
        "",
    ),
    ("two caches each", placed((0,) * 16, caches=EVERY_FOURTH), "0-1,4-5,8-9,12-13 2-3,6-7,10-11,14-15", ""),
    ("no cache is cut", placed((0,) * 8, caches=[(8, (0, 1, 2, 3)), (8, (4, 5, 6, 7))]), "0-2 4-6", "processor_quota"),
    ("a cache of two nodes", placed((0,) * 4, (0, 1, 0, 1), [(8, (0, 1, 2, 3))]), "0,2 1,3", ""),
    ("unlike caches", placed((0,) * 4, caches=[(96, (0, 1)), (32, (2, 3))]), "0-1 2-3", "cores_uneven"),
]


@pytest.mark.parametrize(("host", "cpus", "found"), [pytest.param(*row[1:], id=row[0]) for row in PLACES])
def test_slices_straddle_neither_sockets_nor_caches(host: Machine, cpus: str, found: str) -> None:
    made = plan(replace(host, quota_processors=6.0) if found == "processor_quota" else host, len(cpus.split()))
    assert " ".join(map(format_list, processors(made))) == cpus
    assert " ".join(rules(made)) == found


def test_kinds_go_before_caches_and_sockets_of_one_kind() -> None:
    """Cores of two kinds, each with a cache of its own: both users have the same mixture."""
    host = placed((0, 0, 1, 1), caches=[(16, (0, 1)), (8, (2, 3))])
    mixed = replace(host, processors=tuple(replace(p, kind="c" if p.id > 1 else "") for p in host.processors))
    made = plan(mixed, 2)
    assert processors(made) == [(0, 2), (1, 3)]
    assert rules(made) == ["sockets_straddled"]


def test_findings_name_sockets_and_the_sizes_of_unlike_caches() -> None:
    said = {
        placed((0, 0, 1, 1, 2, 2)): "The processors of users 0-1 lie on sockets 0-2.",
        placed((0, 1, 0, 1), (0, 1, 2, 3)): "The processors of users 0-1 lie on more than one NUMA node.",
        placed((0, 0, 1, 1, 2, 2), (0, 0, 1, 1, 2, 2)): (
            "The processors of users 0-1 lie on more than one NUMA node and on sockets 0-2."
        ),
        placed((0, 0, 0, 0, 1, 1, 2, 2), range(8)): (
            "The processors of users 0-1 lie on more than one NUMA node, those of user 1 also on sockets 1-2."
        ),
        placed((0,) * 4, caches=[(96, (0, 1)), (32, (2, 3))]): (
            "The users' processors are alike but for their last-level caches: 96 MiB for user 0; 32 MiB for user 1."
        ),
        placed((0,) * 6, caches=[(96, (0, 1)), (32, (2, 3, 4, 5))]): (
            "The users' processors are alike but for their last-level caches: "
            "32 MiB for user 0; 2 of 96 MiB and 1 of 32 MiB for user 1."
        ),
    }
    for host, sentence in said.items():
        assert sentence in [finding.sentence for finding in plan(host, 2).findings]


LARGE = [(2, 1024, 3), (256, 8, 7), (256, 8, 683), (1024, 4, 4095), (256, 8, 8192)]
USERS = (1, 2, 3, 7, 255, 683, 4095, 8192)
MORE = [(*host, users) for host in ((2, 1024), (256, 8), (1024, 4)) for users in USERS]


@pytest.mark.parametrize(
    ("nodes", "cores", "users"),
    [*LARGE, *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE if case not in LARGE)],
)
def test_large_machines_are_planned_in_few_steps(
    nodes: int, cores: int, users: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every assignment that is made and judged takes as long as the machine is large."""
    judged = []

    def counted(*asked: Any) -> Merit:
        judged.append(asked)
        return merit_of(*asked)

    monkeypatch.setattr(assignment, "merit_of", counted)
    # One processor is offline, so that cores, nodes and sockets are not all alike.
    host = machine(nodes, cores, memory_bytes=1 << 44, without=(5,))
    plan(host, users)
    plan(replace(host, quota_processors=nodes * 3.3), users)
    # Nodes and sockets of one kind each: none of them has slices of both.
    apart = tuple(replace(p, kind="c" if p.node % 2 else "", package=p.node % 2) for p in host.processors)
    plan(replace(host, processors=apart), users)
    assert len(judged) <= 12


def test_texts_stay_short_on_large_machines() -> None:
    caches = [Cache(3, 32 << 20, (2 * number, 2 * number + 1)) for number in range(1024)]
    host = cached(machine(cores=2048, memory_bytes=1 << 42), *caches)
    made = plan(host, 2048, policy="contiguous")
    texts = [str(made), *(finding.sentence for finding in (*made.findings, *cache_findings(host, made.slices)))]
    assert max(map(len, texts)) < 300
    assert texts[0].startswith("2048 users: processors 0 | 1 | 2 |")
    assert " | 15 and 2032 more" in texts[0]
    assert texts[-1].endswith("users 6-7 (processors 6-7) and 1020 more.")
    assert shortened_list(range(0, 40, 2)) == "0,2,4,6,8,10,12,14 and 12 more"
    assert shortened_list(range(16)) == "0-15"


def test_sentences_count_and_name() -> None:
    sentences = {
        (machine(cores=4, threads=2), 3): "2 of 8 processors stay unused: 3 users get 2 each.",
        (machine(cores=4, threads=2), 5): "2 physical cores serve more than one user (users 0-3).",
        (machine(nodes=2, cores=48, quota=10.0), 2): "A quota of 10 leaves 10 of 96 processors to give out.",
        (machine(cores=4), 6): "6 users share 4 processors: 2 processors for every 3 of them.",
        (machine(cores=2), 3): "3 users share 2 processors, all the same.",
    }
    for (host, tenants), sentence in sentences.items():
        assert plan(host, tenants).findings[-1].sentence == sentence
    (finding,) = plan(machine(nodes=2, cores=4, devices=NODE_0), 4).findings
    assert "users 2-3" in finding.sentence


def test_devices_that_are_unlike_are_named() -> None:
    """Those that are shared or idle are in test_plan_fleet.py."""
    made = plan(machine(devices=(device(0), device(1, name="A100"))), 2)
    assert made.findings[0].sentence == "The devices are not alike: A100, V100."
    assert made.whole_device == ""


def test_the_whole_device_model_is_known_only_if_none_is_shared() -> None:
    host = machine(devices=(device(0), device(1)))
    assert [plan(host, tenants).whole_device for tenants in (1, 2, 4)] == ["V100", "V100", ""]


def test_no_tenant_is_refused() -> None:
    for tenants in (0, -1):
        with pytest.raises(CotenantError, match="Use --users 1 or more"):
            plan(machine(), tenants)


def test_who_shares_processors_has_memory_of_its_own() -> None:
    made = plan(machine(cores=2, memory_bytes=17 * GIB), 4)
    assert [(piece.sharers, piece.memory_bytes) for piece in made.slices] == [(2, 4 * GIB)] * 4
    assert (made.parts, made.sharers) == (((0,), (1,)), 2)
    # One slow core: parts on a node each, though they differ, and no core is nobody's.
    host = machine(nodes=2, cores=4)
    slow = replace(host, processors=tuple(replace(p, kind="atom" if p.id == 1 else "") for p in host.processors))
    assert plan(slow, 10).parts == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert str(made) == "4 users: processors 0 | 1 (each shared by 2), 4.00 GiB each"
    assert str(plan(machine(cores=1), 2)) == "2 users: processors 0 (shared by 2), 31.04 GiB each"
    assert str(plan(machine(cores=1), 1)) == "1 user: processors 0, 62.08 GiB"


def test_tenants_of_a_slice_share_processors_and_split_memory() -> None:
    alone, made = (plan(machine(cores=4, memory_bytes=17 * GIB), users, slices=2) for users in (2, 4))
    assert made.parts == alone.parts == ((0, 1), (2, 3))
    assert [piece.processors for piece in made.slices] == [(0, 1), (0, 1), (2, 3), (2, 3)]
    assert {(piece.sharers, piece.memory_bytes) for piece in made.slices} == {(2, alone.slices[0].memory_bytes // 2)}
    (finding,) = made.findings
    assert (finding.rule, finding.severity) == ("processors_shared", "info")
    assert "Use no --slices for processors of their own." in finding.remedy
    made = plan(machine(cores=5, devices=(device(0), device(1))), 4, slices=2)
    assert [piece.accelerators[0].index for piece in made.slices] == [0, 0, 1, 1]
    assert rules(made) == ["processors_shared", "processors_unused", "devices_shared"]
    assert made.findings[1].sentence == "1 of 5 processors stay unused: 2 slices get 2 each."
    # Tenants of a slice with two devices both use the first.
    made = plan(machine(cores=4, devices=tuple(map(device, range(4)))), 4, slices=2)
    assert rules(made) == ["processors_shared", "devices_shared"]
    assert made.findings[1].sentence == "4 users share 4 devices in turn."
    assert made.findings[1].remedy == "Use no --slices for a device each."
    made = plan(machine(cores=4, devices=tuple(map(device, range(3)))), 4, slices=2)
    assert "1 of 3 devices stay idle: 3 cannot be divided evenly by 2 slices." in [
        each.sentence for each in made.findings
    ]
    for users, slices, remedy in [(4, 3, "--slices 1 or 2 or 4, or --users 6"), (4, 9, "1 to 4"), (4, 0, "1 to 4")]:
        with pytest.raises(CotenantError, match=f"Use {remedy if slices == 3 else f'--slices {remedy}'}"):
            plan(machine(cores=4), users, slices=slices)


def test_a_whole_machine_launch_has_a_rank_per_device_or_part() -> None:
    for host, users, ranks in [(machine(cores=2), 4, 2), (machine(cores=2), 3, 1), (machine(), 3, 3), (TWO, 4, 2)]:
        assert ranks_of_all(host, plan(host, users)) == ranks


def test_memory() -> None:
    """Without nodes of its own; of the scarcer node; below a limit above us; borrowed from another node."""
    made = plan(machine(cores=4, memory_bytes=16 * GIB), 3)
    assert (made.reserve_bytes, made.slices[0].memory_bytes) == (GIB, 5 * GIB)
    assert plan(machine(memory_bytes=16 * GIB), 1, reserve_bytes=0).slices[0].memory_bytes == 16 * GIB
    uneven = machine(nodes=2, cores=4, memory_bytes=64 * GIB, node_bytes=(16 * GIB, 48 * GIB))
    made = plan(uneven, 4, reserve_bytes=4 * GIB)
    assert {piece.memory_bytes for piece in made.slices} == {(16 * GIB - GIB) // 2}
    assert rules(made) == ["memory_unused"]
    limited = machine(nodes=2, cores=4, memory_bytes=9 * GIB, node_bytes=(128 * GIB, 128 * GIB))
    assert plan(limited, 2).slices[0].memory_bytes == 4 * GIB
    borrowed = machine(nodes=2, cores=2, memory_bytes=8 * GIB, node_bytes=(8 * GIB, 0))
    made = plan(borrowed, 2, reserve_bytes=0)
    assert [(piece.nodes, piece.memory_bytes) for piece in made.slices] == [((0,), 4 * GIB)] * 2


def test_too_little_memory() -> None:
    with pytest.raises(CotenantError, match=r"A reserve of 1\.00 GiB does not fit 1\.00 GiB of memory\."):
        plan(machine(memory_bytes=GIB), 1)
    with pytest.raises(CotenantError, match="leave less than 16 MiB for each of 2 users"):
        plan(machine(memory_bytes=GIB + PAGE_BYTES), 2)
    with pytest.raises(CotenantError, match="A reserve of"):
        plan(machine(), 1, reserve_bytes=-1)


def test_tenants_by_default() -> None:
    for host, users, tenants in [
        (machine(devices=EIGHT), None, 8),
        (machine(devices=EIGHT), 3, 3),
        (machine(), 3, 3),
        (machine(), None, 2),
        (machine(cores=1), None, 1),
        (machine(quota=1.5), None, 1),
        (machine(), 0, 0),  # for plan to refuse
    ]:
        assert tenants_by_default(host, users) == tenants


def test_plan_whole() -> None:
    made = plan_whole(machine(nodes=2, cores=3, threads=2, memory_bytes=64 * GIB, devices=EIGHT))
    (whole,) = made.slices
    assert (whole.tenant, whole.processors, whole.nodes) == (0, tuple(range(12)), (0, 1))
    assert whole.memory_bytes == (64 * GIB - made.reserve_bytes) // PAGE_BYTES * PAGE_BYTES
    assert whole.accelerators == EIGHT
    assert made.findings == ()
    # Under a quota it takes from every node.
    made = plan_whole(machine(nodes=2, cores=48, threads=2, quota=8))
    assert made.slices[0].processors == (0, 1, 48, 49, 96, 97, 144, 145)
    assert rules(made) == ["processor_quota"]


def test_ranks_are_pinned_near_their_devices() -> None:
    devices = tuple(device(i, node=(1, 0)[i]) for i in range(2))
    host = machine(nodes=2, cores=2, threads=2, devices=devices)
    whole = plan_whole(host).slices[0]
    assert split_ranks(host, whole, 2) == ((2, 3, 6, 7), (0, 1, 4, 5))
    assert split_ranks(host, whole, 1) == (tuple(range(8)),)
    # Without its device the second rank would get the first node.
    three = machine(nodes=3, cores=1, devices=tuple(device(i, node=(2, 1, 0)[i]) for i in range(3)))
    assert split_ranks(three, plan_whole(three).slices[0], 3) == ((2,), (1,), (0,))
    assert split_ranks(machine(cores=3), plan_whole(machine(cores=3)).slices[0], 2) == ((0,), (1,))
    for ranks in (0, 9):
        with pytest.raises(CotenantError, match="Show the suite at most 8 devices, or leave"):
            split_ranks(host, whole, ranks)


@pytest.mark.parametrize(
    ("tenants", "sentence"),
    [
        (2, ""),
        (
            4,
            (
                "2 last-level caches of 32 MiB each (L3) serve several users: "
                "users 0-1 (processors 0-3); users 2-3 (processors 4-7)."
            ),
        ),
        (3, "1 last-level cache of 32 MiB (L3) serves several users: users 1-2 (processors 4-7)."),
    ],
)
def test_last_level_caches_of_several_tenants_are_named(tenants: int, sentence: str) -> None:
    host = cached(
        machine(cores=9), Cache(3, 32 << 20, (0, 1, 2, 3)), Cache(3, 32 << 20, (4, 5, 6, 7)), Cache(2, None, (8,))
    )
    slices = plan(host, tenants).slices
    if tenants == 3:  # One tenant with a cache of its own beside two that share the other.
        slices = tuple(
            replace(piece, processors=cpus) for piece, cpus in zip(slices, ((0, 1), (4, 5), (6, 7)), strict=True)
        )
    assert [finding.sentence for finding in cache_findings(host, slices)] == [sentence] * bool(sentence)
