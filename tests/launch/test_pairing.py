"""Pairs in one launch: walks in which each meets once, and groups that memory holds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.launch.pairing import PairSchedule, groups_of, trails
from cotenant.launch.schedule import ALL, BUDGET_NS, HOME, LEAST_ROUNDS, ONLY, Block, Passed, places, within

MS = 1_000_000

GRAPHS = st.integers(2, 12).flatmap(
    lambda count: st.tuples(
        st.just(count), st.sets(st.sampled_from([*combinations(range(count), 2)]), min_size=1).map(sorted)
    )
)


def passed(blocks: Iterable[Block]) -> list[Passed]:
    """Return blocks as they have passed, a second each."""
    return [Passed(block, 1000 * MS * at, 1000 * MS * (at + 1)) for at, block in enumerate(blocks)]


@given(GRAPHS, st.integers())
def test_walks_take_each_pair_once_and_begin_where_one_has_to(
    graph: tuple[int, list[tuple[int, int]]], seed: int
) -> None:
    _, pairs = graph
    walks = [*trails(pairs, random.Random(seed))]
    met = [tuple(sorted(step)) for walk in walks for step in pairwise(walk)]
    assert sorted(met) == pairs
    odd = {tenant for tenant, count in Counter(chain.from_iterable(pairs)).items() if count % 2}
    assert odd <= {end for walk in walks for end in (walk[0], walk[-1])}
    # Others begin and end in one place.
    assert sum(walk[0] != walk[-1] for walk in walks) == len(odd) / 2


@given(GRAPHS, st.lists(st.integers(0, 100), min_size=12, max_size=12), st.integers(0, 400))
def test_each_pair_is_in_one_group_and_each_group_fits_but_for_a_pair_that_never_does(
    graph: tuple[int, list[tuple[int, int]]], needs: list[int], room: int
) -> None:
    count, pairs = graph
    groups = groups_of(pairs, needs[:count], room)
    assert sorted(chain.from_iterable(groups)) == pairs
    for group in groups:
        there = {*chain.from_iterable(group)}
        assert sum(needs[tenant] for tenant in there) <= room or len(group) == 1


def test_what_fits_at_once_is_one_group_and_what_does_not_is_few() -> None:
    pairs = [*combinations(range(8), 2)]
    assert groups_of(pairs, [10] * 8, 80) == [tuple(pairs)]
    # Four of eight at once are six pairs: five launches are the least, and 28 pairs by themselves would be 28.
    assert 5 <= len(groups_of(pairs, [10] * 8, 40)) <= 8
    # A hungry one is beside few at a time, and the others still meet in one.
    groups = groups_of(pairs, [60, *[10] * 7], 80)
    assert max(map(len, groups)) == 21
    assert sum(0 in chain.from_iterable(group) for group in groups) == 4


@given(GRAPHS.map(lambda graph: tuple(graph[1])), st.integers(1, 3), st.integers())
def test_each_round_each_pair_meets_once_near_both_of_it_alone_in_the_same_slots(
    pairs: tuple[tuple[int, int], ...], rounds: int, seed: int
) -> None:
    steps_ns = dict.fromkeys(chain.from_iterable(pairs), MS)
    schedule = PairSchedule(steps_ns, False, rounds, pairs)
    blocks = [*schedule.blocks(random.Random(seed))]
    opening, blocks = blocks[: schedule.opening], blocks[schedule.opening :]
    there = sorted(steps_ns)
    assert [block.awake for block in opening] == [dict.fromkeys(there, HOME), *({tenant: HOME} for tenant in there)]
    assert {block.round for block in opening} == {0}
    assert [block.index for block in blocks] == list(range(len(opening), len(opening) + len(blocks)))
    for number in range(rounds + 1):
        met = [tuple(sorted(block.awake)) for block in blocks if block.round == number and len(block.awake) > 1]
        assert tuple(sorted(met)) == pairs
    for at, block in enumerate(blocks):
        if len(block.awake) == 2:
            assert sorted(block.awake.values()) == [0, 1]
            near = [other.awake for other in blocks[max(0, at - 3) : at + 4] if other.round == block.round]
            # In its slot beside the other, at the most three blocks away.
            assert all({tenant: slot} in near for tenant, slot in block.awake.items())


def test_each_meeting_is_held_against_turns_alone_in_its_own_slots_at_the_most_three_blocks_away() -> None:
    pairs = tuple(combinations(range(6), 2))
    schedule = PairSchedule(dict.fromkeys(range(6), MS), False, 3, pairs)
    made = passed(schedule.blocks(random.Random(0)))
    spans = [(one.start_ns + 500 * MS, one.end_ns - 100 * MS) for one in made]
    for pair, tenant in ((each, tenant) for each in pairs for tenant in each):
        found = [one for one, at in zip(made, places(spans, made, tenant, pair), strict=True) if at.kind]
        alone = [one for one in found if one.block.kind == ONLY]
        meetings = [one for one in found if one.block.kind == ALL]
        assert len(meetings) == schedule.rounds + 1
        for met in meetings:
            beside = [one for one in alone if abs(one.block.index - met.block.index) <= 3]
            assert met.block.awake[tenant] in [one.block.awake[tenant] for one in beside]
        slots = {(one.block.round, one.block.awake[tenant]) for one in meetings}
        assert {(one.block.round, one.block.awake[tenant]) for one in alone} == slots


def test_tenants_of_pairs_are_thawed_for_their_meetings_as_often_as_for_their_turns_alone() -> None:
    pairs = tuple(combinations(range(6), 2))
    schedule = PairSchedule(dict.fromkeys(range(6), MS), False, 600, pairs)
    blocks = [*schedule.blocks(random.Random(0))][schedule.opening :]
    own = [(before, block) for before, block in pairwise(blocks) if 0 in block.awake]
    thawed = {size: [0 not in before.awake for before, block in own if len(block.awake) == size] for size in (1, 2)}
    parts = {size: sum(of) / len(of) for size, of in thawed.items()}
    assert parts[2] == pytest.approx(0.5, abs=0.05)
    # A walk begins with a turn alone.
    assert parts[1] == pytest.approx(0.5, abs=0.15)


def test_six_jobs_each_beside_itself_are_some_45_blocks_a_round_and_five_minutes() -> None:
    """21 pairs, in as few walks as may be."""
    pairs = (*combinations(range(6), 2), *((at, 6 + at) for at in range(6)))
    steps_ns = dict.fromkeys(range(12), 5 * MS)
    schedule = within(PairSchedule(steps_ns, False, LEAST_ROUNDS, pairs), 42 * BUDGET_NS)
    assert schedule is not None
    one = PairSchedule(steps_ns, False, 1, pairs)
    lengths = [sum(1 for _ in one.blocks(random.Random(seed))) - one.opening for seed in range(9)]
    assert all(2 * 45 <= length <= 2 * 50 for length in lengths)
    assert 4 * 60 < schedule.total_ns / 1e9 < 6 * 60
    assert schedule.rounds >= LEAST_ROUNDS


def test_of_a_pair_blocks_count_in_which_it_met_and_the_nearest_turn_alone_of_each() -> None:
    """0 meets 1, then 2, before which 2 was alone. The last turn of 0 is near neither of its meetings."""
    walk = [{0: 0}, {0: 0, 1: 1}, {1: 1}, {2: 1}, {0: 0, 2: 1}, {0: 0}, {1: 0}, {0: 0}]
    made = passed(
        Block(at, 1, ALL if len(awake) > 1 else ONLY, awake, 0, dict.fromkeys(awake, 0))
        for at, awake in enumerate(walk)
    )
    spans = [(1000 * MS * at + 500 * MS, 1000 * MS * at + 600 * MS) for at in range(len(walk))]
    for tenant, members, kinds in (
        (0, (0, 1), ["only", "all", "", "", "", "", "", ""]),
        (1, (0, 1), ["", "all", "only", "", "", "", "", ""]),
        (0, (0, 2), ["", "", "", "", "all", "only", "", ""]),
        (2, (0, 2), ["", "", "", "only", "all", "", "", ""]),
    ):
        assert [place.kind for place in places(spans, made, tenant, members)] == kinds
    # Who has changed its slot was held still, and is left alone for as long as who rested.
    schedule = PairSchedule(dict.fromkeys(range(2), 10 * MS), False, 8, ((0, 1),))
    here, turned = ((ALL, {0: at, 1: 1 - at}) for at in (0, 1))
    assert schedule._left_out_ns(turned, here) == {0: 160 * MS, 1: 160 * MS}
    assert schedule._left_out_ns(here, here) == {0: 50 * MS, 1: 50 * MS}


def test_a_schedule_goes_by_the_steps_that_were_seen_alone_and_has_the_least_rounds_at_least() -> None:
    pairs = tuple(combinations(range(3), 2))
    crowded = PairSchedule(dict.fromkeys(range(3), 400 * MS), False, LEAST_ROUNDS, pairs, 90_000 * MS)
    opening = [*crowded.blocks(random.Random(0))][: crowded.opening]
    assert all(block.lasting_ns == 900 * MS for block in opening), "an estimate that is far off costs little"
    seen = {0: [90 * MS, 100 * MS, 300 * MS], 1: [10 * MS], 2: []}
    day_ns = 86_400_000 * MS
    timed = crowded.timed(seen, day_ns)
    assert timed.steps_ns == {0: 100 * MS, 1: 10 * MS, 2: 400 * MS}
    assert crowded.timed({0: [MS], 1: [MS], 2: [MS]}, day_ns).rounds > timed.rounds
    assert replace(crowded, budget_ns=MS).timed({}, day_ns).rounds == LEAST_ROUNDS


def test_who_is_too_slow_for_the_time_that_is_left_meets_nobody_and_the_others_keep_their_rounds() -> None:
    pairs = tuple(combinations(range(4), 2))
    crowded = PairSchedule(dict.fromkeys(range(4), 100 * MS), False, LEAST_ROUNDS, pairs, 90_000 * MS)
    seen = {0: [5 * MS], 1: [20_000 * MS], 2: [5 * MS], 3: [30 * MS]}
    timed = crowded.timed(seen, 600_000 * MS)
    assert timed.pairs == ((0, 2), (0, 3), (2, 3))
    assert timed.rounds >= LEAST_ROUNDS
    assert (timed.rounds + 1) * timed.round_ns <= 600_000 * MS
    assert len([*timed.blocks(random.Random(0))]) > timed.opening
    nobody = crowded.timed(seen, 1_000 * MS)
    assert nobody.pairs == ()
    assert len([*nobody.blocks(random.Random(0))]) == nobody.opening, "it is over once steps are known"
