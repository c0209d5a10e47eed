"""Ctrl-C and SIGTERM in every phase: 130, records, and nothing left."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cotenant.launch.events import Interruption
from launch.turning import outcomes
from patience import HANG_S
from tenants.fakes import FakeBackend, launched, specs
from tenants.once import once
from tenants.suites import PLACES, Suites, job, until, with_data

ENDLESS = ("--repeat", 1_000_000)


def held(suites: Suites, place: str, *words: str | int, users: int = 2, others: int = 0) -> "subprocess.Popen[str]":
    """Start tenants that go on with `words`, or hang at `place`, and wait until all are there.

    One of `others` jobs is before theirs, the rest behind it.
    """
    deed = words or ["--at", place, "--do", "hang"]
    jobs = [job("rogue.py", *deed, *PLACES), *(job(name=f"other{i}") for i in range(others))]
    runner = suites.start(jobs[1:2] + jobs[:1] + jobs[2:], "--users", users)
    suites.at_place(place, users)
    return runner


def interrupt(runner: "subprocess.Popen[str]", *numbers: signal.Signals) -> None:
    for number in numbers:
        runner.send_signal(number)
        time.sleep(0.002)
    assert runner.wait(HANG_S) == 130


@pytest.mark.parametrize(
    ("place", "others", "number", "sender"),
    [("hello", 2, signal.SIGINT, "Ctrl-C"), ("observed", 0, signal.SIGTERM, "SIGTERM")],
)
@pytest.mark.v1
def test_a_signal_leaves_records_and_nothing_else(
    v1: Suites, place: str, others: int, number: signal.Signals, sender: str
) -> None:
    """Those of earlier launches, too; later ones are not made."""
    interrupt(held(v1, place, *(ENDLESS if place == "observed" else ()), others=others), number)
    before, interrupted = v1.records()[:-2], v1.records()[-2:]
    assert [(record["name"], record["outcome"]) for record in before] == [("other0", "completed")] * others
    assert [(record["name"], record["outcome"]) for record in interrupted] == [("job", "interrupted")] * 2
    assert {record["message"] for record in interrupted} == {f"Stopped by {sender}."}
    assert f"Stopped by {sender};" in v1.said()
    at = f"{2 if others else 1}/ {1 + others}"
    assert f"[ {at}][  /  ] interrupted |" in (v1.output / "summary.txt").read_text()
    assert not v1.leftovers()


def test_a_signal_while_tenants_are_stopping(tmp_path: Path) -> None:
    """Their observations count."""
    done = "Path(os.environ['COTENANT_SOCKET']).with_name('done' + tenant).touch(); time.sleep(1000)"

    def signal_us() -> None:
        until(lambda: len([*tmp_path.glob("done?")]) == 2, "both are done")
        time.sleep(0.3)  # The runner reads ten times a second: now it has sent STOP.
        os.kill(os.getpid(), signal.SIGTERM)

    with Interruption():
        other = threading.Thread(target=signal_us)
        other.start()
        result = launched(specs(tmp_path, sys.executable, "-c", once(done=done)))
        other.join()
    assert outcomes(result) == ["interrupted", "interrupted"]
    assert [len(tenant.ranks[0].observations) for tenant in result.tenants] == [1, 1]


@pytest.mark.slow
@pytest.mark.v1
def test_more_signals_harm_nothing(v1: Suites) -> None:
    numbers = (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    interrupt(held(v1, "observed", *ENDLESS), *numbers)
    assert v1.outcomes() == ["interrupted", "interrupted"]
    # Those that arrive while it is not on a processor are seen in the order of their numbers.
    assert re.search(r"Stopped by (Ctrl-C|SIGTERM|a closed terminal);", v1.said())
    assert "Traceback" not in v1.said()
    assert not v1.leftovers()


@pytest.mark.slow
def test_the_first_reason_for_an_end_is_the_one_that_counts(loose: Suites) -> None:
    runner = held(loose, "hello", "--who", 0, "--at", "hello", "--do", "fail-and-hang", "missing_package", "first")
    time.sleep(0.5)  # Its message is under way; it hangs, and its neighbour waits for GO.
    interrupt(runner, signal.SIGTERM)
    assert loose.outcomes() == ["missing_package", "interrupted"]
    assert loose.records()[0]["message"] == "first"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_signal_while_data_is_prepared(loose: Suites, number: signal.Signals) -> None:
    jobs = with_data(loose.folder, "setsid sleep 1000 &", 'touch "$BASE/preparing"', "sleep 1000")
    loose.base.mkdir()
    runner = loose.start(jobs, "--users", 1)
    until((loose.base / "preparing").exists, "the maker runs")
    runner.send_signal(number)
    assert runner.wait(HANG_S) == (-9 if number == signal.SIGKILL else 130)
    loose.gone(10)
    assert not loose.records()


def test_a_signal_while_tenants_enter_their_slices(tmp_path: Path) -> None:
    """Their slices hold nobody yet, so that only the runner's own children can be killed; else this lasts 30 s."""
    os.mkfifo(tmp_path / "procs")
    with Interruption():  # A signal that came too late would end all tests.
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
        result = launched(specs(tmp_path, "/bin/sleep", "1000"), FakeBackend(tmp_path / "procs"))
    assert outcomes(result) == ["interrupted", "interrupted"]


def test_a_user_signalled_just_before_the_runner_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Slurm signals a job: every process of it, in any order. How long a moment is a busy host decides."""
    monkeypatch.setattr("cotenant.launch.launch.SIGNAL_WAIT_S", 60.0)
    dying = tmp_path / "dying"

    def signal_us() -> None:
        until(dying.exists, "the user is about to die")
        time.sleep(0.03)
        os.kill(os.getpid(), signal.SIGTERM)

    line = ("/bin/sh", "-c", f"touch {dying}; kill -TERM $$")
    with Interruption():
        other = threading.Thread(target=signal_us)
        other.start()
        result = launched(specs(tmp_path, *line, tenants=1))
        other.join()
    assert outcomes(result) == ["interrupted"]


@pytest.mark.slow
def test_under_nohup_a_suite_outlives_its_terminal(loose: Suites) -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # A child inherits ignored signals.
    try:
        runner = held(loose, "go", users=1)
    finally:
        signal.signal(signal.SIGHUP, previous)
    interrupt(runner, signal.SIGHUP, signal.SIGTERM)
    assert [record["message"] for record in loose.records()] == ["Stopped by SIGTERM."]
