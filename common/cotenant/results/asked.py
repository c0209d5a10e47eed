"""What suites were asked to run, by the resolved suite that each leaves beside its records."""

from __future__ import annotations

import json
from pathlib import Path

from cotenant.results.read import NOT_RECORDS
from cotenant.results.row import list_of, mapping_of


def asked_in(place: Path) -> set[str]:
    """Return the jobs of the resolved suites in a directory and below it; none of a file, or of what is damaged."""
    found: set[str] = set()
    for path in place.rglob(f"*{NOT_RECORDS}") if place.is_dir() else ():
        try:
            cells = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        labels = (mapping_of(cell).get("label") for cell in list_of(cells))
        found.update(label for label in labels if isinstance(label, str))
    return found
