"""What a dead runner has left in cgroups, cleared from what its backend's `estate` said. Standard library only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cotenant.isolation.v1 import V1
from cotenant.isolation.v2tree import Tree


def clear(estate: dict[str, Any], run: str) -> None:
    """Kill everything in a run's slices and remove them. Raises NotIsolatedError."""
    if (v1 := estate.get("v1")) is not None:
        V1({name: Path(path) for name, path in v1["mounts"].items()}, v1["base"]).clear(run)
    if (v2 := estate.get("v2")) is not None:
        Tree(Path(v2["top"]), Path(v2["home"])).clear_run(run)
