"""How many processes a slice may hold: not so many that those of all slices together reach a limit above them."""

from __future__ import annotations

import os
from pathlib import Path

from cotenant.isolation import cgroupfs
from cotenant.isolation.backend import PIDS_MAX
from cotenant.isolation.plan import Slice

KEPT_BACK = 0.1
"""The part of the processes allowed above us that is for the runner and whoever else lives there."""


def pids_share(parent: Path, slice_: Slice) -> int:
    """Return the processes of a slice below `parent`: as much of what is free above it as it has of the processors.

    Without a limit above it is PIDS_MAX. Raises OSError, and ValueError for a file that holds no number.
    """
    share = min(1.0, len(slice_.processors) / len(os.sched_getaffinity(0)))
    rooms = [room for file in cgroupfs.above(parent, "pids.max") if (room := _room(file)) is not None]
    return max(1, min([PIDS_MAX, *(int(room * share * (1 - KEPT_BACK)) for room in rooms)]))


def _room(file: Path) -> int | None:
    limit, current = cgroupfs.read_or_none(file), cgroupfs.read_or_none(file.with_name("pids.current"))
    return None if limit in (None, "max") else int(limit or 0) - int(current or 0)
