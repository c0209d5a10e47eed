"""Duets of real processes: who is awake when, the sentences of the launch, and launches that cannot be duets."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.launch.design.designs import InDuet
from cotenant.launch.design.shared import DesignPlan, DuetPlace
from cotenant.launch.limits import Limits
from cotenant.launch.records import _duet_ratio
from cotenant.launch.told import placed as in_blocks
from launch.designed import MS, blocks_in, carried_out, room, row
from launch.turning import Turning, conducted, kinds_kept, made_at_rest, outcomes
from patience import HANG_S
from tenants.suites import Suites, errors, job

DUET = InDuet()


def test_in_every_other_slice_b_begins() -> None:
    places = [DUET.place(tenant) for tenant in range(6)]
    assert places == [DuetPlace(side, place) for place in range(3) for side in "AB"]  # type: ignore[arg-type]
    assert [place.half for place in places] == [0, 1, 1, 0, 0, 1]


DUETS = st.integers(1, 4).flatmap(
    lambda slices: st.lists(st.integers(MS // 10, 500 * MS), min_size=2 * slices, max_size=2 * slices)
)


def planned(steps: list[int], budget_ns: int = 900_000 * MS, **more: object) -> DesignPlan:
    made = DUET.plan(room(dict(enumerate(steps)), budget_ns=budget_ns, **more))
    assert isinstance(made, DesignPlan)
    return made


@given(DUETS, st.integers())
def test_one_of_each_slice_is_awake_in_every_block_of_a_duet(steps: list[int], seed: int) -> None:
    first, *blocks = blocks_in(planned(steps, 120_000 * MS, seed=seed).rounds)
    # At GO everybody runs; that block counts nowhere.
    assert (first.kind, first.counts, first.awake.keys()) == ("all", False, set(range(len(steps))))
    assert [block.index for block in blocks] == list(range(1, len(blocks) + 1))
    for block in blocks:
        assert block.kind == "turn"
        assert sorted(index // 2 for index in block.awake) == list(range(len(steps) // 2))
        sides = [index % 2 for index in sorted(block.awake)]
        assert sides == [sides[0] ^ (place % 2) for place in range(len(sides))]
    rounds = blocks[-1].round
    assert [0 in block.awake for block in blocks] == [True, False, False, True] * (rounds + 1)
    assert [block.round for block in blocks] == [number for number in range(rounds + 1) for _ in range(4)]
    # In each round each half once goes on, and is thawed once.
    thawed = [before.awake != block.awake for before, block in pairwise(blocks)]
    assert thawed == [True, False, True, False] * rounds + [True, False, True]


def test_rounds_of_a_duet_vary_around_the_announced_duration() -> None:
    made = planned([2 * MS, 2 * MS])
    blocks = blocks_in(made.rounds)
    lasting = {sum(block.lasting_ns for block in blocks if block.round == number) for number in range(1, 401)}
    need_ns = (50 + 200 + 152 + 200) * 2 * MS
    assert len(lasting) > 390
    assert need_ns <= min(lasting) < 1.02 * need_ns
    assert 1.48 * need_ns < max(lasting) <= 1.5 * need_ns
    assert sum(block.lasting_ns for block in blocks) == pytest.approx(made.expected_ns, rel=0.02)
    # Each is awake half of the time, of steps that may be five times shorter.
    assert made.awake_ns == 5 * made.expected_ns // 2


def test_crowded_warm_up_steps_are_assumed_shorter_in_a_duet() -> None:
    assert planned([2 * MS, 2 * MS], 10_000 * MS).tempo.steps_ns[0] == 2 * MS
    assert planned([200 * MS, 200 * MS], 10_000 * MS).tempo.steps_ns[0] == 40 * MS
    too_long = "4 rounds of steps of 1 s take more than twice the budget"
    assert DUET.plan(room(dict.fromkeys((0, 1), 1000 * MS), budget_ns=10_000 * MS)) == too_long
    assert isinstance(DUET.plan(room(dict.fromkeys((0, 1), 1000 * MS))), DesignPlan), "a minute is the most, as a rule"


def test_a_duet_ends_with_a_whole_round_once_both_are_narrow() -> None:
    rounds = planned([MS, MS], narrow=0.02).rounds
    passed, complete = carried_out(
        rounds,
        lambda one, tenant: [row(one.end_ns - (9 - at) * MS, one.end_ns - (8 - at) * MS, 100 + at) for at in range(8)],
    )
    assert (complete, len(passed), passed[-1].block.round) == (False, 1 + 4 * 9, 8)


def test_only_who_is_awake_together_loads_the_other() -> None:
    """In four slices: each tenant beside three others, and never beside that of its own slice."""
    beside = {one: [other for other in range(8) if other != one and DUET.are_beside(one, other)] for one in (0, 1)}
    assert beside == {0: [3, 4, 7], 1: [2, 5, 6]}


@pytest.mark.usefixtures("short")
def test_two_take_turns_and_the_slower_one_is_seen(turning: Turning) -> None:
    # A sleep that is ten times the step: no load of the host makes up for it.
    result = turning.launch(design=DUET, further=((), ("--sleep", "0.02")))
    assert outcomes(result) == ["completed", "completed"]
    made = conducted(result)
    assert (made.held_by, len(made.passed), made.unheld) == ("stopped", 1 + 4 * (4 + 1), {})
    placed = []
    for tenant in result.tenants:
        assert {*kinds_kept(tenant, made)} == {"turn"}
        assert not [*made_at_rest(tenant, made)]
        placed.append(in_blocks(tenant.ranks[0].observations, made, tenant.spec.slice.tenant))
    ratio = _duet_ratio(result, placed, DUET)
    assert ratio is not None
    assert ratio.rounds in (4, 5), "of five the first may be of the warm-up"
    assert ratio.value < 0.7


def test_what_cannot_take_turns_says_why_and_is_no_duet(turning: Turning) -> None:
    limits, why = Limits(timeout_s=HANG_S, budget_s=0.5), "rounds of steps of "
    result = turning.launch(limits=limits)
    assert (result.conducted, outcomes(result)) == (None, ["completed", "completed"])
    assert result.unconducted.startswith(f"8 {why}")
    assert result.unconducted.endswith(" s take more than twice the budget")
    result = turning.launch(limits=limits, design=DUET, further=((), ()))
    assert outcomes(result) == ["failed", "failed"]
    (message,) = {tenant.message for tenant in result.tenants}
    assert message.startswith(f"A duet takes turns, which cannot be had here: 4 {why}")


@pytest.mark.slow
@pytest.mark.v1
@pytest.mark.parametrize("slices", [1, 2])
def test_a_slower_side_of_a_duet_makes_the_run_exit_with_3(v1: Suites, slices: int) -> None:
    words = ("--duet", "job", "--users", slices, "--repetitions", 1, "--budget", 15, "--", "---", "--sleep", "0.01")
    ended = v1.run([job("sums.py", "--number", 1, "--repeat", 8)], *words, status=3)
    assert "B is slower than A: it has" in ended.stdout
    assert "A: the job as it is; B: --sleep 0.01" in ended.stdout
    records = v1.records()
    assert [record["name"] for record in records] == ["job.duet.A", "job.duet.B"] * slices
    assert len({str(record["duet"]["ratio"]) for record in records}) == 1
    # Both sides of a slice do the work of one seed.
    assert [record["seed"] for record in records] == [100 * (1 + place) for place in range(slices) for _ in "AB"]
    for record in records:
        assert (record["blocks"]["held_by"], record["blocks"]["void"]) == ("freezer", 0)
        assert record["blocks"]["spent"]["rest"]["processor_ns"] == 0
        assert record["kept"] is None
        assert not errors(record)
