"""The reaper: one small process per suite that outlives a killed runner and leaves nothing of its run behind.

Run as `python -I -S reaper.py`. Its standard input is a pipe from the runner: first a line of JSON that says what the
run consists of, then silence, then `farewell` - or the end of the pipe, which means the runner died.
PR_SET_PDEATHSIG is not enough: it reaches the runner's direct children, while torchrun's ranks and the data
loader's workers live on.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

SOURCE_ROOT = Path(__file__).resolve().parents[2]
HALF_WRITTEN = re.compile(r"\.[0-9a-f]{16}\.tmp")
"""The name that a record of results.store has until it is whole."""


class Reaper:
    """The runner's end: starts the process, starts it anew if somebody killed it, and says farewell."""

    def __init__(
        self,
        run: str,
        mounts: dict[str, Path],
        base: str | None,
        directories: tuple[Path, ...],
        output: Path,
        shm_before: frozenset[tuple[int, int]],
    ) -> None:
        self._estate = {
            "run": run,
            "mounts": {name: str(path) for name, path in mounts.items()},
            "base": base,
            "directories": [str(path) for path in directories],
            "output": str(output),
            "shm": sorted(shm_before),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Have a living reaper. One that dies at once is met again by the next call."""
        if self._process is not None and self._process.poll() is None:
            return
        self._hang_up()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._say(json.dumps(self._estate))

    @property
    def pids(self) -> set[int]:
        """The process, where there is one."""
        return set() if self._process is None else {self._process.pid}

    def farewell(self) -> None:
        """Send the reaper home: the runner has cleaned up by itself."""
        self._say("farewell")
        self._hang_up()
        if self._process is not None:
            self._process.wait()

    def _say(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(line.encode() + b"\n")
                self._process.stdin.flush()

    def _hang_up(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()


def reap(estate: dict[str, Any]) -> None:
    """Kill every process of a run and remove its cgroups and directories. What fails does not stop the rest."""
    from cotenant.isolation.processes import kill_marked
    from cotenant.isolation.shm import clear_leavings
    from cotenant.isolation.v1 import NEEDED, V1

    run, mounts = estate["run"], {name: Path(path) for name, path in estate["mounts"].items()}
    steps = [functools.partial(kill_marked, run)]
    if set(NEEDED) <= mounts.keys():
        steps.append(functools.partial(V1(mounts, estate["base"]).clear, run))
    # A process forked while the first look was on its way: its cgroup is gone, its marker is not.
    for step in (*steps, steps[0]):
        with contextlib.suppress(OSError):
            step()
    clear_leavings(frozenset((device, inode) for device, inode in estate["shm"]))
    for directory in estate["directories"]:
        shutil.rmtree(directory, ignore_errors=True)
    for path in Path(estate["output"]).glob(".*"):
        if HALF_WRITTEN.fullmatch(path.name):
            path.unlink(missing_ok=True)


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.path.insert(0, str(SOURCE_ROOT))
    # Now, not when they are needed: the checkout may change while a suite runs.
    for name in ("processes", "shm", "v1"):
        importlib.import_module(f"cotenant.isolation.{name}")
    # A runner that dies before its first line has made nothing yet.
    will = sys.stdin.readline()
    if will.endswith("\n") and sys.stdin.readline() != "farewell\n":
        reap(json.loads(will))
    return 0


if __name__ == "__main__":
    sys.exit(main())
