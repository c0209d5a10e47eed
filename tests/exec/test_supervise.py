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
from patience import HANG_S


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_it_dies_of_the_signal_that_its_program_has_died_of(tmp_path: Path, number: signal.Signals) -> None:
    environment = {**os.environ, EXEC_VARIABLE: Settings(directory=str(tmp_path)).encoded()}
    line = [sys.executable, "-I", "-S", supervise.__file__, "sh", "-c", f"kill -{number.value} $$"]
    ended = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert (ended.returncode, ended.stderr) == (-number, "")


def test_the_run_that_stop_comes_upon_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", lambda *handler: None)
    written, answers = tmp_path / "written", iter([False, True, True])
    runner: Any = SimpleNamespace(stopped=lambda: next(answers))
    supervisor = Supervisor(["sh", "-c", f"sleep 1000; echo all > {written}"], Settings())
    supervisor._go_on(runner)
    assert supervisor._child is not None
    assert supervisor._child.wait() == -signal.SIGTERM
    assert not written.exists()
