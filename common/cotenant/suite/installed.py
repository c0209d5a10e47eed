"""Benchmarks that other packages bring: entry points of the group `cotenant.benchmarks`, each a module that is run.

Nothing of such a package is imported here: that is the tenant's part.
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
    """Return the names of all of them, sorted."""
    return sorted({entry.name for entry in _entries()})


def installed_program(name: str) -> Path | None:
    """Return the file of the module that an installed benchmark names; None where none is called so.

    Raises CotenantError where there is no such module, or two packages bring one name.
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
        raise CotenantError(f"The benchmark '{name}' is the module {module}, which is not there.", "Install it anew.")
    return Path(spec.origin)


def _entries() -> EntryPoints:
    from importlib.metadata import entry_points  # a suite of commands that lie beside it needs no package

    return entry_points(group=GROUP)
