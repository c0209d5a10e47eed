"""Repetitions of a suite by one command: their numbers and records, what ends them early, and --resume."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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


def test_repetitions_are_numbered_replaced_and_resumed(loose: Suites) -> None:
    jobs, failing = [job("sums.py", *SHORT)], [job("", name="job") | {"cmd": "/bin/false"}]
    flags = ("--users", 1, "--uid", 2)
    ended = loose.run(jobs, *flags, "--repetitions", 2, "--resume", status=0)
    assert "Repetition 2 has not begun in" in ended.stdout
    first = {record["run_id"]: record["start_time"] for record in loose.records()}
    assert [*first] == [2, 3]
    assert [line.split()[0] for line in ended.stdout.splitlines() if "/2 job" in line] == ["1/2", "2/2"]
    assert "2 repetitions of 1 launch" in ended.stdout
    assert ended.stdout.count("verdict") == 1
    assert "the mean over 2 launches, too few for an interval" in ended.stdout
    # A failure replaces nothing; a run that completes replaces the first, and is that of which --resume is the rest.
    failed = loose.run(failing, *flags, status=1)
    said = "it failed, and an earlier launch completed, which counts in its place (1 record, now *.superseded)."
    assert said in failed.stdout + failed.stderr
    again = loose.run(jobs, *flags, status=0)
    assert "it counts in the place of an earlier launch (1 record, now *.superseded)." in again.stdout + again.stderr
    assert len([*loose.output.glob("*.superseded")]) == 2
    second = {record["run_id"]: record["start_time"] for record in loose.records()}
    assert (second[2] > first[2], second[3]) == (True, first[3])
    loose.run(jobs, *flags, "--repetitions", 2, "--resume", status=0)
    third = {record["run_id"]: record["start_time"] for record in loose.records()}
    assert (third[2], third[3] > first[3]) == (second[2], True)


@pytest.mark.slow
def test_a_superseded_failure_is_not_run_again_by_resume(loose: Suites) -> None:
    jobs, failing = [job("sums.py", *SHORT)], [job("", name="job") | {"cmd": "/bin/false"}]
    loose.run(jobs, "--users", 1, status=0)
    loose.run(failing, "--users", 1, status=1)
    resumed = loose.run(failing, "--users", 1, "--resume", status=1)
    assert "1 launch done, 0 to come" in resumed.stdout
    assert "cannot be read" not in resumed.stdout + resumed.stderr


@pytest.mark.slow
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


class Repeated:
    """A suite of three repetitions without launches; each of its runs returns this result."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, result: SuiteResult, preparing: Callable[[], object]) -> None:
        self.made: list[int] = []

        def run(made: SuiteRun) -> SuiteResult:
            self.made.append(made.suite.options.uid)
            return result

        def prepare(options: Options, machine: object) -> SimpleNamespace:
            preparing()
            return SimpleNamespace(options=options, machine=machine, check=lambda: None, starts=())

        monkeypatch.setattr(suite_run.SuiteRun, "run", run)
        monkeypatch.setattr(suite_run, "PreparedSuite", prepare)

    def ended(self) -> tuple[str | None, bool]:
        options = Options(Suite("s", Path(), ()), (), Path(), RunName(), None, repetitions=3)  # type: ignore[arg-type]
        first: Any = SimpleNamespace(options=options, machine=SimpleNamespace(hostname=""), starts=())
        return suite_run._repeated(first, PlainView([], print), [])


def test_a_signal_between_two_repetitions_ends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes while the second one is prepared."""
    suite = Repeated(monkeypatch, SuiteResult(), lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert suite.ended() == ("SIGTERM", False)
    assert suite.made == [0]


def test_a_repetition_in_which_nothing_completes_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    for completed, made in ((False, [0]), (True, [0, 1, 2])):
        result = SuiteResult(made=[SimpleNamespace(completed=completed)], finished=True)  # type: ignore[list-item]
        suite = Repeated(monkeypatch, result, lambda: None)
        assert suite.ended() == (None, True)
        assert suite.made == made
