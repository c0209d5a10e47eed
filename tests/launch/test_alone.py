"""Turns alone at the end of launches without blocks: real processes, who cannot have a turn, and what is kept."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from cotenant.isolation.unenforced import UnenforcedSlice
from cotenant.launch import alone
from cotenant.launch.alone import WentOn, observations_alone
from cotenant.launch.design.designs import AllAtOnce
from cotenant.launch.limits import Limits
from cotenant.launch.outcome import LaunchResult
from cotenant.launch.records import _findings
from launch.turning import SUMS, Turning, outcomes, spans
from patience import HANG_S
from tenants.suites import TENANTS, Suites, found, job

WHY = "somebody counts"
COUNTED = (*SUMS, "--number", "3")
DIES = f"""
import os, sys, time
from pathlib import Path
sys.path.insert(0, {str(TENANTS)!r})
import sums
from cotenant.protocol.client import Rendezvous
def observation(self, **fields):
    send(self, **fields)
    if os.environ["COTENANT_TENANT"] == "1" and fields["index"] == 8: seen.touch()
    if os.environ["COTENANT_TENANT"] == "0" and seen.exists() and time.time() > seen.stat().st_mtime + 1: os._exit(3)
seen = Path(os.environ["COTENANT_SOCKET"]).with_name("seen")
send, Rendezvous.observation = Rendezvous.observation, observation
sys.exit(sums.main())
"""
"""The first tenant ends a moment after the second one has made all its observations beside it."""


def went_on(result: LaunchResult) -> WentOn:
    assert result.went_on is not None
    return result.went_on


@pytest.mark.parametrize(
    ("seconds", "count"), [(0.01, 200), (0.4, 6), (1.0, 6), (1.66, 6), (2.5, 4), (4.0, 2), (60.0, 2)]
)
def test_a_turn_fills_two_seconds_or_an_interval_within_ten(seconds: float, count: int) -> None:
    assert observations_alone(seconds * 1e9) == count


def test_tenants_go_on_alone_one_after_the_other(turning: Turning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "QUICK_KEPT_S", 0.3)
    result = turning.launch(*COUNTED, design=AllAtOnce(WHY))
    assert outcomes(result) == ["completed", "completed"]
    end = went_on(result)
    assert ([*end.turns], end.missed, result.unconducted) == ([0, 1], {}, WHY)
    first, second = end.turns.values()
    assert end.together_ns < first.start_ns < first.end_ns < second.start_ns
    for index, tenant in enumerate(result.tenants):
        own, other = end.turns[index], end.turns[1 - index]
        assert sum(ended <= end.together_ns for _, ended in spans(tenant)) >= 9
        assert sum(own.start_ns <= start and ended <= own.end_ns for start, ended in spans(tenant)) >= 6
        assert not [span for span in spans(tenant) if other.start_ns < span[0] and span[1] < other.end_ns]
        assert result.gos[index].together.given.repeat == 9


def test_without_a_freezer_only_the_first_user_runs_alone(turning: Turning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnenforcedSlice, "held_by", None)
    monkeypatch.setattr(alone, "QUICK_KEPT_S", 0.2)
    result = turning.launch(*COUNTED, design=AllAtOnce(WHY))
    assert outcomes(result) == ["completed", "completed"]
    assert [*went_on(result).turns] == [0]
    assert went_on(result).missed == {1: "nothing here can hold it still until no other user runs"}


def test_a_turn_is_left_out_if_the_time_limit_leaves_no_time(turning: Turning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "LEAVING_S", 2 * HANG_S)
    result = turning.launch(*COUNTED, design=AllAtOnce(WHY), limits=Limits(timeout_s=HANG_S))
    assert outcomes(result) == ["completed", "completed"]
    missed = "--timeout leaves no time to observe it alone"
    assert (went_on(result).turns, went_on(result).missed) == ({}, {0: missed, 1: missed})
    launch: Any = SimpleNamespace(is_part=False)
    told = {
        (one.rule, one.sentence.partition(":")[0], one.remedy.partition(",")[0]) for one in _findings(result, launch)
    }
    assert ("not_alone", "The rate that users like user 0 keep is unknown", "Use --baseline whole") in told


@pytest.mark.slow
def test_a_user_dying_alone_fails_and_the_next_has_its_turn(turning: Turning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "QUICK_KEPT_S", 1.5)
    result = turning.launch(sys.executable, "-c", DIES, *COUNTED[1:], design=AllAtOnce(WHY))
    assert outcomes(result) == ["failed", "completed"]
    assert ([*went_on(result).turns], went_on(result).missed) == ([1], {0: "it ended while it was alone"})


@pytest.mark.v1
def test_a_tenant_of_two_processes_goes_on_alone_by_its_count(v1: Suites) -> None:
    """The launch has no blocks, and says why."""
    ranks = job("ranks.sh", 2, "--repeat", 12, "--number", 2, "--sleep", 0.01, "--sums", 20)
    ended = v1.run([ranks], "--users", 2, "--baseline", "blocks", status=0)
    together, alone_, second = sorted(v1.records(), key=lambda record: (record["tenant"], record["solo"]))
    assert [record["name"] for record in (together, alone_, second)] == ["job", "job.solo", "job"]
    assert [record["baseline"] for record in (together, alone_, second)] == [None, "quick", None]
    assert (together["blocks"], together["kept"]) == (None, None)
    (why,) = found(together, "no_blocks")
    assert "a user has several processes, which wait for each other" in why["sentence"]
    assert not found(alone_, "no_blocks")
    assert "1 launch (baseline blocks" in ended.stdout
    assert f"job: {why['sentence']} {why['remedy']}\n" in ended.stdout
    assert re.search(r"1/1 job .* sum/s; alone .* sum/s", ended.stdout)
    assert "keeps" in ended.stdout
    for record in (together, second):
        assert {len(rows) for rows in record["rank_observations"].values()} == {12}
    assert {len(rows) >= 6 for rows in alone_["rank_observations"].values()} == {True}


@pytest.mark.slow
def test_a_stepless_command_is_observed_alone_in_whole_runs(loose: Suites) -> None:
    loose.executes("/bin/sleep", "0.5", flags="--runs 6 --baseline blocks --budget 2", status=0)
    alone_, *together = sorted(loose.records(), key=lambda record: not record["solo"])
    assert [record["baseline"] for record in (alone_, *together)] == ["quick", None, None]
    assert len(alone_["observations"]) >= 4
    assert all(row["end_ns"] - row["start_ns"] >= 500_000_000 for row in alone_["observations"])
