"""The reaper: one small process per suite that outlives a killed runner and leaves nothing of its run behind.

Run as `python -I -S reaper.py`. Its standard input is a pipe from the runner: first a line of JSON that says what the
run consists of, then silence, then `farewell` - or the end of the pipe, which means the runner died.
PR_SET_PDEATHSIG is not enough: it reaches the runner's direct children, while torchrun's ranks and the data
loader's workers live on.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

SOURCE_ROOT = Path(__file__).resolve().parents[2]


class Reaper:
    """The runner's end: starts the process, starts it anew if somebody killed it, and says farewell."""

    def __init__(self, run: str, mounts: dict[str, Path], base: str | None, directories: list[Path]) -> None:
        self._estate = {
            "run": run,
            "mounts": {name: str(path) for name, path in mounts.items()},
            "base": base,
            "directories": [str(path) for path in directories],
        }
        self._process: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Have a living reaper."""
        if self._process is not None and self._process.poll() is None:
            return
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(self._estate).encode() + b"\n")
        self._process.stdin.flush()

    def farewell(self) -> None:
        """Send the reaper home: the runner has cleaned up by itself."""
        if self._process is None or self._process.stdin is None:
            return
        with contextlib.suppress(OSError):
            self._process.stdin.write(b"farewell\n")
            self._process.stdin.close()
        self._process.wait()


def reap(estate: dict[str, Any]) -> None:
    """Kill every process of a run and remove its cgroups and directories."""
    from cotenant.isolation.processes import kill_marked
    from cotenant.isolation.v1 import NEEDED, V1

    kill_marked(estate["run"])
    if set(NEEDED) <= estate["mounts"].keys():
        V1({name: Path(path) for name, path in estate["mounts"].items()}, estate["base"]).clear(estate["run"])
    # A process forked while the first look was on its way: its cgroup is gone, its marker is not.
    kill_marked(estate["run"])
    for directory in estate["directories"]:
        shutil.rmtree(directory, ignore_errors=True)


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.path.insert(0, str(SOURCE_ROOT))
    estate = json.loads(sys.stdin.readline())
    if sys.stdin.readline() != "farewell\n":
        reap(estate)
    return 0


if __name__ == "__main__":
    sys.exit(main())
