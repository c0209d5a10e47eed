"""Ends at any moment of a schedule of blocks, in the virtual machine: nothing stays frozen, nothing is left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from guest import CGROUPS, Suite, until

SIGNALS = {"runner": signal.SIGKILL, "interrupt": signal.SIGINT, "stop": signal.SIGTERM}
"""Ends by a signal to the runner."""
ENDS = (*SIGNALS, "timeout", "tenant", "memory")
MOST_S = 3.5
"""After the first border, of a schedule that lasts 30 s and more."""
TO_BEGIN_S = 50
"""The time that a launch which ends by its time has before that."""
FLAGS = ("--users", "2", "--baseline", "blocks", "--budget", "300")


def frozen() -> list[str]:
    """The cgroups that the kernel holds still now."""
    held = []
    for top, _, _ in os.walk(CGROUPS):
        with contextlib.suppress(OSError):
            if "frozen 1" in Path(top, "cgroup.events").read_text():
                held.append(top)
    return held


def words(end: str, chance: random.Random) -> dict[str, Any]:
    """Return the tenants' flags: where memory is the end, one of them takes memory at a random moment."""
    if end != "memory":
        return {}
    return {"--deed": "hog", "--who": chance.randrange(2), "--after": chance.uniform(0, MOST_S)}


def ended(suite: Suite, end: str, chance: random.Random, limit_s: float) -> Iterator[str]:
    """Start the suite and end it once; yield the problems, and say in `suite.was_frozen` whether somebody was."""
    after_s = chance.uniform(0.2, MOST_S)
    suite.flags = FLAGS
    if end == "timeout":
        suite.flags = (*FLAGS, "--timeout", str(after_s + TO_BEGIN_S))
    with suite.started() as process:
        began_s = until(lambda: frozen() or process.poll() is not None)
        if began_s is None or process.poll() is not None:
            yield "nobody was ever held still"
        if end not in ("memory", "timeout"):
            time.sleep(after_s)
        suite.was_frozen = bool(frozen())
        _end(suite, end, process, chance)
        begin_s = time.monotonic()
        while end in ("tenant", "memory") and process.poll() is None:
            if end == "tenant" and frozen() and time.monotonic() - begin_s > limit_s:
                yield f"{frozen()} are frozen {limit_s} s after the death of one"
                break
            time.sleep(0.05)
        if end not in ("runner", "tenant", "memory") and until(lambda: process.poll() is not None) is None:
            yield "the runner did not end"


def _end(suite: Suite, end: str, process: subprocess.Popen[str], chance: random.Random) -> None:
    if end in SIGNALS:
        suite.kill_runner(SIGNALS[end])
    elif end == "tenant":
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(suite.notes())["pid"], signal.SIGKILL)
