"""Run a task's main.py and write down when Python's garbage collector ran: `watched.py TO MAIN [ARGUMENTS]`.

`TO` gets JSON: the process, how far its realtime clock was ahead of the monotonic one, and each collection's
[begin, end] in nanoseconds of the monotonic clock.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import sys
import time
from pathlib import Path

begun_ns: list[int] = []
ended_ns: list[int] = []


def note(phase: str, _: dict[str, int]) -> None:
    (begun_ns if phase == "start" else ended_ns).append(time.perf_counter_ns())


def ahead_ns() -> int:
    return time.time_ns() - time.perf_counter_ns()


def write(to: Path, first_ns: int) -> None:
    gc.callbacks.remove(note)
    told = {
        "pid": os.getpid(),
        "ahead_ns": [first_ns, ahead_ns()],
        "collections": list(zip(begun_ns, ended_ns, strict=True)),
    }
    to.write_text(json.dumps(told))


if __name__ == "__main__":
    to, main = Path(sys.argv[1]), Path(sys.argv[2])
    atexit.register(write, to, ahead_ns())
    gc.callbacks.append(note)
    sys.argv = [str(main), *sys.argv[3:]]
    sys.path[0] = str(main.parent)
    runpy.run_path(str(main), run_name="__main__")
