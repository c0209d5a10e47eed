"""Whether a v2 cgroup is ours to divide: read from what its manager says, not from what we may write."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from cotenant.isolation import cgroupfs
from cotenant.isolation.orphans import parent_of

ATTRIBUTES = ("trusted.delegate", "user.delegate")
"""What systemd marks a delegated unit's cgroup with: the first by the host's manager, the second by a user's, too."""
SYSTEMD = Path("/run/systemd/system")


def systemd_runs() -> bool:
    """Whether systemd is this host's init: then every cgroup is its own but the delegated ones (sd_booted(3))."""
    return SYSTEMD.is_dir()


def is_marked(directory: Path) -> bool:
    """Whether a manager says that it has delegated this cgroup."""
    for name in ATTRIBUTES:
        with contextlib.suppress(OSError):
            if os.getxattr(directory, name) == b"1":
                return True
    return False


def is_root(directory: Path) -> bool:
    """Whether this is the root of the whole hierarchy, which may have processes and children at once."""
    return not (directory / "cgroup.events").exists()


def divided(directory: Path, ours: bool) -> list[int]:
    """Return the processes directly in a cgroup that are ours, or those that are not. Raises OSError.

    Ours are this process and its descendants; nobody else is ever moved.
    """
    return [pid for pid in cgroupfs.pids(directory) if is_ours(pid) == ours]


def is_ours(pid: int) -> bool:
    """Whether a process is this one or descends from it; 0 is one of another PID namespace."""
    own = os.getpid()
    while pid > 1 and pid != own:
        pid = parent_of(pid) or 0
    return pid == own


def described(pid: int) -> str:
    """Return `pid 12 (bash)`."""
    if pid == 0:
        return "a process of another PID namespace"
    try:
        return f"pid {pid} ({Path(f'/proc/{pid}/comm').read_text().strip()})"
    except OSError:
        return f"pid {pid}"
