"""The events of a launch that an observer gets, and that it gets none while tenants are timed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cotenant.launch.events import Interruption
from cotenant.launch.launch import Launch
from cotenant.launch.limits import Limits
from cotenant.launch.load import GO_DELAY_NS, expected_s
from cotenant.launch.outcome import LaunchResult
from cotenant.launch.rendezvous import Link, Rank
from cotenant.stats.budget import Amount
from tenants.fakes import FakeBackend, specs
from tenants.suites import TENANTS

MINUTE = Limits(timeout_s=60)
SUMS = str(TENANTS / "sums.py")
# Long enough for ticks to be missed, were there any.
PACED = ("--repeat", "20", "--number", "4", "--sleep", "0.02")
DIES_IN_ITS_FOURTH = """
import os, runpy, sys
from cotenant.protocol.client import Rendezvous
say = Rendezvous.observation
def observation(self, **fields):
    if fields["index"] == 3 and os.environ["COTENANT_TENANT"] == "0":
        os._exit(3)
    say(self, **fields)
Rendezvous.observation = observation
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Heard:
    """An observer that keeps its calls, each with its values, and when they came."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.at_ns: list[int] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        def hear(*values: object) -> None:
            self.calls.append((name, *values))
            self.at_ns.append(time.perf_counter_ns())

        return hear

    def but_ticks(self) -> list[tuple[Any, ...]]:
        return [call for call in self.calls if call != ("tick",)]


def t0_ns(result: LaunchResult) -> int:
    return result.gos[0].t0_ns


def test_nothing_is_told_between_go_and_the_last_done(tmp_path: Path, interruption: Interruption) -> None:
    heard, ranked = Heard(), specs(tmp_path, sys.executable, SUMS, *PACED)
    run = Launch(ranked, FakeBackend(), interruption, MINUTE, observer=heard)
    result = run.run()
    assert [ending.outcome for ending in result.tenants] == ["completed", "completed"]
    seen = [ending.ranks[0].observations for ending in result.tenants]
    last_ns = max(rows[-1]["end_ns"] for rows in seen)
    assert last_ns - t0_ns(result) > 1_500_000_000
    quiet = [at for at in heard.at_ns if t0_ns(result) - GO_DELAY_NS <= at <= last_ns]
    assert quiet == []
    calls = heard.but_ticks()
    assert [calls[0], calls[-1]] == [("building", 0), ("stopping",)]
    assert [call[1] for call in calls if call[0] == "building"] == [0, 1, 2]
    ((_, about_s),) = [call for call in calls if call[0] == "measuring"]
    ranks = [ending.ranks[0] for ending in result.tenants]
    assert about_s == expected_s(ranks, result.gos[0].given, settle_s=0)


def test_a_slow_build_ticks(tmp_path: Path, interruption: Interruption) -> None:
    """Every second; the tenants build until they have been told of two."""

    class Patient(Heard):
        def tick(self) -> None:
            self.__getattr__("tick")()
            if self.calls.count(("tick",)) == 2:
                (tmp_path / "built").touch()

    heard, begin_ns = Patient(), time.perf_counter_ns()
    building = f"until [ -e {tmp_path}/built ]; do sleep 0.05; done"
    Launch(specs(tmp_path, "/bin/sh", "-c", building), FakeBackend(), interruption, MINUTE, observer=heard).run()
    assert 2 <= heard.calls.count(("tick",)) <= 1 + (time.perf_counter_ns() - begin_ns) / 1e9


def test_a_tenant_that_dies_while_it_is_timed_is_no_news_before_the_others_are_done(
    tmp_path: Path, interruption: Interruption
) -> None:
    heard = Heard()
    planned = specs(tmp_path, sys.executable, "-c", DIES_IN_ITS_FOURTH, SUMS, *PACED)
    result = Launch(planned, FakeBackend(), interruption, MINUTE, observer=heard).run()
    assert [ending.outcome for ending in result.tenants] == ["failed", "completed"]
    last_ns = result.tenants[1].ranks[0].observations[-1]["end_ns"]
    assert [at for at in heard.at_ns if t0_ns(result) - GO_DELAY_NS <= at <= last_ns] == []
    assert [call[0] for call in heard.but_ticks()][-2:] == ["measuring", "stopping"]


def rank(warm_up_ns: list[int] | None) -> Rank:
    link = object.__new__(Link)
    made = Rank(link, 0, 1)
    made.ready = None if warm_up_ns is None else {"warm_up_ns": warm_up_ns}
    return made


def test_the_load_is_expected_to_take_what_the_slowest_last_warm_up_batch_says() -> None:
    warm_ups: list[tuple[float | None, list[list[int] | None]]] = [
        (0.4, [[9_000_000, 2_000_000], [9_000_000, 1_000_000]]),
        (0.4, [[2_000_000], []]),
        (None, [[], []]),
        (None, [None]),
        (None, [[0], [-5]]),
    ]
    for seconds, ranks in warm_ups:
        assert expected_s([rank(warm_up_ns) for warm_up_ns in ranks], Amount(20, 10, 2), settle_s=0) == seconds
