"""The process before a program of `exec`: it ends as its program has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cotenant.exec import supervise
from cotenant.exec.settings import EXEC_VARIABLE, Settings


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_it_dies_of_the_signal_that_its_program_has_died_of(tmp_path: Path, number: signal.Signals) -> None:
    environment = {**os.environ, EXEC_VARIABLE: Settings(directory=str(tmp_path)).encoded()}
    line = [sys.executable, "-I", "-S", supervise.__file__, "sh", "-c", f"kill -{number.value} $$"]
    ended = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stderr) == (-number, "")
