"""The events of a launch that an observer gets, and that it gets none while tenants are timed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cotenant.launch.load import GO_DELAY_NS, expected_s
from cotenant.launch.outcome import LaunchResult
from launch.turning import outcomes
from tenants.fakes import launched, specs
from tenants.suites import TENANTS

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


def told_while_timed(heard: Heard, result: LaunchResult) -> list[int]:
    """Return when it was told something between GO and the last observation, which is a second and a half later."""
    t0_ns = result.gos[0].t0_ns
    last_ns = max(ending.ranks[0].observations[-1].end_ns for ending in result.tenants)
    assert last_ns - t0_ns > 1_500_000_000
    return [at for at in heard.at_ns if t0_ns - GO_DELAY_NS <= at <= last_ns]


def test_nothing_is_told_between_go_and_the_last_done(tmp_path: Path) -> None:
    heard = Heard()
    result = launched(specs(tmp_path, sys.executable, SUMS, *PACED), observer=heard)
    assert outcomes(result) == ["completed", "completed"]
    assert told_while_timed(heard, result) == []
    calls = heard.but_ticks()
    assert [calls[0], calls[-1]] == [("building", 0), ("stopping",)]
    assert [call[1] for call in calls if call[0] == "building"] == [0, 1, 2]
    ((_, about_s),) = [call for call in calls if call[0] == "measuring"]
    ranks = [ending.ranks[0] for ending in result.tenants]
    assert about_s == expected_s(ranks, result.gos[0].given, settle_s=0)


def test_a_slow_build_ticks(tmp_path: Path) -> None:
    """Every second; the tenants build until they have been told of two."""

    class Patient(Heard):
        def tick(self) -> None:
            self.__getattr__("tick")()
            if self.calls.count(("tick",)) == 2:
                (tmp_path / "built").touch()

    heard, begin_ns = Patient(), time.perf_counter_ns()
    building = f"until [ -e {tmp_path}/built ]; do sleep 0.05; done"
    launched(specs(tmp_path, "/bin/sh", "-c", building), observer=heard)
    assert 2 <= heard.calls.count(("tick",)) <= 1 + (time.perf_counter_ns() - begin_ns) / 1e9


def test_a_death_while_timed_is_reported_after_all_are_done(tmp_path: Path) -> None:
    heard = Heard()
    result = launched(specs(tmp_path, sys.executable, "-c", DIES_IN_ITS_FOURTH, SUMS, *PACED), observer=heard)
    assert outcomes(result) == ["failed", "completed"]
    assert told_while_timed(heard, result) == []
    assert [call[0] for call in heard.but_ticks()][-2:] == ["measuring", "stopping"]
