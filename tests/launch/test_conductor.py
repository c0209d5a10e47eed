"""The conductor with invented slices and an invented clock: who is frozen when, the counters, and the end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain, combinations, pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.slice import Slice as PlannedSlice
from cotenant.launch import conductor as module
from cotenant.launch.conductor import Conducted, Conductor
from cotenant.launch.design import designs
from cotenant.launch.design.designs import InBlocks, InPairs, Pair
from cotenant.launch.design.passed import HOME, ONLY, Passed, SeenSoFar
from cotenant.launch.design.shared import DesignPlan, Round, Rounds, Turn
from cotenant.launch.rank import Rank
from cotenant.launch.tenant import Tenant
from launch.designed import MS, room

FOUR = tuple(combinations(range(4), 2))


@dataclass
class Clock:
    now_ns: int = 0

    def __call__(self) -> int:
        return self.now_ns


@dataclass
class Slice:
    """Uses a whole processor while it is awake; `stubborn` ones are never held."""

    clock: Clock
    stubborn: bool = False
    held_by: str = "freezer"
    asleep: bool = False
    used_ns: int = 0
    since_ns: int = 0
    deeds: list[str] = field(default_factory=list)
    processors: tuple[int, ...] = ()
    ended: bool = False
    refuses: int = -1

    def _pass(self) -> None:
        self.used_ns += 0 if self.asleep else self.clock.now_ns - self.since_ns
        self.since_ns = self.clock.now_ns

    def processor_ns(self) -> int:
        self._pass()
        return self.used_ns

    def freeze(self) -> None:
        self._pass()
        self.asleep = not self.stubborn
        self.deeds.append("freeze")

    def frozen(self) -> bool:
        self.clock.now_ns += MS
        return self.asleep

    def thaw(self) -> None:
        self._pass()
        self.asleep = False
        self.deeds.append("thaw")

    def move(self, processors: tuple[int, ...]) -> None:
        assert self.asleep or self.ended
        if processors == (self.refuses,):
            raise NotIsolatedError(f"it cannot be moved to {self.refuses}")
        self.processors = processors


def tenant(index: int, live: Slice) -> Tenant:
    made: Any = object.__new__(Tenant)
    made.spec = SimpleNamespace(slice=planned(index, 7 + index))
    made.live = live
    made.ranks = {0: Rank(cast(Any, None), 0, 1)}
    return cast(Tenant, made)


def planned(index: int, processor: int) -> PlannedSlice:
    return PlannedSlice(index, (processor,), (0,), 1 << 20, ())


@pytest.fixture(autouse=True)
def _no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(designs, "LEAST_ROUNDS", 2)


class Play:
    """Tenants of steps of a millisecond and their conductor; at home tenant i is on processor 7 + i, slot s on s."""

    def __init__(
        self,
        number: int = 2,
        stubborn: bool = False,
        tenants: int = 2,
        pairs: tuple[Pair, ...] = (),
        rounds: Rounds | None = None,
        t0_ns: int = 0,
    ) -> None:
        """By blocks of so many rounds, by `pairs`, or by these `rounds`."""
        tenants = max(tenants, 1 + max(chain.from_iterable(pairs), default=0))
        self.clock = Clock()
        self.slices = [Slice(self.clock, stubborn and index == 1) for index in range(tenants)]
        self.tenants = [tenant(index, live) for index, live in enumerate(self.slices)]
        there = room(dict.fromkeys(range(tenants), MS), budget_ns=1)
        if pairs:
            made = InPairs(pairs).plan(there)
            assert isinstance(made, DesignPlan)
            rounds = made.rounds
        slots = [planned(slot, slot) for slot in (0, 1)]
        rounds = rounds or InBlocks()._rounds(there, number)
        numbers = dict.fromkeys(range(tenants), 1)
        self.conductor = Conductor(rounds, self.tenants, t0_ns, self.count, slots, numbers, self.clock)

    def count(self) -> dict[int, int]:
        return {index: live.processor_ns() for index, live in enumerate(self.slices)}

    def to_the_end(self) -> Conducted:
        while not self.conductor.over:
            self.next()
        return self.conductor.conducted

    def next(self) -> None:
        """Go to the next border."""
        self.clock.now_ns += round(self.conductor.due_s() * 1e9) + 1
        self.conductor.look()

    @property
    def asleep(self) -> list[bool]:
        return [live.asleep for live in self.slices]

    @property
    def passed(self) -> list[Passed]:
        return self.conductor.conducted.passed


def test_in_each_block_those_run_that_should_and_all_in_the_end() -> None:
    play = Play()
    play.clock.now_ns += 351 * MS - 1
    play.conductor.look()  # Before a border nothing happens.
    assert play.slices[0].deeds == play.slices[1].deeds == []
    seen = []
    while not play.conductor.over:
        seen.append(play.asleep)
        play.next()
    conducted = play.conductor.conducted
    assert len(play.passed) == 3 * (2 + 1) + 1
    assert seen == [[index not in one.block.awake for index in (0, 1)] for one in play.passed]
    assert not any(one.void for one in play.passed)
    assert play.asleep == [False, False]
    assert conducted.held_by == "freezer"
    for spent in map(conducted.spent_of, (0, 1)):
        for kind in ("all", "only"):
            assert spent[kind].processor_ns == pytest.approx(spent[kind].lasted_ns, rel=0.02)
        assert spent["rest"].processor_ns == 0
        assert spent["rest"].lasted_ns > 0


def test_load_before_the_first_block_counts_for_no_block() -> None:
    play = Play(t0_ns=30_000 * MS)
    for now_ms in range(0, 30_200, 100):
        play.clock.now_ns = now_ms * MS
        play.conductor.look()
    for spent in map(play.to_the_end().spent_of, (0, 1)):
        assert spent["all"].processor_ns == pytest.approx(spent["all"].lasted_ns, rel=0.02)


def test_a_rest_is_no_lateness() -> None:
    play = Play()
    while not any(play.asleep):
        play.next()
    index = play.asleep.index(True)
    end_ns = play.passed[-1].end_ns - MS
    play.next()
    rank = play.tenants[index].ranks[0]
    assert rank.rests == [(end_ns + MS, play.clock.now_ns)]
    assert rank._awake_ns(end_ns, play.clock.now_ns + 3 * MS) == 4 * MS
    assert rank._awake_ns(play.clock.now_ns, play.clock.now_ns + 3 * MS) == 3 * MS


@pytest.mark.parametrize(
    ("tenants", "borders"), [*((2, borders) for borders in range(5)), *((4, borders) for borders in range(6, 34, 4))]
)
def test_stopping_at_any_moment_leaves_all_awake_and_at_home(tenants: int, borders: int) -> None:
    """Four tenants meet in pairs."""
    play = Play(pairs=FOUR if tenants == 4 else ())
    for _ in range(borders):
        play.next()
    moved = [index for index, live in enumerate(play.slices) if live.processors]
    assert bool(moved) == (tenants == 4)
    for index in moved:  # the others may not be moved while they run
        play.slices[index].ended = True
    for deed in (play.conductor.stop, play.conductor.look):
        deed()
        assert play.conductor.over
        assert play.asleep == [False] * tenants
    assert [play.slices[index].processors for index in moved] == [(7 + index,) for index in moved]


def test_a_block_is_void_whose_tenant_is_not_held_in_time() -> None:
    play = Play(8, stubborn=True)
    conducted = play.to_the_end()
    assert {tuple(one.block.awake) for one in conducted.passed if one.void} == {(0,)}
    assert conducted.unheld == {1: 9}
    assert sorted(conducted.spent_of(1)) == ["all", "only"]


def test_each_block_is_void_until_who_rests_in_it_is_held() -> None:
    play = Play(8, stubborn=True, tenants=3)
    while sum(one.void for one in play.passed) < 8:
        play.next()
    passed = [*play.passed]
    assert all(one.void is (1 not in one.block.awake) for one in passed)
    assert any(not before.block.awake.keys() & {1} and one.void for before, one in pairwise(passed))
    play.slices[1].stubborn = False
    assert not any(one.void for one in play.to_the_end().passed[len(passed) + 1 :])


def test_a_block_in_which_the_runner_was_not_there_is_void() -> None:
    play = Play()
    play.next()
    play.clock.now_ns += 31_000 * MS
    play.next()
    assert [one.void for one in play.passed] == [False, True]


def test_resting_tenants_are_frozen_again_after_a_reaper_thaw() -> None:
    play = Play(pairs=FOUR)
    blocks = [one.block for one in Play(pairs=FOUR).to_the_end().passed]
    for block, following in pairwise(blocks):
        rest_in_both = {*range(4)} - block.awake.keys() - following.awake.keys()
        if rest_in_both:
            play.clock.now_ns += 31_000 * MS
            for live in play.slices:
                live.thaw()
        play.next()
        assert play.asleep == [index not in following.awake for index in range(4)]
        assert play.passed[-1].void == bool(rest_in_both)
    rests = [play.conductor.conducted.spent_of(index).get("rest") for index in range(4)]
    assert not any(rest.processor_ns for rest in rests if rest is not None)


def test_a_design_sees_the_ending_block_before_its_border() -> None:
    """It thinks for 40 ms."""
    seen_ms: list[tuple[int, int]] = []

    def rounds() -> Rounds:
        tempo = room({0: MS, 1: MS}).tempo
        for number in range(3):
            seen: SeenSoFar = yield Round(number, [Turn(ONLY, {number % 2: HOME})], tempo)
            seen_ms.append((len(seen.passed), (seen.passed[-1].end_ns - seen.passed[-1].start_ns) // MS))
            play.clock.now_ns += 40 * MS
        return False

    play = Play(rounds=rounds())
    conducted = play.to_the_end()
    lasting_ms = [one.block.lasting_ns // MS for one in conducted.passed]
    assert seen_ms == [(1 + at, lasted_ms) for at, lasted_ms in enumerate(lasting_ms)]
    assert [(one.end_ns - one.start_ns) // MS for one in conducted.passed] == [
        40 + lasted_ms for lasted_ms in lasting_ms
    ]
    assert not conducted.complete


def test_a_design_sees_a_block_void_if_the_runner_was_absent() -> None:
    seen_void: list[bool] = []

    def rounds() -> Rounds:
        for number in range(2):
            seen: SeenSoFar = yield Round(number, [Turn(ONLY, {0: HOME})], room({0: MS, 1: MS}).tempo)
            seen_void.append(seen.passed[-1].void)
        return True

    play = Play(rounds=rounds())
    play.next()
    play.clock.now_ns += 31_000 * MS
    play.next()
    assert seen_void == [False, True]


def test_each_of_a_pair_runs_in_its_slot_and_at_home_in_the_end() -> None:
    play = Play(pairs=FOUR)
    places, seen = [], []
    while not play.conductor.over:
        play.next()
        places.append([live.processors for live in play.slices])
        seen.append(play.asleep)
    blocks = [one.block for one in play.passed]
    assert play.conductor.conducted.complete
    for block, there, asleep in zip(blocks[1:], places, seen, strict=False):
        assert asleep == [index not in block.awake for index in range(4)]
        assert all(there[index] == (slot,) for index, slot in block.awake.items() if slot != HOME)
    assert places[-1] == [(7,), (8,), (9,), (10,)]
    assert play.asleep == [False] * 4


def test_a_tenant_that_cannot_be_moved_ends_the_blocks() -> None:
    play = Play(pairs=FOUR)
    play.slices[2].refuses = 1
    for live in play.slices:
        live.ended = True
    conducted = play.to_the_end()
    assert play.conductor.unmoved == (2, "it cannot be moved to 1")
    assert play.asleep == [False] * 4
    assert {live.processors for live in play.slices} <= {(), *((7 + index,) for index in range(4))}
    assert conducted.passed
    assert not conducted.complete


def test_what_a_pair_spent_is_that_beside_each_other_and_alone() -> None:
    play = Play(pairs=FOUR)
    conducted = replace(play.to_the_end(), members=frozenset((1, 2)))
    together = [one for one in conducted.passed if one.block.awake.keys() == {1, 2}]
    alone = [one for one in conducted.passed if one.block.awake.keys() == {1}]
    spent = conducted.spent_of(1)
    for kind, passed in (("all", together), ("only", alone)):
        assert spent[kind].lasted_ns == pytest.approx(sum(one.end_ns - one.start_ns for one in passed), rel=0.01)
        assert spent[kind].processor_ns == pytest.approx(spent[kind].lasted_ns, rel=0.02)
    assert spent["rest"].processor_ns == 0
    assert spent["rest"].lasted_ns > 0
