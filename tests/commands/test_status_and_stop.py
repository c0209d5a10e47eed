"""Another terminal looks at a suite, and ends it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from commands.calling import Capture, call
from cotenant.commands.status import progress_lines, suite_of, writes_to
from cotenant.isolation.lock import SuiteLock
from cotenant.results.journal import Ended, Launched, Started
from cotenant.results.store import Reserve
from tenants.suites import RUN, Suites, job, until


def ours(suites: Suites, *words: str) -> subprocess.CompletedProcess[str]:
    return suites.typed([*RUN, *words], 60)


@pytest.mark.v1
def test_a_suite_is_seen_and_ended_from_elsewhere(v1: Suites) -> None:
    runner = v1.start([job("sums.py", "--repeat", 1_000_000, "--sleep", 0.01, "--sums", 1, name="long")], "--users", 1)
    until(v1.inhabitants, "it runs")
    seen = ours(v1, "status")
    assert seen.returncode == 0, seen.stderr
    assert f"A suite runs: pid {runner.pid}, " in seen.stdout
    assert "jobs, repetition 0, in" in seen.stdout
    document = json.loads(ours(v1, "status", "--json").stdout)
    suite = document.pop("suite")
    running = {"running": True, "pid": runner.pid}
    assert document == {"schema": "cotenant-status-1", **running, "output": str(v1.output)}
    since = datetime.fromisoformat(suite.pop("since"))
    assert datetime.now(UTC) - since < timedelta(minutes=2)
    counted = {"suite": "jobs", "uid": 0, "launches": 1, "done": 0, "next": "long"}
    assert suite == counted | {"runs": True, "ended": None, "interrupted": None, "elsewhere": None}
    assert re.search(r"0 of 1 launch done\.\nFor \d+ s: long\.\n", seen.stdout)
    ended = ours(v1, "stop")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(f"Stopping pid {runner.pid}, ")
    assert ended.stdout.endswith(
        "It has ended; its records stay. A suite goes on with --resume, `tune` by the same command.\n"
    )
    assert runner.wait() == 130
    assert ours(v1, "stop").stdout == "No suite runs on this machine.\n"
    after = ours(v1, "status")
    assert after.returncode == 1
    assert "No suite runs" in after.stdout
    assert "0 of 1 launch done." in after.stdout
    assert "It was stopped by SIGTERM at" in after.stdout
    end = json.loads(ours(v1, "status", "--json").stdout)
    assert (end["running"], end["pid"]) == (False, None)
    assert (end["suite"]["runs"], end["suite"]["interrupted"], end["suite"]["done"]) == (False, "SIGTERM", 0)
    assert end["suite"]["ended"] == end["suite"]["since"]


def test_another_users_suite_is_not_said_to_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def refused(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refused)
    monkeypatch.setattr(os, "getuid", lambda: Path("/proc/self").stat().st_uid + 1)
    owner = psutil.Process().username()
    with SuiteLock(tmp_path / "lock"):
        status, printed, errors = call(capsys, "stop")
    assert (status, printed) == (2, "")
    assert errors.startswith(f"cotenant: The suite that runs is another user's: pid {os.getpid()} of {owner}, ")
    assert errors.endswith(f" sudo kill {os.getpid()}\n")


def test_a_suite_elsewhere_does_not_write_to_this_directory(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with contextlib.closing(Reserve(elsewhere)):
        assert writes_to(os.getpid(), elsewhere)
        assert not writes_to(os.getpid(), tmp_path)
    assert writes_to(0, tmp_path)


def test_where_nothing_has_begun_the_document_says_so(tmp_path: Path, capsys: Capture) -> None:
    status, printed, errors = call(capsys, "status", "--json", "--outdir", tmp_path)
    assert (status, errors) == (1, "")
    running = {"running": False, "pid": None}
    assert json.loads(printed) == {"schema": "cotenant-status-1", **running, "output": str(tmp_path), "suite": None}


def test_how_far_a_suite_is() -> None:
    noon, output = datetime(2026, 1, 1, 12, tzinfo=UTC), Path("/out")
    minutes = iter(range(60))

    def time() -> str:
        return (noon + timedelta(minutes=next(minutes))).isoformat()

    def start(resumed: bool = False, uid: int = 0, host: str = "h") -> Started:
        return Started(
            suite="s", uid=uid, host=host, time=time(), launches=("a", "b.solo T1"), conditions={}, resumed=resumed
        )

    def launch(label: str, host: str = "") -> Launched:
        return Launched(suite="s", uid=0, label=label, time=time(), outcomes=("completed",), records={}, host=host)

    def lines(*entries: Started | Launched | Ended, runs: bool = True) -> list[str]:
        return list(progress_lines(suite_of(entries, runs, "h"), output, noon + timedelta(minutes=10)))

    assert lines() == ["No suite has begun in /out."]
    began, first, other = start(), launch("a"), start(uid=1)
    assert lines(began, first) == ["s, repetition 0, in /out: 1 of 2 launches done.", "For 540 s: b, user 1 alone."]
    assert lines(began, first, runs=False)[1] == "It was cut off. With --resume it goes on with b, user 1 alone."
    assert lines(began, first, other)[0] == "s, repetition 1, in /out: 0 of 2 launches done."
    again = start(resumed=True)
    assert lines(began, first, again)[0] == "s, repetition 0, in /out: 1 of 2 launches done."
    whole = lines(began, first, again, launch("b.solo T1"), Ended(suite="s", uid=0, time=time()))
    assert whole == ["s, repetition 0, in /out: 2 of 2 launches done.", "It ended at 2026-01-01T12:05:00Z."]
    anew = lines(began, first, start())
    assert anew[0] == "s, repetition 0, in /out: 0 of 2 launches done."
    anew_and_on = lines(began, first, launch("b.solo T1"), start(), first, start(resumed=True))
    assert anew_and_on == ["s, repetition 0, in /out: 1 of 2 launches done.", "For 60 s: b, user 1 alone."]
    # Another host runs the same repetition into the same directory.
    of_other = [start(host="g"), launch("a", "g"), launch("b.solo T1", "g")]
    both = [began, *of_other, Ended(suite="s", uid=0, time="t", host="g")]
    assert lines(*both)[0] == "s, repetition 0, in /out: 0 of 2 launches done."
    assert lines(*both, runs=False) == ["s, repetition 0, in /out: 2 of 2 launches done.", "It ended at tZ."]
    assert lines(*both[:-1], runs=False)[1] == "It began on g, where `status` says whether it still runs."
