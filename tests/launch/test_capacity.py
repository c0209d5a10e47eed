"""`capacity` on invented machines of known capacity, its schedule, and its search by single steps: nothing starts."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cotenant.launch.capacity import CapacityRun
from cotenant.launch.crowd_launches import SuiteLaunches, needed_bytes, p95_rounds
from cotenant.launch.design.designs import InCrowds
from cotenant.launch.design.passed import ALL, ONLY, Passed
from cotenant.launch.design.shared import DesignPlan
from cotenant.results.record import Observed, Record
from cotenant.stats.capacity import NOBODY, AloneUse, Carried, CrowdUse, Requirement, Standing
from cotenant.stats.crowd_search import CrowdSearch, SteadyCrowd
from launch.designed import MS, Observe, carried_out, room, row

GIB = 1 << 30


@dataclass
class Bucket:
    """A machine that yields so many tokens in each slot of time. A user alone takes one in each; users that are more
    than there are tokens have turns."""

    tokens: float
    memory_bytes: int = 64 * GIB
    round_noise: float = 0.04
    launch_noise: float = 0.01
    seed: int = 0
    step: int = 1
    flaw: str = ""
    fits: int = 512
    """The most users that fit into memory, whatever the peak of one alone promises."""
    pressed: float = 1.0
    clock_s: float = 0.0
    launched: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def rates(self, users: int, slots: int = 400) -> list[float]:
        """Return the tokens that each user had in a slot: a bucket is filled in each, and they take one by turns."""
        took, level, turn = [0] * users, 0.0, self.chance.randrange(users)
        for _ in range(slots):
            level = min(level + self.tokens, self.tokens + 1)
            for _ in range(users):
                if level < 1:
                    break
                took[turn] += 1
                level -= 1
                turn = (turn + 1) % users
        return [count / slots for count in took]

    def alone(self) -> AloneUse | str:
        self.clock_s += 5
        return self.flaw or AloneUse(1.0, "token", 1.0, max(1, math.floor(self.tokens)), GIB, 3, None)

    def holds(self, users: int, alone: AloneUse) -> int | None:
        each = self.memory_bytes // users
        assert alone.peak_bytes is not None
        return each if each >= alone.peak_bytes else None

    def holds_memory(self) -> bool:
        return self.memory_bytes > 0

    def crowd(self, users: int, crowd: CrowdSearch | SteadyCrowd, budget_s: float, pressure: str = "") -> CrowdUse:
        self.launched.append((pressure or type(crowd).__name__, users))
        self.clock_s += 5 + users
        if users > self.fits:
            return CrowdUse(out_of_memory=True)
        shifts = [self.chance.gauss(0, self.launch_noise) for _ in range(users)]
        until_s = self.clock_s + budget_s
        while (awake := crowd.next_users()) is not None and self.clock_s < until_s:
            self.clock_s += 0.8 * awake
            noisy = [rate * math.exp(self.chance.gauss(0, self.round_noise)) for rate in self.rates(awake)]
            whole = self.pressed if pressure else 1.0
            crowd.take(awake, {user: math.log(whole * rate) + shifts[user] for user, rate in enumerate(noisy)})
        return CrowdUse(busy=min(self.tokens, float(users)))

    def tell(self, line: str) -> None:
        pass


def found_on(machine: Bucket, keep: float = 0.5, budget_s: float = 7200.0, most: int | None = None) -> Carried:
    run = CapacityRun(machine, "bucket", Requirement("keep", keep), budget_s, most, now_s=lambda: machine.clock_s)
    return run.run()


def test_a_bucket_of_known_size_is_found_and_confirmed() -> None:
    """2.2 tokens are enough for four users of whom each keeps half, and not for five."""
    machine = Bucket(2.2)
    found = found_on(machine)
    assert (found.users, found.settled, found.binding, found.why) == (4, True, "processors", "")
    assert {pressed.resource: pressed.standing for pressed in found.pressures} == dict.fromkeys(
        ("cpu", "dram"), Standing.HELD
    )
    assert [len(found.confirmed[users].means) for users in (4, 5)] == [4, 5]
    assert machine.launched[0] == ("CrowdSearch", 6)
    steady = [users for kind, users in machine.launched if kind == "SteadyCrowd"]
    assert steady[:6] == [4, 5, 5, 4, 4, 5]


def test_memory_binds_to_the_byte() -> None:
    """Three gibibytes hold three users of one; a byte less holds two."""
    for memory_bytes, users in ((3 * GIB, 3), (3 * GIB - 1, 2)):
        found = found_on(Bucket(8.0, memory_bytes=memory_bytes))
        assert (found.memory_users, found.users, found.settled, found.by_memory) == (users, users, True, True)
        assert (found.binding, found.memory_bytes) == ("memory", memory_bytes // users)
    assert "not hold a single" in found_on(Bucket(8.0, memory_bytes=GIB - 1)).why


def test_a_search_often_ended_by_memory_leaves_time_to_confirm() -> None:
    machine = Bucket(16.0, fits=2)
    found = found_on(machine, budget_s=200.0)
    assert machine.launched[:4] == [("CrowdSearch", users) for users in (16, 15, 14, 13)]
    assert machine.launched[4:8] == [("SteadyCrowd", users) for users in (2, 2, 2, 3)]
    assert (found.users, found.settled, found.by_memory) == (2, True, True)
    assert found.seconds < 200.0


def test_page_cache_that_the_kernel_gives_back_is_no_need() -> None:
    assert needed_bytes({"memory_peak_bytes": 8 * GIB, "memory_cache_bytes": 7 * GIB}) == GIB
    assert needed_bytes({"memory_peak_bytes": GIB, "memory_cache_bytes": None}) == GIB
    assert needed_bytes({}) is None


def test_a_single_user_is_bound_by_processors_as_it_is_alone() -> None:
    found = found_on(Bucket(1.3), keep=0.7)
    assert (found.users, found.settled, found.busy, found.binding) == (1, True, 1.0, "processors")


def test_users_may_hold_together_yet_fail_beside_another_kind() -> None:
    found = found_on(Bucket(2.2, pressed=0.5))
    assert found.settled
    assert [pressed.standing for pressed in found.pressures] == [Standing.FAILED] * 2
    unheld = found_on(Bucket(2.2, memory_bytes=0))
    assert (unheld.users, unheld.memory_users, unheld.pressures) == (4, None, ())
    assert "memory is not held" in unheld.untried
    hurried = found_on(Bucket(2.2), budget_s=275.0)
    assert (hurried.settled, hurried.pressures) == (True, ())
    assert hurried.untried == "cpu: the budget was spent; dram: the budget was spent"


def test_where_there_is_no_answer_it_says_why() -> None:
    assert found_on(Bucket(2.2, flaw="It is INVALID.")).why == "It is INVALID."
    poor = Bucket(2.2)
    run = CapacityRun(poor, "bucket", Requirement("rate", 3.0), 600.0, now_s=lambda: poor.clock_s)
    assert (run.run().users, run.run().why) == (0, NOBODY)
    # At the very edge noise never lets tell, and the budget ends it.
    edge = found_on(Bucket(2.0, launch_noise=0.03), budget_s=900.0)
    assert not edge.settled
    assert edge.why == "noise"


@pytest.mark.parametrize(("step", "most", "users"), [(1, 3, 3), (2, 5, 4)])
def test_no_more_users_are_tried_than_the_caller_allows(step: int, most: int, users: int) -> None:
    machine = Bucket(8.0, step=step)
    found = found_on(machine, most=most)
    assert (found.users, found.settled, found.by_memory, found.binding) == (users, True, False, "")
    assert max(users for _, users in machine.launched) == users


@pytest.mark.slow
def test_nineteen_of_twenty_buckets_are_right_and_none_far_off() -> None:
    """Sizes lie in the middle between two numbers of users; noise is that of real launches: 3 %, rounds 8 %."""
    chance, off = random.Random(7), []
    for seed in range(20):
        users = chance.randrange(2, 13)
        machine = Bucket((users + 0.5) / 2, round_noise=0.08, launch_noise=0.03, seed=seed)
        off.append(found_on(machine).users - users)
    assert sum(each == 0 for each in off) >= 19, off
    assert max(map(abs, off)) <= 1, off


class Wanted:
    """Wants these numbers of users, and keeps the values of each round."""

    def __init__(self, *users: int) -> None:
        self.wanted, self.rounds = [*users], list[Any]()

    def take(self, users: int, values: Any) -> None:
        assert users == self.wanted.pop(0)
        self.rounds.append(values)

    def next_users(self) -> int | None:
        return self.wanted[0] if self.wanted else None


def crowd_of(
    searcher: Any,
    steps_ns: dict[int, int],
    observe: Observe = lambda one, user: [],
    of_rates: bool = False,
    **more: Any,
) -> list[Passed]:
    planned = InCrowds(searcher, 1, of_rates).plan(room(steps_ns, **({"budget_ns": 10**15} | more)))
    assert isinstance(planned, DesignPlan)
    assert planned.awake_ns == len(steps_ns) * planned.expected_ns
    return carried_out(planned.rounds, observe)[0]


def test_a_round_puts_a_crowd_before_and_after_its_users_alone() -> None:
    blocks = [one.block for one in crowd_of(Wanted(2, 3), dict.fromkeys(range(4), 10 * MS))]
    opening, rounds = blocks[:3], blocks[3:]
    assert [([*block.awake], block.counts) for block in opening] == [([0, 1, 2, 3], False), ([0], False), ([3], False)]
    assert [block.index for block in blocks] == list(range(len(blocks)))
    for number, users in ((1, 2), (2, 3)):
        own = [block for block in rounds if block.round == number]
        assert [block.kind for block in own] == [ALL, *[ONLY] * users, ALL]
        assert [*own[0].awake] == [*own[-1].awake] == list(range(users))
        assert sorted(user for block in own[1:-1] for user in block.awake) == list(range(users))
    # Three in one slice have turns: ten steps of each take three times as long.
    together, alone = (next(b.lasting_ns for b in rounds if b.round == 2 and b.kind == kind) for kind in (ALL, ONLY))
    assert together - alone > 50 * MS


def test_crowd_blocks_last_by_the_steps_of_users_alone() -> None:
    """The first makes a step in 11 ms, and the last in 30."""

    def observe(one: Passed, user: int) -> list[Observed]:
        step_ns = {0: 11 * MS, 3: 30 * MS}.get(user, 0) if one.block.kind == ONLY else 90 * MS
        return [] if one.block.counts or not step_ns else [row(one.end_ns - step_ns, one.end_ns)]

    passed = crowd_of(Wanted(*[4] * 99), dict.fromkeys(range(4), 80 * MS), observe, budget_ns=20_000 * MS)
    opening, round_ = passed[:3], passed[3:9]
    assert max(one.block.lasting_ns for one in opening) <= 580 * MS
    measured = [one.block.lasting_ns - max(one.block.left_out_ns.values()) for one in round_]
    assert measured[0] == 4 * 10 * 30 * MS
    alone = [(sum(one.block.awake), ns // MS) for one, ns in zip(round_, measured, strict=True)][1:-1]
    assert sorted(alone) == [(0, 200), (1, 200), (2, 200), (3, 300)]
    assert 10_000 * MS < passed[-1].end_ns <= 20_000 * MS


@pytest.mark.parametrize("of_rates", [False, True])
def test_a_round_is_worth_what_its_users_did_in_it(of_rates: bool) -> None:
    """The first two of three are awake: 40 items a second together, 100 alone; no observation near a border counts."""

    def observe(one: Passed, user: int) -> list[Observed]:
        rate = 100 if len(one.block.awake) == 1 else 40 if len(one.block.awake) == 2 else 1
        observed = [
            row(one.end_ns - (6 - at) * 10 * MS, one.end_ns - (5 - at) * 10 * MS, rate / 100) for at in range(5)
        ]
        # At once behind a thaw it is faster than it can be.
        return [row(one.start_ns + 1, one.start_ns + 10 * MS, 1000.0), *observed]

    searcher = Wanted(3, 2)
    passed = crowd_of(searcher, dict.fromkeys(range(3), 10 * MS), observe, of_rates)
    assert searcher.rounds[1] == pytest.approx(dict.fromkeys(range(2), math.log(40 if of_rates else 0.4)))
    assert InCrowds(searcher, 1).meetings(3, passed) == [(0, 1, 2), (0, 1)]
    # Who was not seen has no value.
    unseen = Wanted(2)
    crowd_of(unseen, dict.fromkeys(range(3), 10 * MS))
    assert unseen.rounds == [{}]


def records(users: int, rounds: int, step_ms: float, timed: bool = True) -> list[Record]:
    """Records of a launch whose steps take so long beside each other, a tenth alone, and longer near borders."""
    blocks = [one.block for one in crowd_of(Wanted(*[users] * rounds), dict.fromkeys(range(users), MS))]
    made = []
    for user in range(users):
        observations, steps_ns = [], []
        for block in blocks:
            if user in block.awake and block.counts:
                for kept, factor in ((False, 9.0), (True, 1.0)):
                    alone = 0.1 if block.kind == "only" else 1.0
                    steps_ns.append([round(step_ms * (1 + user / 10) * factor * alone * MS)] * 20)
                    place = {"block": block.index, "kind": block.kind, "round": block.round}
                    observations.append(Observed(0, 1, 20.0, 0, kept=kept, **place))
        facts = {"tenant": user, "tenants": users, "outcome": "completed", "completed": True, "invalid": False}
        observed = {"steps_ns": steps_ns} if timed else {}
        made.append(cast(Record, SimpleNamespace(observations=observations, observed=observed, blocks=None, **facts)))
    return made


def test_each_round_has_the_p95_step_time_of_each_user() -> None:
    rows = p95_rounds(records(3, 4, 20.0))
    assert len(rows) == 4
    assert all(row == pytest.approx({user: -math.log(0.02 * (1 + user / 10)) for user in range(3)}) for row in rows)
    assert p95_rounds(records(2, 4, 20.0, timed=False)) == []


def test_a_search_by_step_times_launches_each_user_count(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[int] = []

    def launch(self: Any, users: int, crowd: Any, budget_s: float, pressure: str, folder: str) -> list[Record]:
        launched.append(users)
        return records(users, 4, 10.0 * users)

    monkeypatch.setattr(SuiteLaunches, "_launch_crowd", launch)
    launches = object.__new__(SuiteLaunches)
    launches._requirement, launches.label = Requirement("p95", 0.065), "decode"
    search = CrowdSearch(launches._requirement, 8)
    assert launches.crowd(8, search, 60.0).flaw == ""
    # Of five the slowest takes 50 ms x 1.4, of four 40 ms x 1.3.
    assert (search.held, search.failed) == (4, 5)
    assert launched == [1, 2, 4, 8, 6, 5]
    monkeypatch.setattr(SuiteLaunches, "_launch_crowd", lambda self, users, *rest: records(users, 4, 1.0, timed=False))
    assert "--p95 is for jobs that serve" in launches.crowd(2, CrowdSearch(launches._requirement, 2), 60.0).flaw
