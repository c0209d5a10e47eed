"""Pairs in one launch: walks in which each meets once, and groups that memory holds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.launch.design.designs import LEAST_ROUNDS, WANTED_ROUNDS, InPairs, Pair, trails, walks
from cotenant.launch.design.passed import ALL, HOME, ONLY, Block, Passed, SeenSoFar, places
from cotenant.launch.design.shared import DesignPlan, Turn
from cotenant.launch.groups import groups_of
from cotenant.results.record import Observed
from launch.designed import HOUR_NS, MS, carried_out, room, row

GRAPHS = st.integers(2, 12).flatmap(
    lambda count: st.tuples(
        st.just(count), st.sets(st.sampled_from([*combinations(range(count), 2)]), min_size=1).map(sorted)
    )
)


def passed(blocks: Iterable[Block]) -> list[Passed]:
    """Return blocks as they have passed, a second each."""
    return [Passed(block, 1000 * MS * at, 1000 * MS * (at + 1)) for at, block in enumerate(blocks)]


def blocks_of(pairs: Sequence[Pair], step_ms: int = 1, **more: int) -> tuple[list[Block], list[Block]]:
    """Return the blocks of the opening, and of the rounds; by default of the fewest."""
    steps_ns = dict.fromkeys(sorted({*chain.from_iterable(pairs)}), step_ms * MS)
    planned = InPairs(tuple(pairs)).plan(room(steps_ns, **({"budget_ns": 1} | more)))
    assert isinstance(planned, DesignPlan)
    blocks = [one.block for one in carried_out(planned.rounds)[0]]
    return blocks[: 1 + len(steps_ns)], blocks[1 + len(steps_ns) :]


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
def test_each_pair_is_in_one_group_that_fits_if_it_can(
    graph: tuple[int, list[tuple[int, int]]], needs: list[int], room: int
) -> None:
    count, pairs = graph
    groups = groups_of(pairs, needs[:count], room)
    assert sorted(chain.from_iterable(groups)) == pairs
    for group in groups:
        there = {*chain.from_iterable(group)}
        assert sum(needs[tenant] for tenant in there) <= room or len(group) == 1


def test_pairs_that_fit_together_form_one_group() -> None:
    pairs = [*combinations(range(8), 2)]
    assert groups_of(pairs, [10] * 8, 80) == [tuple(pairs)]
    # Four of eight at once are six pairs: five launches are the least, and 28 pairs by themselves would be 28.
    assert 5 <= len(groups_of(pairs, [10] * 8, 40)) <= 8
    # A hungry one is beside few at a time, and the others still meet in one.
    groups = groups_of(pairs, [60, *[10] * 7], 80)
    assert max(map(len, groups)) == 21
    assert sum(0 in chain.from_iterable(group) for group in groups) == 4


@given(GRAPHS.map(lambda graph: tuple(graph[1])), st.integers())
def test_each_pair_meets_once_a_round_near_its_turns_alone(pairs: tuple[tuple[int, int], ...], seed: int) -> None:
    opening, blocks = blocks_of(pairs, seed=seed)
    there = sorted({*chain.from_iterable(pairs)})
    assert [block.awake for block in opening] == [dict.fromkeys(there, HOME), *({tenant: HOME} for tenant in there)]
    assert not any(block.counts for block in opening)
    assert [block.index for block in blocks] == list(range(len(opening), len(opening) + len(blocks)))
    for number in range(LEAST_ROUNDS + 1):
        met = [tuple(sorted(block.awake)) for block in blocks if block.round == number and len(block.awake) > 1]
        assert tuple(sorted(met)) == pairs
    for at, block in enumerate(blocks):
        if len(block.awake) == 2:
            assert sorted(block.awake.values()) == [0, 1]
            near = [other.awake for other in blocks[max(0, at - 3) : at + 4] if other.round == block.round]
            # In its slot beside the other, at the most three blocks away.
            assert all({tenant: slot} in near for tenant, slot in block.awake.items())


def test_each_meeting_is_near_turns_alone_in_its_own_slots() -> None:
    pairs = tuple(combinations(range(6), 2))
    made = passed(chain.from_iterable(blocks_of(pairs)))
    spans = [(one.start_ns + 500 * MS, one.end_ns - 100 * MS) for one in made]
    for pair, tenant in ((each, tenant) for each in pairs for tenant in each):
        found = [one for one, at in zip(made, places(spans, made, tenant, pair), strict=True) if at.kind]
        alone = [one for one in found if one.block.kind == ONLY]
        meetings = [one for one in found if one.block.kind == ALL]
        assert len(meetings) == LEAST_ROUNDS + 1
        for met in meetings:
            beside = [one for one in alone if abs(one.block.index - met.block.index) <= 3]
            assert met.block.awake[tenant] in [one.block.awake[tenant] for one in beside]
        slots = {(one.block.round, one.block.awake[tenant]) for one in meetings}
        assert {(one.block.round, one.block.awake[tenant]) for one in alone} == slots


def test_tenants_thaw_as_often_for_meetings_as_for_turns_alone() -> None:
    pairs, chance = tuple(combinations(range(6), 2)), random.Random(0)
    turns = [turn for _ in range(600) for turn in walks(pairs, chance)]
    own = [(before, turn) for before, turn in pairwise(turns) if 0 in turn.awake]
    thawed = {size: [0 not in before.awake for before, turn in own if len(turn.awake) == size] for size in (1, 2)}
    parts = {size: sum(of) / len(of) for size, of in thawed.items()}
    assert parts[2] == pytest.approx(0.5, abs=0.05)
    # A walk begins with a turn alone.
    assert parts[1] == pytest.approx(0.5, abs=0.15)


def test_six_jobs_in_pairs_take_about_five_minutes() -> None:
    """21 pairs, in as few walks as may be."""
    pairs = (*combinations(range(6), 2), *((at, 6 + at) for at in range(6)))
    assert all(45 <= len(walks(pairs, random.Random(seed))) <= 50 for seed in range(9))
    design = InPairs(pairs)
    _, blocks = blocks_of(pairs, 5, budget_ns=design.usual_ns(12))
    assert 4 * 60 < sum(block.lasting_ns for block in blocks) / 1e9 < 6 * 60
    assert blocks[-1].round >= LEAST_ROUNDS


def test_only_the_nearest_turns_alone_count_for_a_pair() -> None:
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
    # Who has changed its slot was held still, and leaves out as much as one that rested.
    tempo = room(dict.fromkeys(range(2), 10 * MS)).tempo
    here, turned = ({0: at, 1: 1 - at} for at in (0, 1))
    assert tempo.left_out_ns(Turn(ALL, turned), here) == {0: 1000 * MS, 1: 1000 * MS}
    assert tempo.left_out_ns(Turn(ALL, here), here) == {0: 50 * MS, 1: 50 * MS}


@pytest.mark.parametrize("span_ms", [(-20, 10), (990, 1020), (-20, 1020)])
def test_a_step_that_crosses_a_border_is_none_alone(span_ms: tuple[int, int]) -> None:
    made = passed([Block(0, 0, ONLY, {0: HOME}, 0, {0: 0})])
    rows = [row(*(at * MS for at in span)) for span in (span_ms, (100, 110))]
    assert SeenSoFar(made, {0: rows}, {0: 2}).steps_alone_ns() == {0: 5 * MS}
    assert SeenSoFar(made, {0: rows[:1]}, {0: 2}).steps_alone_ns() == {}


def timed(steps_ms: dict[int, float | None], crowded_ms: int, **more: int) -> list[Passed]:
    """Return the blocks of all pairs of tenants that warm up in one time, and alone make a step in another; None makes
    no observation. Beside all others, and across a border, a step seems to take ten times as long."""

    def observe(one: Passed, tenant: int) -> list[Observed]:
        step_ms = steps_ms[tenant]
        if one.block.counts or step_ms is None:
            return []
        step_ns = round(step_ms * MS) * (10 if one.block.kind == ALL else 1)
        begin_ns = one.end_ns - step_ns - 1
        return [row(one.start_ns - 10 * step_ns, one.start_ns + 1), *([row(begin_ns, one.end_ns)] * 3)]

    pairs = tuple(combinations(steps_ms, 2))
    planned = InPairs(pairs).plan(room(dict.fromkeys(steps_ms, crowded_ms * MS), **({"budget_ns": 1} | more)))
    assert isinstance(planned, DesignPlan)
    return carried_out(planned.rounds, observe)[0]


def rounds(made: list[Passed]) -> int:
    return made[-1].block.round


def test_pairs_are_timed_by_the_steps_seen_alone() -> None:
    made = timed({0: 100, 1: 10, 2: None}, 400)
    opening, blocks = made[:4], made[4:]
    assert all(one.block.lasting_ns == 900 * MS for one in opening), "an estimate that is far off costs little"
    measured = {
        frozenset(one.block.awake): one.block.lasting_ns - max(one.block.left_out_ns.values()) for one in blocks
    }
    assert [measured[frozenset({tenant})] // MS for tenant in range(3)] == [1000, 200, 4000]
    assert rounds(made) == LEAST_ROUNDS
    assert rounds(timed(dict.fromkeys(range(3), 1), 400, budget_ns=HOUR_NS)) == WANTED_ROUNDS


def test_a_tenant_too_slow_for_the_time_left_meets_no_other() -> None:
    def met(left_s: int) -> list[tuple[int, ...]]:
        made = timed({0: 5, 1: 200, 2: 5, 3: 30}, 100, left_ns=left_s * 1000 * MS, budget_ns=HOUR_NS)
        lasted_s = (made[-1].end_ns - made[0].start_ns) / 1e9
        assert lasted_s < left_s
        assert rounds(made) >= LEAST_ROUNDS or len(made) == 5
        return sorted(
            {tuple(sorted(one.block.awake)) for one in made if one.block.counts and len(one.block.awake) == 2}
        )

    assert met(600) == [*combinations(range(4), 2)]
    assert met(100) == [(0, 2), (0, 3), (2, 3)]
    assert met(5) == [], "it is over once steps are known"
