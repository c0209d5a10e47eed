"""Ends at any moment of each design, in the virtual machine: nothing stays frozen, nothing is left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from guest import CGROUPS, ROOT, Start, Suite, until

SIGNALS = {"runner": signal.SIGKILL, "interrupt": signal.SIGINT, "stop": signal.SIGTERM}
"""Ends by a signal to the runner."""
ENDS = (*SIGNALS, "timeout", "tenant", "memory")
MOST_S = 3.5
"""After the first border, of a schedule that lasts 30 s and more."""
TO_BEGIN_S = 50
"""The time that a launch which ends by its time has before that."""
CAPACITY = (sys.executable, str(ROOT / "run.py"), "capacity")
DESIGNS: dict[str, tuple[str, ...]] = {
    "blocks": ("--users", "2", "--baseline", "blocks", "--budget", "300"),
    "pairs": ("--pairs", "witness", "--budget", "300"),
    "duet": ("--users", "1", "--repetitions", "1", "--budget", "300", "--duet", "witness", "--", "---"),
    "crowd": ("--users", "2", "--keep", "0.1"),
}
"""The flags with which somebody starts two tenants of each design; a crowd is a command of its own."""


def frozen() -> list[str]:
    """The cgroups that the kernel holds still now."""
    held = []
    for top, _, _ in os.walk(CGROUPS):
        with contextlib.suppress(OSError):
            if "frozen 1" in Path(top, "cgroup.events").read_text():
                held.append(top)
    return held


def suite_of(name: str, start: Start, design: str, end: str, chance: random.Random) -> tuple[Suite, float]:
    """Return a suite, and the seconds from its first border to its end: if memory is that, a tenant takes memory."""
    after_s = chance.uniform(0.2, MOST_S)
    # A crowd's first user is launched by itself before.
    who = 1 if design == "crowd" else chance.randrange(2)
    words = {"--deed": "hog", "--who": who, "--after": after_s} if end == "memory" else {}
    within = ("--timeout", str(after_s + TO_BEGIN_S)) if end == "timeout" else ()
    suite = Suite(name, start, flags=(*within, *DESIGNS[design]), words=words)
    if design == "crowd":
        suite.command = (*CAPACITY, *suite.jobs, "--outdir", str(suite.output))
    return suite, after_s


def ended(suite: Suite, end: str, after_s: float, chance: random.Random, limit_s: float) -> Iterator[str]:
    """Start the suite and end it once; yield the problems, and say in `suite.was_frozen` whether somebody was."""
    with suite.started() as process:
        began_s = until(lambda: frozen() or process.poll() is not None)
        if began_s is None or process.poll() is not None:
            yield "nobody was ever held still"
        there = {note["pid"] for note in suite.notes()}
        if end not in ("memory", "timeout"):
            time.sleep(after_s)
        suite.was_frozen = bool(frozen())
        _end(suite, end, process, chance)
        if end in ("tenant", "memory"):
            yield from _survived(suite, there, process, limit_s)
        if end != "runner" and until(lambda: process.poll() is not None) is None:
            yield "the runner did not end"


def _survived(suite: Suite, there: set[int], process: subprocess.Popen[str], limit_s: float) -> Iterator[str]:
    """Wait until all these tenants have ended; when one has died, the others rest no more."""
    died_s = None
    while process.poll() is None and (living := there.intersection(suite.processes())):
        died_s = died_s or (time.monotonic() if living != there else None)
        if died_s is not None and frozen() and time.monotonic() - died_s > limit_s:
            yield f"{frozen()} are frozen {limit_s} s after the death of one"
            break
        time.sleep(0.05)
    if suite.command:
        # It would go on with fewer users.
        suite.kill_runner(signal.SIGINT)


def _end(suite: Suite, end: str, process: subprocess.Popen[str], chance: random.Random) -> None:
    if end in SIGNALS:
        suite.kill_runner(SIGNALS[end])
    elif end == "tenant":
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(suite.notes())["pid"], signal.SIGKILL)
