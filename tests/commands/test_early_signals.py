"""Ctrl-C and a closing terminal wait until a command can handle them; it ends with 130, as by SIGTERM."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands.calling import Capture, call
from patience import HANG_S
from tenants.suites import ROOT, RUN, script

WHILE_IMPORTING = """
import importlib, os, signal, sys
from cotenant.__main__ import entry
original = importlib.import_module
def interrupted(name):
    os.kill(os.getpid(), getattr(signal, sys.argv.pop()))
    module = original(name)
    print("imported", flush=True)
    return module
importlib.import_module = interrupted
entry()
"""


@pytest.mark.parametrize(
    ("name", "sender"), [("SIGINT", "Ctrl-C"), pytest.param("SIGHUP", "a closed terminal", marks=pytest.mark.slow)]
)
def test_a_signal_during_imports_waits_for_the_command(name: str, sender: str) -> None:
    line = [sys.executable, "-c", WHILE_IMPORTING, "doctor", "--quick", name]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=HANG_S)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "imported\n", f"cotenant: Stopped by {sender}.\n")


def test_a_signal_before_python_is_up_is_taken_by_the_command() -> None:
    def pending() -> None:  # as `env --block-signal` in run.sh leaves it
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        os.kill(os.getpid(), signal.SIGINT)

    ended = subprocess.run(
        [*RUN, "doctor", "--quick"], capture_output=True, text=True, timeout=HANG_S, preexec_fn=pending
    )
    assert (ended.returncode, ended.stderr) == (130, "cotenant: Stopped by Ctrl-C.\n")


def blocked_by_run_sh(place: Path, **env: str) -> int:
    """Return the kernel's mask of the signals that are blocked when run.sh starts Python."""
    python = script(place / "bin/python")  # Python itself, as a shell may give its children another mask
    python.write_text(f"#!{sys.executable}\nprint(open('/proc/self/status').read().partition('SigBlk:')[2])\n")
    pins = subprocess.check_output(["sha256sum", "requirements.txt"], cwd=ROOT, text=True)
    (place / ".cotenant-run").write_text(pins)
    environment = os.environ | {"VENV": str(place)} | env
    return int(subprocess.check_output([ROOT / "run.sh"], env=environment, text=True).split()[0], 16)


def test_run_sh_starts_python_with_signals_blocked(tmp_path: Path) -> None:
    """The env of coreutils 8.30 does not know the flag, and ends with 125."""
    blocked = blocked_by_run_sh(tmp_path)
    assert all(blocked >> (number - 1) & 1 for number in (signal.SIGINT, signal.SIGHUP))
    old = script(tmp_path / "old/env", 'case $1 in -*) exit 125 ;; esac; exec "$@"')
    blocked = blocked_by_run_sh(tmp_path, PATH=f"{old.parent}:{os.environ['PATH']}")
    assert not blocked >> (signal.SIGINT - 1) & 1


@pytest.mark.parametrize(("number", "sender"), [(signal.SIGHUP, "a closed terminal"), (signal.SIGTERM, "SIGTERM")])
def test_a_signal_ends_a_command_by_its_cleanup(
    number: signal.Signals, sender: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    cleaned: list[bool] = []

    def interrupted(argv: object) -> None:
        try:
            os.kill(os.getpid(), number)
            time.sleep(5)
        finally:
            cleaned.append(True)

    monkeypatch.setattr("cotenant.commands.stop.main", interrupted)
    before = signal.signal(number, signal.SIG_DFL)
    try:
        assert call(capsys, "stop") == (130, "", f"cotenant: Stopped by {sender}.\n")
    finally:
        signal.signal(number, before)
    assert cleaned


def test_a_closed_terminal_is_an_interruption() -> None:
    """A write to a terminal that is gone fails with EIO."""
    ours, theirs = os.openpty()
    line = [sys.executable, "-c", "import sys, time; sys.stdin.read(); from cotenant.__main__ import entry; entry()"]
    with subprocess.Popen([*line, "doctor", "--quick"], stdin=subprocess.PIPE, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        os.close(ours)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(HANG_S) == 130
