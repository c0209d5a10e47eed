from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from cotenant.launch.allowances import Allowance
from cotenant.launch.endings import Ending, Patience
from cotenant.launch.heading import tenancy
from cotenant.launch.inbox import ReadyMessage
from cotenant.launch.limits import GRACE_S, RANKS_GRACE_S, STOP_LIMIT_S, Limits, after_stop, grace, late
from cotenant.launch.load import MeasuredLoad, expected_s
from cotenant.launch.prepared import PreparedSuite
from cotenant.launch.rank import RankPhase
from cotenant.machine.topology import discover
from cotenant.meters.meters import Meters
from cotenant.stats.budget import Amount
from launch.resolving import options
from tenants.suites import ROOT

LIMITS = Limits(timeout_s=100, ready_limit_s=10)
ODD = Ending("failed", "It was odd.")


def tenant(phase: RankPhase = RankPhase.JOINED, **fields: Any) -> Any:
    return SimpleNamespace(all_ranks=lambda wanted: wanted <= phase, spec=SimpleNamespace(foreign=None), **fields)


@pytest.mark.parametrize("on_oom", ["group", "process"])
def test_the_backend_hears_who_ends_when_memory_is_full(on_oom: str) -> None:
    words = ["--jobs", str(ROOT / "profiles/cpu.json"), "--name", "toy_reg", "--isolation", "none", "--on-oom", on_oom]
    suite = PreparedSuite(options(*words, there=discover()), discover())
    assert suite.backend.oom_group == (on_oom == "group")


def test_a_heading_without_slices_asks_the_host_what_they_take() -> None:
    words = ["--jobs", str(ROOT / "profiles/cpu.json"), "--name", "toy_reg", "--isolation", "affinity"]
    said = tenancy(PreparedSuite(options(*words, there=discover()), discover()))
    assert said.endswith("memory NOT limited (isolation affinity; --isolation require says what it takes)")


def test_those_that_are_behind_end() -> None:
    tenants = [tenant(phase) for phase in (RankPhase.READY, RankPhase.JOINED, RankPhase.DONE)]
    for elapsed_s, loaded, who, flag in [
        (9.9, False, [], ""),
        (10, False, [1], "--ready-timeout"),
        (10, True, [], ""),
        (99.9, True, [], ""),
        (100, True, [0, 1], "--timeout"),
        (100, False, [1], "--timeout"),
    ]:
        behind = late(tenants, LIMITS, elapsed_s, loaded)
        assert [tenant for tenant, _ in behind] == [tenants[index] for index in who], (elapsed_s, loaded)
        for _, ending in behind:
            assert (ending.outcome, ending.message.rpartition(" ")[2]) == ("timeout", f"{flag}.")


def test_a_failed_tenant_is_waited_for_once() -> None:
    """Later reports of its other ranks do not extend the time."""
    soon = time.monotonic() + 0.5
    for several, limit_s in ((True, RANKS_GRACE_S), (False, GRACE_S)):
        begin_s = time.monotonic()
        patience = grace(tenant(several=several, patience=None), ODD)
        assert begin_s + limit_s <= patience.until_s <= time.monotonic() + limit_s
        assert patience.ending == ODD
        assert grace(tenant(several=several, patience=Patience(soon, None)), ODD) == Patience(soon, ODD)


def test_after_stop_the_longest_batch_of_any_rank_counts() -> None:
    ranks = {
        rank: SimpleNamespace(longest_batch_s=lambda number, rank=rank: 100 * (rank + 1) / number) for rank in (0, 1)
    }
    begin_s, limit_s = time.monotonic(), STOP_LIMIT_S + 60
    patience = after_stop(tenant(ranks=ranks), 10)
    assert begin_s + limit_s <= patience.until_s <= time.monotonic() + limit_s
    assert patience.ending == Ending("timeout", "It did not end within 120 s after STOP.")


def test_a_step_longer_than_the_budget_is_said_before_go() -> None:
    ranks: Any = [SimpleNamespace(ready=ReadyMessage(1, 1, 0, [step_s * 10**9] * 2)) for step_s in (5, 26)]
    assert (
        Limits(budget_s=6)
        .long_step(ranks)
        .startswith("warning: A step takes 26 s, and the budget is 6 s: the launch ends with the step after 16 s.")
    )
    assert Limits(budget_s=27).long_step(ranks) == Limits().long_step(ranks) == ""


def test_a_record_names_what_changes_what_is_measured() -> None:
    assert Limits(ready_limit_s=5).policies() == {"on_oom": "group"}
    every: Any = {"on_oom": "process", "budget_s": 2.5, "until_interval": 0.01, "settle_s": 3, "at_least_s": 0.1}
    assert Limits(**every).policies() == every


def test_repeat_grows_until_the_fastest_tenant_runs_long_enough() -> None:
    requested = Amount(number=5, repeat=6, skip=2)
    ranks: Any = [
        SimpleNamespace(ready=ReadyMessage(5, 6, 2, [9, step_ns, step_ns])) for step_ns in (1_000_000, 3_000_000)
    ]
    assert Limits().given(ranks) == requested
    assert Limits(at_least_s=0.1).given(ranks) == Amount(5, 22, 2)
    lasting = Limits(settle_s=3, at_least_s=0.1)
    go = MeasuredLoad(lasting, {0: Allowance(requested, requested)}, Meters(()), ()).gos[0]
    assert (go.settle_ns, go.given) == (3_000_000_000, requested)
    assert expected_s(ranks, Amount(5, 22, 2), settle_s=3) == pytest.approx(3 + 22 * 5 * 0.003)
