"""The process before a program of `exec`: it ends as its program has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cotenant.exec import supervise
from cotenant.exec.settings import EXEC_VARIABLE, Settings
from cotenant.exec.supervise import Supervisor


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_it_dies_of_the_signal_that_its_program_has_died_of(tmp_path: Path, number: signal.Signals) -> None:
    environment = {**os.environ, EXEC_VARIABLE: Settings(directory=str(tmp_path)).encoded()}
    line = [sys.executable, "-I", "-S", supervise.__file__, "sh", "-c", f"kill -{number.value} $$"]
    ended = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stderr) == (-number, "")


@pytest.mark.parametrize("finish", [True, False])
def test_the_run_that_stop_comes_upon_is_ended_unless_it_may_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finish: bool
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *handler: None)
    written, answers = tmp_path / "written", iter([False, True, True])
    runner: Any = SimpleNamespace(stopped=lambda: next(answers))
    lasting_s = 0.1 if finish else 1000
    supervisor = Supervisor(["sh", "-c", f"sleep {lasting_s}; echo all > {written}"], Settings(finish=finish))
    supervisor._go_on(runner)
    assert supervisor._child is not None
    assert (supervisor._child.wait() == 0, written.exists()) == (finish, finish)
