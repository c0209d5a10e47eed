"""How many processes a slice may hold: not so many that those of all slices reach a limit that all are under."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from cotenant.isolation import cgroupfs
from cotenant.isolation.backend import PIDS_MAX

KEPT_BACK = 0.1
"""The part of the processes allowed to all that is for the runner and whoever else lives there."""


def pids_share(parent: Path, slices: int) -> int:
    """Return the processes of one of so many slices below `parent`: an equal part of what is free above them.

    A limit on this user's processes counts as one above them. Without any it is PIDS_MAX. Raises OSError, and
    ValueError for a file that holds no number.
    """
    rooms = [_room(file) for file in cgroupfs.above(parent, "pids.max")] + [user_room()]
    shares = [int(room * (1 - KEPT_BACK)) // slices for room in rooms if room is not None]
    return max(1, min([PIDS_MAX, *shares]))


def user_room() -> int | None:
    """Return how many more processes this user may have, threads included; None where no limit holds (getrlimit(2)).

    The limit, RLIMIT_NPROC, is on all that a user runs, so that one tenant could use up its neighbours' part. Root is
    exempt from it, but not the root of a user namespace.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if limit == resource.RLIM_INFINITY or (os.getuid() == 0 and _maps_all_users()):
        return None
    own = os.getuid()
    return limit - sum(_threads(path, own) for path in Path("/proc").iterdir() if path.name.isdecimal())


def _maps_all_users() -> bool:
    """Whether this is the host's own user namespace, or one like it (user_namespaces(7))."""
    try:
        return Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]
    except OSError:
        return True


def _threads(process: Path, user: int) -> int:
    """Return the threads of a process of this user, 0 of one that is gone or another's (proc_pid_status(5))."""
    try:
        lines = (process / "status").read_text(errors="replace").splitlines()
    except OSError:
        return 0
    said = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    return int(said["Threads"][0]) if said["Uid"][0] == str(user) else 0


def _room(file: Path) -> int | None:
    limit, current = cgroupfs.read_or_none(file), cgroupfs.read_or_none(file.with_name("pids.current"))
    return None if limit in (None, "max") else int(limit or 0) - int(current or 0)
