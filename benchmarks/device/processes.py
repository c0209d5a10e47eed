"""Ending what was started: a process, its descendants wherever they went, and nobody else."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

_PDEATHSIG, _SUBREAPER = 1, 36
"""Of prctl(2)."""


def adopt_orphans() -> None:
    """Let descendants whose parents end become children of this process, so that it can find them."""
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)


def end_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent, which has this id, ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def descendants() -> dict[int, str]:
    """Return the living processes below this one, and how each was started."""
    parents: dict[int, int] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):
                state, parent = place.joinpath("stat").read_text().rpartition(")")[2].split()[:2]
                if state not in "ZX":
                    parents[int(place.name)] = int(parent)
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return {pid: _command(pid) for pid in sorted(below - {os.getpid()})}


def end_descendants(natural_s: float = 0.0, limit_s: float = 5.0) -> dict[int, str]:
    """Kill everything below this process; return what had not ended by itself after `natural_s`.

    A process that is stuck in the kernel, as in a driver, is given up after `limit_s`.
    """
    deadline = time.monotonic() + natural_s
    while (left := descendants()) and time.monotonic() < deadline:
        reap()
        time.sleep(0.05)
    deadline = time.monotonic() + limit_s
    while (alive := descendants()) and time.monotonic() < deadline:
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        reap()
        time.sleep(0.02)
    reap()
    return left


def reap() -> None:
    """Take the statuses of children that have ended, so that they are no zombies."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        return words[:200] or Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
