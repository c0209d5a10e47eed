"""A run's cgroups by what its backend's `estate` says, also after the runner's death. Standard library only."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from cotenant.isolation.v1 import V1
from cotenant.isolation.v2tree import LEAF, Tree


def kill(estate: dict[str, Any], run: str) -> None:
    """Kill everything in a run's slices. Raises NotIsolatedError."""
    for place in _places(estate):
        place.kill_run(run)


def clear(estate: dict[str, Any], run: str) -> None:
    """Kill everything in a run's slices and remove them. Raises NotIsolatedError."""
    for place in _places(estate):
        place.clear_run(run)


def memory_cgroups(estate: dict[str, Any], run: str) -> set[int]:
    """Return the inodes of the cgroups that a run's tenants' memory is charged to; none without slices.

    The run's own is one of them: what a removed slice held passes to it. The runner's leaf is none.
    """
    v1, v2 = estate.get("v1"), estate.get("v2")
    tops = [Path(v1["mounts"]["memory"], v1["base"], run)] if v1 else []
    tops += [Path(v2["home"], run)] if v2 else []
    found = set()
    for level in [Path(path) for top in tops for path, _, _ in os.walk(top) if Path(path) != top / LEAF]:
        with contextlib.suppress(OSError):
            found.add(level.stat().st_ino)
    return found


def _places(estate: dict[str, Any]) -> list[V1 | Tree]:
    v1, v2 = estate.get("v1"), estate.get("v2")
    places: list[V1 | Tree] = []
    if v1 is not None:
        places.append(V1({name: Path(path) for name, path in v1["mounts"].items()}, v1["base"]))
    if v2 is not None:
        places.append(Tree(Path(v2["top"]), Path(v2["home"])))
    return places
