"""Repetitions of a suite by one command: their numbers and records, what ends them early, and --resume."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from cotenant.commands import suite_run
from cotenant.isolation.runs import RunName
from cotenant.launch.start import Options
from cotenant.launch.suite import SuiteResult, SuiteRun
from cotenant.report.progress import PlainView
from cotenant.suite.jobfile import Suite
from launch.test_interruption import ENDLESS, interrupt
from tenants.suites import Suites, job, until

SHORT = ("--number", 1, "--repeat", 8)


def test_repetitions_are_numbered_and_share_one_table(loose: Suites) -> None:
    ended = loose.run([job("sums.py", *SHORT)], "--users", 1, "--uid", 2, "--repetitions", 3, status=0)
    assert [record["run_id"] for record in loose.records()] == [2, 3, 4]
    lines = [line for line in ended.stdout.splitlines() if "/3 job" in line]
    assert [line.split()[0] for line in lines] == ["1/3", "2/3", "3/3"]
    assert "3 repetitions of 1 launch" in ended.stdout
    assert ended.stdout.count("verdict") == 1
    assert "the mean over 3 launches, its 95 % interval" in ended.stdout


def test_a_repeated_run_replaces_the_first_unless_it_fails(loose: Suites) -> None:
    jobs, failing = [job("sums.py", *SHORT)], [job("", name="job") | {"cmd": "/bin/false"}]
    loose.run(jobs, "--users", 1, status=0)
    (first,) = loose.output.glob("*.json")
    failed = loose.run(failing, "--users", 1, status=1)
    said = "it failed, and an earlier launch completed, which counts in its place (1 record, now *.superseded)."
    assert said in failed.stdout + failed.stderr
    assert [*loose.output.glob("*.json")] == [first]
    resumed = loose.run(failing, "--users", 1, "--resume", status=1)
    assert "1 launch done, 0 to come" in resumed.stdout
    assert "cannot be read" not in resumed.stdout + resumed.stderr
    again = loose.run(jobs, "--users", 1, status=0)
    assert "it counts in the place of an earlier launch (1 record, now *.superseded)." in again.stdout + again.stderr
    assert not first.exists()
    assert [record["completed"] for record in loose.records()] == [True]
    assert len([*loose.output.glob("*.superseded")]) == 2


def test_after_a_signal_resume_runs_the_remaining_repetitions(loose: Suites) -> None:
    jobs, flags = [job("sums.py", *ENDLESS)], ("--users", 1, "--repetitions", 2, "--budget", 1)
    runner = loose.start(jobs, *flags)
    until(lambda: any(loose.output.glob("logs/*")), "the first repetition has begun")
    interrupt(runner, signal.SIGTERM)
    assert {record["run_id"] for record in loose.records()} <= {0}
    ended = loose.run(jobs, *flags, "--resume", status=0)
    assert [(record["run_id"], record["outcome"]) for record in loose.records()] == [(0, "completed"), (1, "completed")]
    assert "2/2 job" in ended.stdout
    again = loose.run(jobs, *flags, "--resume", status=0)
    assert "/2 job" not in again.stdout
    assert not loose.leftovers()


def test_resume_restarts_repetitions_of_an_earlier_run(loose: Suites) -> None:
    """The second run was ended in its first repetition, and the second one there is of the first run."""
    jobs, flags = [job("sums.py", *SHORT)], ("--users", 1)
    loose.run(jobs, *flags, "--repetitions", 2, status=0)
    loose.run(jobs, *flags, status=0)
    before = {record["run_id"]: record["start_time"] for record in loose.records()}
    loose.run(jobs, *flags, "--repetitions", 2, "--resume", status=0)
    after = {record["run_id"]: record["start_time"] for record in loose.records()}
    assert after[0] == before[0]
    assert after[1] > before[1]


def test_a_signal_between_two_repetitions_ends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes while the second one is prepared."""
    made: list[int] = []

    def run(of: SuiteRun) -> SuiteResult:
        made.append(of.suite.options.uid)
        return SuiteResult()

    def prepare(options: Options, machine: object) -> SimpleNamespace:
        os.kill(os.getpid(), signal.SIGTERM)
        return SimpleNamespace(options=options, check=lambda: None, starts=())

    monkeypatch.setattr(suite_run.SuiteRun, "run", run)
    monkeypatch.setattr(suite_run, "PreparedSuite", prepare)
    options = Options(Suite("s", Path(), ()), (), Path(), RunName(), None, repetitions=3)  # type: ignore[arg-type]
    first = SimpleNamespace(options=options, machine=SimpleNamespace(hostname=""), starts=())
    assert suite_run._repeated(first, PlainView([], print), []) == ("SIGTERM", False)  # type: ignore[arg-type]
    assert made == [0]


def test_a_repetition_in_which_nothing_completes_is_the_last(loose: Suites) -> None:
    ended = loose.run([job("rogue.py", "--at", "hello", "--do", "exit", 3)], "--users", 1, "--repetitions", 3, status=1)
    assert [record["run_id"] for record in loose.records()] == [0], ended.stdout
