"""Blocks in any order that is drawn: who runs when, how long, and which observations of it are kept."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain, combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.launch.schedule import (
    BUDGET_NS,
    HOME,
    LEAST_ROUNDS,
    NOWHERE,
    WANTED_ROUNDS,
    Block,
    Passed,
    Place,
    Schedule,
    is_late,
    places,
    schedule_within,
)

MS = 1_000_000
STEPS_NS = st.lists(st.integers(MS // 10, 500 * MS), min_size=2, max_size=9).map(lambda steps: dict(enumerate(steps)))


@given(STEPS_NS, st.integers(1, 5), st.integers())
def test_each_round_has_everybody_alone_once_between_blocks_of_all(
    steps_ns: dict[int, int], rounds: int, seed: int
) -> None:
    schedule = Schedule(steps_ns, False, rounds)
    blocks = list(schedule.blocks(random.Random(seed)))
    assert [block.index for block in blocks] == list(range(len(blocks)))
    assert [len(block.awake) > 1 for block in blocks] == [index % 2 == 0 for index in range(len(blocks))]
    for number in range(rounds + 1):
        turns = [*chain.from_iterable(block.awake for block in blocks if block.round == number and len(block.awake) == 1)]
        assert sorted(turns) == sorted(steps_ns)
    assert sum(block.lasting_ns for block in blocks) == schedule.total_ns
    assert {slot for block in blocks for slot in block.awake.values()} == {HOME}
    # Nobody rests for longer than one block.
    for tenant in steps_ns:
        rests = [tenant not in block.awake for block in blocks]
        assert not any(one and following for one, following in pairwise(rests))


def test_the_order_is_drawn_anew_in_each_round() -> None:
    blocks = Schedule(dict.fromkeys(range(4), MS), False, 20).blocks(random.Random(0))
    turns = [tuple(block.awake) for block in blocks if len(block.awake) == 1]
    orders = {tuple(turns[at : at + 4]) for at in range(0, len(turns), 4)}
    assert len(orders) > 10


def test_a_block_holds_its_leave_out_and_ten_steps_or_two_tenths_of_a_second() -> None:
    schedule = Schedule({0: 2 * MS, 1: 50 * MS}, False, 8)
    lasting = {tuple(block.awake): block.lasting_ns // MS for block in schedule.blocks(random.Random(0))}
    assert lasting == {(0, 1): 150 + 50 + 500, (0,): 50 + 200, (1,): 50 + 500}
    on_devices = Schedule({0: 2 * MS, 1: 2 * MS}, True, 8)
    assert {block.lasting_ns // MS for block in on_devices.blocks(random.Random(0))} == {300 + 2 + 200, 50 + 200}


@pytest.mark.parametrize(("step_ms", "requested", "number"), [(2, 800, 10), (2, 4, 4), (50, 4, 1), (300, 1, 1)])
def test_ten_observations_lie_in_a_block_where_steps_allow(step_ms: int, requested: int, number: int) -> None:
    assert Schedule({0: MS, 1: step_ms * MS}, False, 8).number([0, 1], requested) == number


def test_a_budget_is_of_whole_rounds_and_refused_where_the_least_take_twice_as_long() -> None:
    steps_ns = {0: 2 * MS, 1: 2 * MS}
    round_ns = Schedule(steps_ns, False, 8).round_ns
    assert round_ns == 2 * (152 + 200 + 50 + 200) * MS

    def rounds(budget_s: float) -> int | None:
        schedule = schedule_within(steps_ns, False, round(budget_s * 1e9))
        return schedule and schedule.rounds

    least_s = Schedule(steps_ns, False, LEAST_ROUNDS).total_ns / 1e9
    assert (rounds(least_s / 2 - 0.01), rounds(least_s / 2 + 0.01)) == (None, LEAST_ROUNDS)
    assert (rounds(least_s + 0.9 * round_ns / 1e9), rounds(least_s + 2.1 * round_ns / 1e9)) == (8, 10)
    assert rounds(1000) == WANTED_ROUNDS


def passed(*spans_ms: tuple[int, int, int, Sequence[int]], void: int | None = None) -> list[Passed]:
    return [
        Passed(Block(index, number, dict.fromkeys(awake, HOME), 0), start * MS, end * MS, index == void)
        for index, (number, start, end, awake) in enumerate(spans_ms)
    ]


BOTH = (0, 1)
BLOCKS = ((0, 0, 100, BOTH), (1, 100, 400, (0,)), (1, 400, 900, BOTH), (1, 900, 1200, (1,)), (1, 1200, 1700, BOTH))


def placed(tenant: int, *spans_ms: tuple[int, int], void: int | None = None) -> list[Place]:
    schedule = Schedule({0: 10 * MS, 1: 10 * MS}, False, 8)
    return places([(start * MS, end * MS) for start, end in spans_ms], passed(*BLOCKS, void=void), tenant, schedule)


def test_what_lies_behind_the_leave_out_of_a_block_and_before_its_end_is_kept() -> None:
    assert placed(0, (10, 90), (90, 120), (120, 160), (150, 400), (401, 449), (450, 900)) == [
        Place(0, "all", False),
        NOWHERE,
        Place(1, "only", False),
        Place(1, "only", True),
        Place(2, "all", False),
        Place(2, "all", True),
    ]
    # Who was thawed has the longer leave-out, and one step.
    assert placed(1, (401, 559), (560, 900), (1100, 1200), (1250, 1700)) == [
        Place(2, "all", False),
        Place(2, "all", True),
        Place(3, "only", True),
        Place(4, "all", True),
    ]


def test_across_a_border_at_rest_and_in_a_void_block_nothing_is_kept() -> None:
    assert placed(0, (800, 950), (850, 1300), (1600, 1701), (1750, 1800)) == [NOWHERE] * 4
    assert placed(1, (200, 300)) == [NOWHERE]
    assert placed(0, (150, 400), (450, 900), void=2) == [Place(1, "only", True), Place(2, "all", False)]


@given(st.lists(st.tuples(st.integers(0, 1700), st.integers(1, 300)), max_size=40))
def test_kept_observations_lie_wholly_in_a_block_in_which_their_tenant_ran(gaps: list[tuple[int, int]]) -> None:
    spans, at = [], 0
    for gap, length in gaps:
        spans.append((at + gap, at + gap + length))
        at += gap + length
    for tenant in (0, 1):
        for (start, end), place in zip(spans, placed(tenant, *spans), strict=True):
            if place.kept:
                number, begin, until, awake = BLOCKS[place.block or 0]
                assert number > 0
                assert tenant in awake
                assert begin + 50 <= start < end <= until


def test_a_block_that_lasts_a_second_longer_than_planned_is_late() -> None:
    block = Block(0, 1, {0: HOME}, 300 * MS)
    assert [is_late(block, lasted * MS) for lasted in (300, 1300, 1301)] == [False, False, True]


PAIRS = (
    st.integers(2, 7)
    .flatmap(lambda count: st.sets(st.sampled_from([*combinations(range(count), 2)]), min_size=1))
    .map(lambda pairs: tuple(sorted(pairs)))
)


@given(PAIRS, st.integers(1, 3), st.integers())
def test_each_round_each_pair_meets_once_between_both_of_it_alone_in_the_same_slots(
    pairs: tuple[tuple[int, int], ...], rounds: int, seed: int
) -> None:
    steps_ns = dict.fromkeys(chain.from_iterable(pairs), MS)
    first, *blocks = Schedule(steps_ns, False, rounds, pairs).blocks(random.Random(seed))
    assert (first.round, first.awake) == (0, dict.fromkeys(sorted(steps_ns), HOME))
    assert [block.index for block in blocks] == list(range(1, len(blocks) + 1))
    for number in range(rounds + 1):
        met = [tuple(sorted(block.awake)) for block in blocks if block.round == number and len(block.awake) > 1]
        assert tuple(sorted(met)) == pairs
    for before, block, behind in zip(blocks, blocks[1:], blocks[2:], strict=False):
        if len(block.awake) == 2:
            assert before.awake | behind.awake == block.awake
            assert sorted(block.awake.values()) == [0, 1]
            assert (len(before.awake), len(behind.awake)) == (1, 1)
            # Who goes on stays where it is, and rests for nothing.
            assert before.awake.items() <= block.awake.items() >= behind.awake.items()


def test_six_jobs_each_beside_itself_are_some_45_blocks_a_round_and_five_minutes() -> None:
    """21 pairs, in as few walks as may be."""
    pairs = (*combinations(range(6), 2), *((at, 6 + at) for at in range(6)))
    schedule = schedule_within(dict.fromkeys(range(12), 5 * MS), False, 42 * BUDGET_NS, pairs)
    assert schedule is not None
    lengths = [sum(1 for _ in Schedule(schedule.steps_ns, False, 1, pairs).blocks(random.Random(seed))) for seed in range(9)]
    assert all(2 * 45 < length <= 2 * 50 + 1 for length in lengths)
    assert 4 * 60 < schedule.total_ns / 1e9 < 6 * 60
    assert schedule.rounds >= LEAST_ROUNDS


def test_of_a_pair_blocks_count_in_which_it_met_and_those_of_one_of_it_beside_them() -> None:
    """0 meets 1, then 2; alone behind 2 it is beside no block of the first pair."""
    walk = [{0: 0}, {0: 0, 1: 1}, {1: 1}, {0: 1}, {0: 1, 2: 0}, {0: 1}]
    made = [Passed(Block(at, 1, awake, 0), 1000 * MS * at, 1000 * MS * (at + 1)) for at, awake in enumerate(walk)]
    schedule = Schedule(dict.fromkeys(range(3), 10 * MS), False, 8, ((0, 1), (0, 2)))
    spans = [(1000 * MS * at + 500 * MS, 1000 * MS * at + 600 * MS) for at in range(len(walk))]
    kinds = {
        (tenant, members): [place.kind for place in places(spans, made, tenant, schedule, members)]
        for tenant, members in ((0, (0, 1)), (1, (0, 1)), (0, (0, 2)), (2, (0, 2)))
    }
    assert kinds == {
        (0, (0, 1)): ["only", "all", "", "", "", ""],
        (1, (0, 1)): ["", "all", "only", "", "", ""],
        (0, (0, 2)): ["", "", "", "only", "all", "only"],
        (2, (0, 2)): ["", "", "", "", "all", ""],
    }
    # Who has changed its slot was held still, and is left alone for as long as who rested.
    turned = [Passed(Block(at, 1, {0: at, 1: 1 - at}, 0), 1000 * MS * at, 1000 * MS * (at + 1)) for at in (0, 1)]
    early = [(1055 * MS, 1100 * MS), (1161 * MS, 1200 * MS)]
    assert [place.kept for place in places(early, turned, 0, schedule, (0, 1))] == [False, True]
