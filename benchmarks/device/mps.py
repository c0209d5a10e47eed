"""A daemon of CUDA's Multi-Process Service of our own: its pipes in a private folder, ended with its last client."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from device.book import Skip
from device.look import daemons
from device.part import Given

CONTROL = "nvidia-cuda-mps-control"
GONE_S = 5.0
"""Its server ends a moment after it."""
LONGEST_SOCKET = 107
"""Bytes of a socket's path, without its closing zero."""
SOCKET = "control_privileged"
"""The longest name that the daemon makes in its folder, as far as one knows."""


class Daemon:
    """A running daemon; `variables` are what its clients have to be started with."""

    def __init__(self, folder: Path) -> None:
        self.pipe = folder / "mps"
        self.variables = {
            "CUDA_MPS_PIPE_DIRECTORY": str(self.pipe),
            "CUDA_MPS_LOG_DIRECTORY": str(folder / "mps-log"),
        }

    def ask(self, command: str, limit_s: float = 5.0) -> str:
        """Return the daemon's answer to a command, "" where it gives none."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            told = subprocess.run(
                [CONTROL],
                input=f"{command}\n",
                env=os.environ | self.variables,
                capture_output=True,
                text=True,
                timeout=limit_s,
                check=False,
            )
            return told.stdout.strip()
        return ""

    @property
    def servers(self) -> str:
        """The process ids of its servers; there is none before the first client."""
        return " ".join(self.ask("get_server_list").split())


@contextlib.contextmanager
def daemon(given: Given) -> Iterator[Daemon]:
    """Start a daemon, and end it. Raises Skip where it cannot be had."""
    if shutil.which(CONTROL) is None:
        raise Skip(f"There is no {CONTROL} here.")
    if os.environ.get("CUDA_MPS_PIPE_DIRECTORY") or daemons():
        raise Skip("A daemon of the machine's own runs already: nothing here is its business.")
    made = Daemon(given.scratch)
    if (length := len(os.fsencode(made.pipe / SOCKET))) > LONGEST_SOCKET:
        raise Skip(f"The path of its socket has {length} bytes, and {LONGEST_SOCKET} fit. Set TMPDIR to a short one.")
    for folder in made.variables.values():
        Path(folder).mkdir(parents=True, exist_ok=True)
    # Before it is there: a run that is killed now can still end it.
    given.row("mps daemon", pipe=str(made.pipe))
    # It leaves its parent and holds what it inherits: its output goes to its own log.
    started = subprocess.run(
        [CONTROL, "-d"],
        env=os.environ | made.variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=15,
        check=False,
    )
    try:
        if started.returncode:
            raise Skip(f"{CONTROL} -d ended with status {started.returncode}: {log_of(made)}")
        yield made
    finally:
        # It waits for clients; what is left after that is killed with everything else of this part.
        made.ask("quit", 10.0)
        until = time.monotonic() + GONE_S
        while daemons() and time.monotonic() < until:
            time.sleep(0.1)


def log_of(made: Daemon) -> str:
    """Return the last line of the daemon's log."""
    lines: list[str] = []
    for path in Path(made.variables["CUDA_MPS_LOG_DIRECTORY"]).glob("*.log"):
        with contextlib.suppress(OSError):
            lines += path.read_text(errors="replace").splitlines()
    return lines[-1] if lines else "its log is empty"
