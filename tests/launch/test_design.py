"""Blocks in any order that is drawn: who runs when, how long, and which observations of it are kept; a new design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations, groupby, pairwise
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.launch.design.designs import LEAST_ROUNDS, WANTED_ROUNDS, InBlocks
from cotenant.launch.design.passed import ALL, HOME, NOWHERE, ONLY, TURN, Block, Passed, Place, is_narrow, places
from cotenant.launch.design.shared import Design, DesignPlan, Room, Round, Rounds, Turn
from cotenant.results.record import Observed
from launch.designed import MS, blocks_in, carried_out, room, row
from launch.turning import Turning, conducted, kinds_kept, outcomes

STEPS_NS = st.lists(st.integers(MS // 10, 500 * MS), min_size=2, max_size=9).map(lambda steps: dict(enumerate(steps)))


@given(STEPS_NS, st.integers(1, 5), st.integers())
def test_each_round_has_every_tenant_alone_exactly_once(steps_ns: dict[int, int], rounds: int, seed: int) -> None:
    blocks = blocks_in(InBlocks()._rounds(room(steps_ns, seed), rounds))
    assert [block.index for block in blocks] == list(range(len(blocks)))
    for number in range(rounds + 1):
        of_round = [block for block in blocks if block.round == number]
        assert of_round[0].kind == ALL
        turns = [*chain.from_iterable(block.awake for block in of_round if block.kind == ONLY)]
        assert sorted(turns) == sorted(steps_ns)
    assert blocks[-1].kind == ALL
    assert {slot for block in blocks for slot in block.awake.values()} == {HOME}
    between = [[*of] for kind, of in groupby(blocks, key=lambda block: block.kind) if kind == ONLY]
    assert max(map(len, between)) <= 4
    # No two blocks of all without a turn between them.
    assert len(between) == sum(block.kind == ALL for block in blocks) - 1
    assert max(map(len, between)) - min(map(len, between)) <= 1


@pytest.mark.parametrize("tenants", [2, 3, 4])
def test_tenants_go_on_equally_often_into_both_kinds_of_block(tenants: int) -> None:
    blocks = blocks_in(InBlocks()._rounds(room(dict.fromkeys(range(tenants), MS)), 1000))
    went_on = {
        kind: [0 in one.awake for one, block in pairwise(blocks) if block.kind == kind and 0 in block.awake]
        for kind in (ALL, ONLY)
    }
    parts = {kind: sum(of) / len(of) for kind, of in went_on.items()}
    assert parts == pytest.approx({ALL: 1 / tenants, ONLY: 1 / tenants}, abs=0.03)


def test_the_order_is_drawn_anew_in_each_round() -> None:
    blocks = blocks_in(InBlocks()._rounds(room(dict.fromkeys(range(4), MS)), 20))
    turns = [tuple(block.awake) for block in blocks if block.kind == ONLY]
    orders = {tuple(turns[at : at + 4]) for at in range(0, len(turns), 4)}
    assert len(orders) > 10


@pytest.mark.parametrize(("on_devices", "thawed_ms"), [(0, 150), (1, 300)])
def test_a_block_measures_ten_steps_or_a_fifth_of_a_second(on_devices: int, thawed_ms: int) -> None:
    blocks = blocks_in(InBlocks()._rounds(room({0: 2 * MS, 1: 50 * MS}, on_devices=on_devices), 20))
    lasting = {(tuple(before.awake), tuple(block.awake), block.lasting_ns // MS) for before, block in pairwise(blocks)}
    assert lasting == {
        ((0, 1), (0,), 50 + 200),
        ((0, 1), (1,), 50 + 500),
        ((0,), (1,), thawed_ms + 50 + 500),
        ((1,), (0,), thawed_ms + 2 + 200),
        ((0,), (0, 1), 1000 + 500),
        ((1,), (0, 1), 1000 + 500),
    }


def test_device_work_queued_by_a_frozen_tenant_is_left_out() -> None:
    blocks = blocks_in(InBlocks()._rounds(room({0: 2 * MS, 1: 100 * MS}, on_devices=2), 20))
    lasting = {(tuple(before.awake), tuple(block.awake), block.lasting_ns // MS) for before, block in pairwise(blocks)}
    assert lasting == {
        ((0, 1), (0,), 300 + 100 + 200),
        ((0, 1), (1,), 300 + 2 + 1000),
        ((0,), (1,), 300 + 100 + 1000),
        ((1,), (0,), 300 + 100 + 200),
        ((0,), (0, 1), 1000 + 1000),
        ((1,), (0, 1), 1000 + 1000),
    }
    assert {block.left_out_ns[0] // MS for block in blocks[1:] if [*block.awake] == [0]} == {300 + 100}


def test_blocks_of_all_leave_out_a_second_after_a_thaw() -> None:
    tempo, both = room({0: 2 * MS, 1: 2 * MS}).tempo, {0: HOME, 1: HOME}
    assert tempo.left_out_ns(Turn(ALL, both), {0: HOME}) == {0: 1000 * MS, 1: 1000 * MS}
    assert tempo.left_out_ns(Turn(ALL, both), both) == {0: 50 * MS, 1: 50 * MS}
    assert tempo.left_out_ns(Turn(TURN, both), {}) == {0: 152 * MS, 1: 152 * MS}


@pytest.mark.parametrize(("step_ms", "requested", "number"), [(2, 800, 10), (2, 4, 4), (50, 4, 1), (300, 1, 1)])
def test_ten_observations_lie_in_a_block_where_steps_allow(step_ms: int, requested: int, number: int) -> None:
    assert room({0: MS, 1: step_ms * MS}).tempo.number([0, 1], requested) == number


def test_a_budget_is_spent_on_whole_rounds() -> None:
    round_ns, last_ns = (1000 + 200 + 50 + 200 + 152 + 200) * MS, (1000 + 200) * MS
    least_ns = (LEAST_ROUNDS + 1) * round_ns + last_ns

    def rounds(budget_ns: float) -> int | str:
        planned = InBlocks().plan(room({0: 2 * MS, 1: 2 * MS}, budget_ns=round(budget_ns)))
        if isinstance(planned, str):
            return planned
        blocks = blocks_in(planned.rounds)
        assert planned.expected_ns == (blocks[-1].round + 1) * round_ns + last_ns == planned.awake_ns
        assert sum(block.lasting_ns for block in blocks) == pytest.approx(planned.expected_ns, rel=0.1)
        return blocks[-1].round

    assert rounds(least_ns / 2 - MS) == "8 rounds of steps of 0.002 s take more than twice the budget"
    assert rounds(least_ns / 2 + MS) == LEAST_ROUNDS
    assert (rounds(least_ns + 0.9 * round_ns), rounds(least_ns + 2.1 * round_ns)) == (8, 10)
    assert rounds(1e12) == WANTED_ROUNDS


@pytest.mark.parametrize(("spread", "narrow"), [(0.0, True), (0.3, False)])
def test_interval_is_of_rates_not_of_observation_lengths(spread: float, narrow: bool) -> None:
    """Ten observations, every second of which has twice the items in about twice the time."""
    rows, at_ns = [], 0
    for number in range(10):
        took_ns = round((1 + number % 2) * (1 + spread * (number % 3)) * 100 * MS)
        made = Observed(start_ns=at_ns, end_ns=at_ns + took_ns, items=100.0 * (1 + number % 2), data_wait_ns=0)
        rows, at_ns = [*rows, made], at_ns + took_ns
    assert is_narrow(rows, 0.05) is narrow


@pytest.mark.parametrize(("narrow", "rounds"), [(0.02, LEAST_ROUNDS), (0.002, 15), (None, 15)])
def test_rounds_end_once_every_interval_is_narrow(narrow: float | None, rounds: int) -> None:
    """Rates differ by 1 %; those alone do not count."""

    def observe(one: Passed, tenant: int) -> list[Observed]:
        items = [100, 101] * 4 if one.block.kind == ALL else [1, 100] * 4
        return [
            row(one.end_ns - (9 - at) * 10 * MS, one.end_ns - (8 - at) * 10 * MS, of) for at, of in enumerate(items)
        ]

    passed, complete = carried_out(InBlocks()._rounds(room({0: MS, 1: MS}, narrow=narrow), 15), observe)
    assert complete == (rounds == 15)
    assert [one.block.kind for one in passed] == [ALL, ONLY, ONLY] * (rounds + 1) + [ALL]
    assert passed[-1].block.round == rounds


def passed(*spans_ms: tuple[int, int, int, Sequence[int]], void: int | None = None) -> list[Passed]:
    """Return blocks of these rounds, from and until so many ms; steps take 10 ms."""
    made, before = [], BOTH
    for index, (number, start, end, awake) in enumerate(spans_ms):
        left_out_ns = {tenant: (50 if tenant in before else 160) * MS for tenant in awake}
        kind = ALL if len(awake) > 1 else ONLY
        block = Block(index, number, kind, dict.fromkeys(awake, HOME), 0, left_out_ns)
        made.append(Passed(block, start * MS, end * MS, index == void))
        before = awake
    return made


BOTH = (0, 1)
BLOCKS = ((0, 0, 100, BOTH), (1, 100, 400, (0,)), (1, 400, 900, BOTH), (1, 900, 1200, (1,)), (1, 1200, 1700, BOTH))


def placed(tenant: int, *spans_ms: tuple[int, int], void: int | None = None) -> list[Place]:
    return places([(start * MS, end * MS) for start, end in spans_ms], passed(*BLOCKS, void=void), tenant, BOTH)


def test_observations_between_leave_out_and_block_end_are_kept() -> None:
    assert placed(0, (10, 49), (50, 90), (90, 120), (120, 160), (150, 400), (401, 449), (450, 900)) == [
        Place(0, "all", False, 0),
        Place(0, "all", True, 0),
        NOWHERE,
        Place(1, "only", False, 1),
        Place(1, "only", True, 1),
        Place(2, "all", False, 1),
        Place(2, "all", True, 1),
    ]
    assert placed(0, (100, 140)) == [Place(1, "only", False, 1)]
    # Who was thawed has the longer leave-out, and one step.
    assert placed(1, (401, 559), (560, 900), (1100, 1200), (1250, 1700)) == [
        Place(2, "all", False, 1),
        Place(2, "all", True, 1),
        Place(3, "only", True, 1),
        Place(4, "all", True, 1),
    ]


def test_first_rounds_slower_than_all_later_ones_are_warm_up() -> None:
    """Observations of 40, 30, 20 and then 10 ms."""
    lengths_ms = {0: 40, 1: 30, 2: 20}
    rounds = [(at // 2, 1000 * at, 1000 * (at + 1), BOTH if at % 2 == 0 else (0,)) for at in range(32)]
    spans = [
        (begin + 500, begin + 500 + lengths_ms.get(number, 10) * (1 if awake == BOTH else 5))
        for number, begin, _, awake in rounds
    ]

    def kept(of: list[tuple[int, int]]) -> list[int]:
        found = places([(start * MS, end * MS) for start, end in of], passed(*rounds), 0, BOTH)
        return [place.block or 0 for place in found if place.kept]

    assert kept(spans) == list(range(6, 32)), "what is alone in such a round is of the warm-up, too"
    assert kept([(start, start + 10) for start, _ in spans]) == list(range(32)), "who is warm has no warm-up"
    assert kept([(start, start + 100 - at) for at, (start, _) in enumerate(spans)])[0] == 8, "a quarter at the most"


def test_nothing_is_kept_across_a_border_or_in_a_void_block() -> None:
    assert placed(0, (800, 950), (850, 1300), (1600, 1701), (1750, 1800)) == [NOWHERE] * 4
    assert placed(1, (200, 300)) == [NOWHERE]
    assert placed(0, (150, 400), (450, 900), void=2) == [Place(1, "only", True, 1), Place(2, "all", False, 1)]


@given(st.lists(st.tuples(st.integers(0, 1700), st.integers(1, 300)), max_size=40))
def test_kept_observations_lie_where_their_tenant_was_awake(gaps: list[tuple[int, int]]) -> None:
    spans, at = [], 0
    for gap, length in gaps:
        spans.append((at + gap, at + gap + length))
        at += gap + length
    for tenant in (0, 1):
        for (start, end), place in zip(spans, placed(tenant, *spans), strict=True):
            if place.kept:
                _, begin, until, awake = BLOCKS[place.block or 0]
                assert tenant in awake
                assert begin + 50 <= start < end <= until


@dataclass(frozen=True)
class TwoOfThree(Design):
    """Every two of three users meet in each round, and each is alone."""

    has_parts: ClassVar[bool] = True
    rounds: int = 8

    def meetings(self, tenants: int, passed: Sequence[Passed] = ()) -> Sequence[tuple[int, ...]]:
        return [*combinations(range(tenants), 2)]

    def plan(self, room: Room) -> DesignPlan:
        turns = [
            Turn(ONLY if len(of) == 1 else ALL, dict.fromkeys(of, HOME))
            for n in (1, 2)
            for of in combinations(room.everybody, n)
        ]
        expected_ns = (1 + self.rounds) * room.tempo.round_ns(turns)
        return DesignPlan(self._rounds(room, turns), room.tempo, expected_ns, expected_ns)

    def _rounds(self, room: Room, turns: Sequence[Turn]) -> Rounds:
        yield Round(0, [Turn(ALL, room.everybody)], room.tempo, counts=False)
        for number in range(1 + self.rounds):
            yield Round(number, room.chance.sample(turns, len(turns)), room.tempo)
        return True


def test_each_meeting_of_a_new_design_is_placed() -> None:
    planned = TwoOfThree().plan(room(dict.fromkeys(range(3), MS)))
    passed, complete = carried_out(planned.rounds)
    assert (complete, len(passed)) == (True, 1 + 9 * 6)
    spans = [(one.end_ns - 20 * MS, one.end_ns - 10 * MS) for one in passed]
    for pair in TwoOfThree().meetings(3):
        for tenant in pair:
            kept = [place for place in places(spans, passed, tenant, pair) if place.kept]
            assert [{place.kind for place in of} for _, of in groupby(kept, key=lambda one: one.round)] == [
                {ALL, ONLY}
            ] * 9
            assert {*pair} in [passed[place.block or 0].block.awake.keys() for place in kept if place.kind == ALL]


@pytest.mark.usefixtures("short")
def test_launch_by_a_new_design_has_each_meeting_and_turn_alone(turning: Turning) -> None:
    result = turning.launch(design=TwoOfThree(3), tenants=3)
    made = conducted(result)
    assert (outcomes(result), made.complete, len(made.passed)) == (["completed"] * 3, True, 1 + 4 * 6)
    for pair in TwoOfThree().meetings(3):
        for tenant in pair:
            assert {ALL, ONLY} == {*kinds_kept(result.tenants[tenant], made, pair)}
