"""The job files that come with us, and the names of their jobs."""

from __future__ import annotations

import json

from cotenant.checkout import CHECKOUT


def shipped_suites() -> list[str]:
    """Return the names that `--jobs` takes for the files that come with us."""
    return sorted([path.stem for path in (CHECKOUT / "profiles").glob("*.json")] + ["baselines"])


def shipped_jobs() -> list[str]:
    """Return the names of the jobs of these files, each once, those of the reference suite first."""
    places = [CHECKOUT / "baselines.json", *sorted((CHECKOUT / "profiles").glob("*.json"))]
    return list(
        dict.fromkeys(job["name"] for place in places if place.is_file() for job in json.loads(place.read_text()))
    )
