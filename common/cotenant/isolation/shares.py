"""How many processes a slice may hold: not so many that those of all slices together reach a limit above them."""

from __future__ import annotations

from pathlib import Path

from cotenant.isolation import cgroupfs
from cotenant.isolation.backend import PIDS_MAX

KEPT_BACK = 0.1
"""The part of the processes allowed above us that is for the runner and whoever else lives there."""


def pids_share(parent: Path, slices: int) -> int:
    """Return the processes of one of so many slices below `parent`: an equal part of what is free above them.

    Without a limit above it is PIDS_MAX. Raises OSError, and ValueError for a file that holds no number.
    """
    rooms = [room for file in cgroupfs.above(parent, "pids.max") if (room := _room(file)) is not None]
    return max(1, min([PIDS_MAX, *(int(room * (1 - KEPT_BACK)) // slices for room in rooms)]))


def _room(file: Path) -> int | None:
    limit, current = cgroupfs.read_or_none(file), cgroupfs.read_or_none(file.with_name("pids.current"))
    return None if limit in (None, "max") else int(limit or 0) - int(current or 0)
