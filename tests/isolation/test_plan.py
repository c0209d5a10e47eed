"""The planner on invented machines."""

from __future__ import annotations

import pytest

from cotenant.errors import CotenantError
from cotenant.isolation.memory_shares import PAGE_BYTES
from cotenant.isolation.plan import Plan, plan, plan_whole, split_ranks, tenants_by_default
from machine.invented import GIB, device, machine, of_cores

EIGHT = tuple(device(i, node=i // 4) for i in range(8))


def processors(made: Plan) -> list[tuple[int, ...]]:
    return [piece.processors for piece in made.slices]


def rules(made: Plan) -> list[str]:
    return [finding.rule for finding in made.findings]


def test_one_socket_without_smt() -> None:
    made = plan(machine(cores=4), 2)
    assert processors(made) == [(0, 1), (2, 3)]
    assert [piece.tenant for piece in made.slices] == [0, 1]
    assert {piece.nodes for piece in made.slices} == {(0,)}
    assert made.unused_processors == ()
    assert made.findings == ()


def test_laptop_keeps_siblings_together() -> None:
    made = plan(machine(cores=4, threads=2), 2)
    assert processors(made) == [(0, 1, 4, 5), (2, 3, 6, 7)]
    assert rules(made) == []


def test_laptop_leaves_a_core_that_does_not_divide() -> None:
    made = plan(machine(cores=4, threads=2), 3)
    assert processors(made) == [(0, 4), (1, 5), (2, 6)]
    assert made.unused_processors == (3, 7)
    assert made.findings[0].sentence == "2 of 8 processors stay unused: 3 tenants get 2 each."


def test_fewer_than_a_core_each_are_logical_processors() -> None:
    made = plan(machine(cores=4, threads=2), 5)
    assert processors(made) == [(0,), (4,), (1,), (5,), (2,)]
    assert rules(made) == ["processors_unused", "siblings_split"]
    assert made.findings[1].sentence == "2 physical cores serve more than one tenant (tenants 0-3)."


def test_server_with_eight_devices_on_two_nodes() -> None:
    made = plan(machine(nodes=2, cores=64, threads=2, memory_bytes=1024 * GIB, devices=EIGHT), 8)
    expected = [tuple(range(16 * i, 16 * i + 16)) + tuple(range(128 + 16 * i, 144 + 16 * i)) for i in range(8)]
    assert processors(made) == expected
    assert [piece.nodes for piece in made.slices] == [(0,)] * 4 + [(1,)] * 4
    assert [piece.accelerators for piece in made.slices] == [(device,) for device in EIGHT]
    reserve = 1024 * GIB * 3 // 100
    assert made.reserve_bytes == reserve
    assert made.slices[0].memory_bytes == (1024 * GIB - reserve) // 8 // PAGE_BYTES * PAGE_BYTES
    assert made.findings == ()


def test_tenants_follow_their_devices_nodes() -> None:
    devices = tuple(device(i, node=(1, 0, 0, 1)[i]) for i in range(4))
    made = plan(machine(nodes=2, cores=4, devices=devices), 4)
    assert processors(made) == [(4, 5), (0, 1), (2, 3), (6, 7)]
    assert rules(made) == []


def test_devices_all_on_one_node_push_the_others_away() -> None:
    devices = tuple(device(i, node=0) for i in range(4))
    made = plan(machine(nodes=2, cores=4, devices=devices), 4)
    assert processors(made) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert rules(made) == ["device_on_other_node"]
    assert "tenants 2-3" in made.findings[0].sentence


def test_one_core() -> None:
    made = plan(machine(cores=1), 1)
    assert processors(made) == [(0,)]
    with pytest.raises(CotenantError, match=r"Use --users 1 or fewer"):
        plan(machine(cores=1), 2)


def test_odd_counts() -> None:
    made = plan(machine(cores=7), 3)
    assert processors(made) == [(0, 1), (2, 3), (4, 5)]
    assert made.unused_processors == (6,)


def test_holes_in_the_numbering() -> None:
    made = plan(of_cores((2, 10), (3, 11), (6, 14), (40, 41)), 2)
    assert processors(made) == [(2, 3, 10, 11), (6, 14, 40, 41)]


def test_three_nodes_one_tenant_each() -> None:
    made = plan(machine(nodes=3, cores=4), 3)
    assert processors(made) == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)]
    assert [piece.nodes for piece in made.slices] == [(0,), (1,), (2,)]


def test_three_nodes_two_tenants_straddle() -> None:
    made = plan(machine(nodes=3, cores=4), 2)
    assert processors(made) == [(0, 1, 2, 3, 4, 5), (6, 7, 8, 9, 10, 11)]
    assert [piece.nodes for piece in made.slices] == [(0, 1), (1, 2)]
    assert rules(made) == ["nodes_straddled"]


def test_a_little_is_given_up_to_stay_on_one_node() -> None:
    made = plan(machine(nodes=2, cores=16, without=(0, 1)), 2)
    assert processors(made) == [tuple(range(2, 16)), tuple(range(16, 30))]
    assert rules(made) == ["processors_unused"]


def test_one_tenant_has_everything() -> None:
    made = plan(machine(nodes=2, cores=4), 1)
    assert processors(made) == [tuple(range(8))]
    assert made.slices[0].nodes == (0, 1)
    assert made.findings == ()


def test_three_users_without_accelerators() -> None:
    made = plan(machine(nodes=2, cores=6), 3)
    assert processors(made) == [(0, 1, 2, 3), (6, 7, 8, 9), (4, 5, 10, 11)]
    assert [piece.nodes for piece in made.slices] == [(0,), (1,), (0, 1)]
    assert all(piece.accelerators == () for piece in made.slices)


def test_more_users_than_devices_share_them_in_turn() -> None:
    made = plan(machine(cores=8, devices=(device(0), device(1))), 4)
    assert [piece.accelerators[0].index for piece in made.slices] == [0, 1, 0, 1]
    assert rules(made) == ["devices_shared"]


def test_fewer_users_than_devices_leave_some_idle() -> None:
    made = plan(machine(nodes=2, cores=6, devices=EIGHT), 3)
    assert [[d.index for d in piece.accelerators] for piece in made.slices] == [[0, 1], [2, 3], [4, 5]]
    assert [d.index for d in made.idle_accelerators] == [6, 7]
    assert "devices_idle" in rules(made)


def test_unlike_devices_are_said() -> None:
    made = plan(machine(devices=(device(0), device(1, name="A100"))), 2)
    assert made.findings[0].sentence == "The devices are not alike: A100, V100."


def test_container_with_a_quota() -> None:
    made = plan(machine(nodes=2, cores=48, quota=10.0), 2)
    assert processors(made) == [(0, 1, 2, 3, 4), (48, 49, 50, 51, 52)]
    assert rules(made) == ["processor_quota"]
    assert made.findings[0].sentence == "A quota of 10 leaves 10 of 96 processors to give out."
    assert len(made.unused_processors) == 86
    with pytest.raises(CotenantError, match=r"under a quota of 10\. Use --users 10 or fewer"):
        plan(machine(nodes=2, cores=48, quota=10.0), 11)


def test_a_quota_never_makes_tenants_share_a_core_that_need_not() -> None:
    made = plan(machine(cores=48, threads=2, quota=3.5), 2)
    assert processors(made) == [(0,), (1,)]
    made = plan(machine(cores=48, threads=2, quota=10), 2)
    assert processors(made) == [(0, 1, 4, 48, 49), (2, 3, 5, 50, 51)]
    assert rules(made) == ["processor_quota"]


def test_a_quota_below_one_processor_still_gives_one() -> None:
    assert processors(plan(machine(cores=4, quota=0.5), 1)) == [(0,)]


def test_wide_and_narrow_cores_are_shared_evenly() -> None:
    wide = tuple((2 * i, 2 * i + 1) for i in range(4))
    narrow = tuple((8 + i,) for i in range(4))
    made = plan(of_cores(*wide, *narrow), 2)
    assert processors(made) == [(0, 1, 2, 3, 8, 9), (4, 5, 6, 7, 10, 11)]
    assert made.findings == ()


def test_unequal_numbers_of_cores_are_said() -> None:
    made = plan(of_cores((0, 1), (2,), (3,)), 2)
    assert processors(made) == [(0, 1), (2, 3)]
    assert rules(made) == ["cores_uneven"]


def test_a_processor_missing_from_a_core_costs_one_sibling() -> None:
    made = plan(machine(cores=4, threads=2, without=(0,)), 2)
    assert processors(made) == [(1, 4, 5), (2, 3, 6)]
    assert made.unused_processors == (7,)


def test_contiguous_ids_as_the_original_gave_them() -> None:
    made = plan(machine(cores=4, threads=2), 2, policy="contiguous")
    assert processors(made) == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert rules(made) == ["siblings_split"]
    assert processors(plan(machine(cores=5), 2, policy="contiguous")) == [(0, 1), (2, 3)]


def test_memory_without_nodes_of_its_own() -> None:
    made = plan(machine(cores=4, memory_bytes=16 * GIB), 3)
    assert made.reserve_bytes == GIB
    assert made.slices[0].memory_bytes == 5 * GIB
    assert plan(machine(memory_bytes=16 * GIB), 1, reserve_bytes=0).slices[0].memory_bytes == 16 * GIB


def test_memory_of_the_scarcer_node_is_everybodys() -> None:
    uneven = machine(nodes=2, cores=4, memory_bytes=64 * GIB, node_bytes=(16 * GIB, 48 * GIB))
    made = plan(uneven, 4, reserve_bytes=4 * GIB)
    assert {piece.memory_bytes for piece in made.slices} == {(16 * GIB - GIB) // 2}
    assert rules(made) == ["memory_unused"]


def test_a_limit_above_us_is_below_the_nodes() -> None:
    limited = machine(nodes=2, cores=4, memory_bytes=9 * GIB, node_bytes=(128 * GIB, 128 * GIB))
    assert plan(limited, 2).slices[0].memory_bytes == 4 * GIB


def test_a_node_without_memory_borrows() -> None:
    borrowed = machine(nodes=2, cores=2, memory_bytes=8 * GIB, node_bytes=(8 * GIB, 0))
    made = plan(borrowed, 2, reserve_bytes=0)
    assert [piece.nodes for piece in made.slices] == [(0,), (0,)]
    assert made.slices[0].memory_bytes == 4 * GIB


def test_too_little_memory() -> None:
    with pytest.raises(CotenantError, match=r"A reserve of 1\.00 GiB does not fit 1\.00 GiB of memory\."):
        plan(machine(memory_bytes=GIB), 1)
    with pytest.raises(CotenantError, match="leave no page"):
        plan(machine(memory_bytes=GIB + PAGE_BYTES), 2)
    with pytest.raises(CotenantError, match="A reserve of"):
        plan(machine(), 1, reserve_bytes=-1)


@pytest.mark.parametrize("tenants", [0, -1])
def test_no_tenants(tenants: int) -> None:
    with pytest.raises(CotenantError, match="Use --users 1 or more"):
        plan(machine(), tenants)


def test_tenants_by_default() -> None:
    assert tenants_by_default(machine(devices=EIGHT), None) == 8
    assert tenants_by_default(machine(devices=EIGHT), 3) == 3
    assert tenants_by_default(machine(), 3) == 3
    assert tenants_by_default(machine(), None) == 2
    assert tenants_by_default(machine(cores=1), None) == 1
    assert tenants_by_default(machine(quota=1.5), None) == 1
    assert tenants_by_default(machine(), 0) == 0  # for plan to refuse


def test_plan_whole() -> None:
    made = plan_whole(machine(nodes=2, cores=3, threads=2, memory_bytes=64 * GIB, devices=EIGHT))
    (whole,) = made.slices
    assert whole.processors == tuple(range(12))
    assert whole.nodes == (0, 1)
    assert whole.memory_bytes == (64 * GIB - made.reserve_bytes) // PAGE_BYTES * PAGE_BYTES
    assert whole.accelerators == EIGHT
    assert made.findings == ()


def test_plan_whole_under_a_quota_takes_from_every_node() -> None:
    made = plan_whole(machine(nodes=2, cores=48, threads=2, quota=8))
    assert made.slices[0].processors == (0, 1, 48, 49, 96, 97, 144, 145)
    assert rules(made) == ["processor_quota"]


def test_ranks_are_pinned_near_their_devices() -> None:
    devices = tuple(device(i, node=(1, 0)[i]) for i in range(2))
    host = machine(nodes=2, cores=2, threads=2, devices=devices)
    whole = plan_whole(host).slices[0]
    assert split_ranks(host, whole, 2) == ((2, 3, 6, 7), (0, 1, 4, 5))
    assert split_ranks(host, whole, 1) == (tuple(range(8)),)
    assert split_ranks(machine(cores=3), plan_whole(machine(cores=3)).slices[0], 2) == ((0,), (1,))
    for ranks in (0, 9):
        with pytest.raises(CotenantError, match="Use --users 8 or fewer"):
            split_ranks(host, whole, ranks)
