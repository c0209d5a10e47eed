"""The amounts that GO carries, and when a launch has measured enough; no process is started."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cotenant.isolation.backend import Counters
from cotenant.launch.allowances import Allowance, allowances
from cotenant.launch.inbox import ReadyMessage
from cotenant.launch.limits import Limits
from cotenant.launch.load import GO_DELAY_NS, Enough, MeasuredLoad, expected_s
from cotenant.launch.rank import Go, Rank, RankPhase
from cotenant.launch.tenant import Tenant, TenantPhase
from cotenant.meters.meters import Meters
from cotenant.protocol.messages import ProtocolError
from cotenant.results.record import Observed
from cotenant.stats.budget import Amount

MS = 1_000_000


@dataclass
class Link:
    """Remembers the messages that were sent over it."""

    sent: list[str] = field(default_factory=list)

    def send(self, kind: str, **fields: Any) -> None:
        self.sent.append(kind)


def rank(*warm_up_ms: float, number: int = 10, repeat: int = 20, skip: int = 5) -> Rank:
    warm_up_ns = [round(batch_ms * MS) for batch_ms in warm_up_ms]
    return Rank(cast(Any, Link()), 0, 1, ready=ReadyMessage(number, repeat, skip, warm_up_ns))


def tenant(index: int = 0, *rates: float, ranks: int = 1, cell: str = "") -> Tenant:
    """A tenant that has made observations of these rates in items per second."""
    made: Any = object.__new__(Tenant)
    made.spec = SimpleNamespace(slice=SimpleNamespace(tenant=index), cell=cell)
    made.ranks = {n: Rank(cast(Any, Link()), n, ranks, phase=RankPhase.GOING) for n in range(ranks)}
    made.phase, made.ending = TenantPhase.RUNNING, None
    for process in made.ranks.values():
        observe(process, *rates)
    return cast(Tenant, made)


def observe(process: Rank, *rates: float) -> None:
    for rate in rates:
        process.observations.append(Observed(0, 1000 * MS, rate, 0))


def sent(*tenants: Tenant) -> list[list[str]]:
    return [cast(Any, process.link).sent for measured in tenants for process in measured.ranks.values()]


def enough_is_known(measured: Tenant) -> bool:
    return measured.ranks[0].phase is RankPhase.ENOUGH


def test_what_a_budget_leaves_of_the_requested_amount() -> None:
    """The slowest of all decides for all; where nobody has timed a batch, all is given."""
    assert Limits().given([rank(9, 5)]) == Amount(10, 20, 5)
    assert Limits(budget_s=1).given([rank(900, 10, 11), rank(900, 25, 30)]) == Amount(2, 20, 5)
    assert Limits(budget_s=1).given([rank(), rank()]) == Amount(10, 20, 5)
    with pytest.raises(ProtocolError, match=r"number, repeat and skip: \[\(10, 20, 5\), \(10, 21, 5\)\]"):
        Limits(budget_s=1).given([rank(1), rank(1, repeat=21)])


def test_load_time_is_estimated_by_the_slowest_last_warm_up() -> None:
    unready = Rank(cast(Any, Link()), 0, 1)
    for seconds, ranks in [
        (0.4, [rank(9, 2), rank(9, 1)]),
        (0.4, [rank(2), rank()]),
        (None, [rank(), rank()]),
        (None, [unready]),
        (None, [rank(0), rank(-5)]),
    ]:
        assert expected_s(ranks, Amount(20, 10, 2), settle_s=0) == seconds


SLOW, FAST = Amount(10, 20, 5), Amount(1, 10, 3)


def of_mix(index: int, cell: str, batch_ms: float, amount: Amount, ranks: int = 1) -> Tenant:
    """A tenant that is ready, its warm-up timed."""
    made = tenant(index, ranks=ranks, cell=cell)
    for process in made.ranks.values():
        process.ready = rank(10_000, batch_ms, **asdict(amount)).ready
    return made


def test_equal_cells_of_a_mix_measure_equally_much() -> None:
    tenants = [of_mix(0, "slow", 5, SLOW), of_mix(1, "fast", 1, FAST), of_mix(2, "slow", 4, SLOW)]
    given = allowances(tenants, Limits())
    assert given[0] == given[2]
    assert (given[0].least, given[1].least) == (SLOW, FAST)
    assert given[1].most.number == FAST.number
    assert given[1].most.repeat >= 4 * 1000, "a second of load, of 1 ms each, and what a wrong estimate takes"
    ranked = allowances([of_mix(0, "slow", 5, SLOW), of_mix(1, "fast", 1, FAST, ranks=2)], Limits())
    assert ranked[1].most.batches == 1000, "ranks cannot be told to end early"
    alike = allowances([of_mix(0, "slow", 5, SLOW), of_mix(1, "slow", 5, SLOW)], Limits())
    assert alike == dict.fromkeys((0, 1), Allowance(SLOW, SLOW))
    short = allowances(tenants[:2], Limits(budget_s=0.5))
    assert short[0].least.batches * 5 <= 500, "a budget bounds what decides"


def test_a_mix_ends_when_each_has_made_its_least() -> None:
    tenants = [of_mix(0, "slow", 5, SLOW), of_mix(1, "fast", 1, FAST), of_mix(2, "ranked", 1, FAST, ranks=2)]
    given = allowances(tenants, Limits())
    enough = Enough(Limits(), {index: Go(0, each.most) for index, each in given.items()}, given)
    made = [(20, 4000, 9), (19, 4000, 10), (20, 4000, 10)]
    for observations, ended in zip(made, (False, False, True), strict=True):
        for each, count in zip(tenants, observations, strict=True):
            for process in each.ranks.values():
                process.observations = [{}] * count
        enough.look(tenants, 0)
        assert [enough_is_known(each) for each in tenants] == [ended, ended, False]


STEADY = [100.0, 100.1, 99.9, 100.2, 99.8, 100.0]
SECOND = 1000 * MS


def until(share: float, skip: int = 0) -> Enough:
    return Enough(Limits(until_interval=share), dict.fromkeys(range(2), Go(0, Amount(1, 1000, skip))))


def spending(budget_s: float, skip: int = 0) -> Enough:
    """With a t0 a second after the clock began."""
    return Enough(Limits(budget_s=budget_s), dict.fromkeys(range(3), Go(SECOND, Amount(1, 1000, skip))))


def test_narrow_intervals_of_all_are_enough_and_it_is_said_once() -> None:
    tenants = [tenant(0, *STEADY), tenant(1, *STEADY)]
    enough = until(0.003)
    for _ in range(3):
        enough.look(tenants, 0)
    assert sent(*tenants) == [["enough"], ["enough"]]
    assert all(map(enough_is_known, tenants))


def test_one_that_has_not_shown_enough_keeps_all_at_work() -> None:
    for rates in ([], STEADY[:5], [90.0, 110.0, *STEADY[:4]], [0.0] * 9, [1e308] * 9):
        tenants = [tenant(0, *STEADY), tenant(1, *rates)]
        until(0.01).look(tenants, 0)
        assert sent(*tenants) == [[], []], rates
        assert not any(map(enough_is_known, tenants))


def test_narrowness_is_checked_again_as_observations_come_in() -> None:
    rates = [1.0, 1.0, 99.0, 99.0, 100.0, 100.0, 101.0, 101.0]
    for share, skip, is_enough in [(0.01, 2, True), (0.0099, 2, False), (0.01, 1, False)]:
        alone = tenant(0, *rates)
        until(share, skip).look([alone], 0)
        assert enough_is_known(alone) == is_enough, (share, skip)
    alone, enough = tenant(0, 90.0, 110.0, *[100.0] * 4), until(0.01)
    for _ in range(2):
        enough.look([alone], 0)
        assert not enough_is_known(alone)
        observe(alone.ranks[0], 100.0, 100.0)
    enough.look([alone], 0)
    assert enough_is_known(alone)


def test_the_more_there_is_the_rarer_the_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at thousands of observations takes milliseconds, and the runner has a hundredth of a processor."""
    looked: list[int] = []

    def wide(ordered: list[float]) -> float:
        looked.append(len(ordered))
        return 1.0

    monkeypatch.setattr("cotenant.launch.design.passed.relative_half_width", wide)
    alone, enough = tenant(0), until(0.01)
    for _ in range(2000):
        observe(alone.ranks[0], 1.0)
        enough.look([alone], 0)
    assert looked[:20] == list(range(1, 21))
    assert len(looked) < 130
    assert looked[-1] > 1900


def test_a_spent_budget_waits_for_an_interval_of_every_tenant() -> None:
    """Whatever has gone wrong with the time of a batch. Who is done is told nothing more."""
    several = [[*STEADY, *STEADY], [*STEADY, 100.0], [*STEADY, *STEADY]]
    tenants, enough = [tenant(number, *rates) for number, rates in enumerate(several)], spending(8.0, skip=2)
    tenants[2].ranks[0].phase = RankPhase.DONE
    enough.look(tenants, 19 * SECOND - 1)
    observe(tenants[1].ranks[0], 100.0)
    enough.look(tenants, 11 * SECOND - 1)
    assert sent(*tenants) == [[], [], []]
    for _ in range(2):
        enough.look(tenants, 11 * SECOND)
    assert sent(*tenants) == [["enough"], ["enough"], []]


def test_a_budget_and_its_grace_end_all_with_what_there_is() -> None:
    for budget_s, latest_s in ((8.0, 18), (60.0, 120)):
        tenants, enough = [tenant(0, 100.0), tenant(1)], spending(budget_s, skip=2)
        enough.look(tenants, (latest_s + 1) * SECOND - 1)
        assert sent(*tenants) == [[], []]
        enough.look(tenants, (latest_s + 1) * SECOND)
        assert sent(*tenants) == [["enough"], ["enough"]]


def test_no_limit_or_several_ranks_means_no_early_end() -> None:
    alone, ranked = tenant(0, *[100.0] * 50), tenant(0, *STEADY, ranks=2)
    Enough(Limits(), {0: Go(0, Amount(1, 1000, 0))}).look([alone], 10**6 * SECOND)
    until(0.5).look([ranked], 0)
    spending(8.0).look([ranked], 100 * SECOND)
    assert sent(alone) == [[]]
    assert sent(ranked) == [[], []]
    until(0.5).look([], 0)
    spending(8.0).look([], 100 * SECOND)


def load_of(measured: Tenant, amount: Amount, limits: Limits | None = None) -> MeasuredLoad:
    cast(Any, measured).live = type("Live", (), {"counters": Counters})()
    return MeasuredLoad(limits or Limits(), {0: Allowance(amount, amount)}, Meters(()), [measured])


def test_a_slow_look_at_the_hosts_processes_comes_before_t0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotenant.launch.load.WorkReadings", lambda tenants: time.sleep(2 * GO_DELAY_NS / 1e9))
    assert load_of(tenant(), Amount(1, 1, 0)).t0_ns > time.perf_counter_ns()


def test_by_blocks_the_end_is_said_once() -> None:
    measured = tenant(0, *STEADY)
    load: Any = load_of(measured, Amount(10, 20, 0), Limits(budget_s=2.0))
    load.conductor = SimpleNamespace(look=lambda: None, over=False)
    for change, said in (
        ({}, []),
        ({"over": True}, ["enough"]),
        ({}, ["enough"]),
    ):
        vars(load.conductor).update(change)
        load.look([measured], load.t0_ns + 10 * SECOND)
        assert sent(measured) == [said]
