"""The reaper beside a living runner: how it is known, and how it goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cotenant.files import Directory
from cotenant.isolation.runs import RunName
from cotenant.launch import reaper as module
from cotenant.launch.reaper import Reaper
from cotenant.procfs import process_of, start_ticks
from cotenant.protocol.messages import REAPER_VARIABLE, RUN_VARIABLE
from isolation.entering import eventually, is_dead


@pytest.fixture
def reaper(tmp_path: Path) -> Iterator[Reaper]:
    with Directory(tmp_path) as output:
        made = Reaper(str(RunName()), {}, (), output)
        made.ensure()
    yield made
    assert made._process is not None
    made._process.kill()
    made._process.communicate()


def test_a_reaper_names_its_run_and_is_dismissed_silently(reaper: Reaper) -> None:
    (pid,) = reaper.pids
    own, environment = f"{REAPER_VARIABLE}={RunName()}".encode(), Path(f"/proc/{pid}/environ")
    # In the midst of its exec a process has none.
    eventually(lambda: own in environment.read_bytes().split(b"\0"), "its environment")
    assert reaper.dismiss() == ""
    assert is_dead(pid)


@pytest.mark.parametrize("is_killed", [True, False])
def test_one_that_has_been_stopped_is_not_waited_for_for_ever(
    is_killed: bool, reaper: Reaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE_S", 0.5)
    (pid,) = reaper.pids
    os.kill(pid, signal.SIGSTOP)
    if not is_killed:
        monkeypatch.setattr("subprocess.Popen.kill", lambda process: None)
    ended = "did not end within 0.5 s and was killed" if is_killed else "cannot be killed"
    assert reaper.dismiss() == f"The reaper (pid {pid}) {ended}."
    assert is_dead(pid) == is_killed
    monkeypatch.undo()


def test_who_is_stopped_while_its_runner_is_goes_on_without_it(tmp_path: Path) -> None:
    """The reaper of a runner that is stopped itself lets its tenants go on; that of a runner that works does not."""
    runner = subprocess.Popen(["sleep", "1000"])
    run = str(RunName(runner.pid, start_ticks(runner.pid) or 0))
    tenant = subprocess.Popen(["sleep", "1000"], env={**os.environ, RUN_VARIABLE: run})
    parts = {"run": run, "slices": {}, "directories": [], "output": [str(tmp_path), 0]}
    quick = f"from cotenant.launch import reaper as r; r.LOOK_S, r.STOPPED_S = 0.05, 0.2; r.await_end({parts!r})"
    reaper = subprocess.Popen([sys.executable, "-c", quick], stdin=subprocess.PIPE)
    try:
        eventually(lambda: Path(f"/proc/{tenant.pid}/comm").read_text() == "sleep\n", "a user")
        tenant.send_signal(signal.SIGSTOP)
        time.sleep(0.6)
        assert state(tenant.pid) == "T"
        runner.send_signal(signal.SIGSTOP)
        eventually(lambda: state(tenant.pid) == "S", "it goes on")
    finally:
        for process in (reaper, tenant, runner):
            process.kill()
            process.communicate()


def state(pid: int) -> str:
    process = process_of(pid)
    assert process is not None
    return process.state
