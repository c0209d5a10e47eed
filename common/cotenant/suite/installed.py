"""Benchmarks of other packages: entry points of the group `cotenant.benchmarks`, each a module to run.

Such a package is not imported here, only in the tenant.
"""

from __future__ import annotations

from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from cotenant.errors import CotenantError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

GROUP = "cotenant.benchmarks"


def installed_benchmarks() -> list[str]:
    """Return the names of all installed benchmarks, sorted."""
    return sorted({entry.name for entry in _entries()})


def installed_program(name: str) -> Path | None:
    """Return the file of an installed benchmark's module; None if no benchmark has this name.

    Raises CotenantError if its module is missing, or two packages have a benchmark of this name.
    """
    modules = {entry.module for entry in _entries() if entry.name == name}
    if not modules:
        return None
    if len(modules) > 1:
        raise CotenantError(f"The benchmark '{name}' is installed {len(modules)} times: {', '.join(sorted(modules))}.")
    (module,) = modules
    parts = module.split(".")
    spec = PathFinder.find_spec(parts[0])
    for end in range(2, len(parts) + 1):
        # Not importlib.util.find_spec, which imports the packages around it.
        spec = spec and PathFinder.find_spec(".".join(parts[:end]), spec.submodule_search_locations)
    if spec is None or spec.origin is None:
        raise CotenantError(f"The benchmark '{name}' is the module {module}, which is not there.", "Reinstall it.")
    return Path(spec.origin)


def _entries() -> EntryPoints:
    from importlib.metadata import entry_points  # not needed by a suite with its commands beside it

    return entry_points(group=GROUP)
