#!/usr/bin/env python3
"""The benchmark of sums.py that first writes down where it finds itself, asking the kernel and nobody else.

    ./witness.py NOTES [--deed hog|bomb --who 0]

Into NOTES/witness.<tenant>.json: its processors, its cgroup, and that cgroup's files. After GO the tenant
`--who` does its deed: `hog` takes memory without end, `bomb` makes processes until the kernel refuses one.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tenants"))

import sums

from cotenant.protocol.client import Rendezvous

CGROUPS = Path("/sys/fs/cgroup")
FILES = (
    "cpuset.cpus.effective",
    "cpuset.mems.effective",
    "memory.max",
    "memory.swap.max",
    "memory.oom.group",
    "pids.max",
)
MANY = 40_000
"""More processes than any slice should hold."""


def seen() -> dict[str, Any]:
    cgroup = Path("/proc/self/cgroup").read_text().strip().rpartition("::")[2]
    own = CGROUPS / cgroup.lstrip("/")
    files = {name: (own / name).read_text().strip() if (own / name).exists() else None for name in FILES}
    return {"processors": sorted(os.sched_getaffinity(0)), "cgroup": cgroup, "files": files, "pid": os.getpid()}


def note(path: Path, content: dict[str, Any]) -> None:
    """Write whole or not at all: somebody waits for the name."""
    path.with_suffix(".new").write_text(json.dumps(content))
    path.with_suffix(".new").rename(path)


def hog() -> None:
    held = []
    while True:
        held.append(bytearray(b"x") * (8 << 20))


def bomb() -> dict[str, Any]:
    """Fork until that fails. Straight from the C library: a child that runs no Python takes next to no memory."""
    library = ctypes.CDLL(None, use_errno=True)
    for count in range(MANY):
        pid = library.fork()
        if pid < 0:
            return {"made": count, "errno": ctypes.get_errno()}
        if pid == 0:
            while True:
                library.pause()
    return {"made": MANY, "errno": 0}


class Witness(Rendezvous):
    """Does its deed after GO, when its neighbours are being measured."""

    deed: ClassVar[str | None] = None
    notes: ClassVar[Path]
    after_s: ClassVar[float] = 0.0

    def await_go(self) -> tuple[int, int, int]:
        word = super().await_go()
        if self.deed == "hog":
            threading.Timer(self.after_s, hog).start()
        if self.deed == "bomb":
            note(self.notes / "bomb.json", bomb())
        return word


def main() -> int:
    parser = sums.flags()
    parser.add_argument("notes", type=Path)
    parser.add_argument("--deed", choices=("hog", "bomb"))
    parser.add_argument("--who")
    parser.add_argument("--after", type=float, default=0.0, help="seconds after GO, of a hog")
    given = parser.parse_args()
    tenant = os.environ["JOB_ID"]
    note(given.notes / f"witness.{tenant}.json", seen())
    Witness.deed = given.deed if tenant == given.who else None
    Witness.notes, Witness.after_s = given.notes, given.after
    runner = Witness.from_environment()
    assert runner is not None, "witness.py is run by the runner"
    sums.measure(runner, given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
