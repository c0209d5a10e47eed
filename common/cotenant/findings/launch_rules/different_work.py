"""Tenants of one launch that did different work: their rates have no sum and no fairness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cotenant.finding import Finding
from cotenant.text import listed

if TYPE_CHECKING:
    from cotenant.results.record import Record

ARGUMENTS = ("batch_size", "precision", "number")


def check(launch: Sequence[Record], earlier: Sequence[Record]) -> dict[int, Finding]:
    measured = [place for place, record in enumerate(launch) if record.statistics is not None]
    works = [_work(launch[place]) for place in measured]
    for name in works[0] if works else ():
        values = list(dict.fromkeys(work[name] for work in works))
        if len(values) > 1:
            finding = Finding(
                "different_work",
                "error",
                f"The tenants of this launch did different work: {name} {listed(values)}.",
                "Let every tenant do what the job's arguments say; only --seed differs between them.",
            )
            return dict.fromkeys(measured, finding)
    return {}


def _work(record: Record) -> dict[str, Any]:
    """Return what has to be equal, as text; paths are left out: a tenant may be given its own."""
    arguments = {name: str(record.arguments.get(name)) for name in ARGUMENTS}
    return {"source": record.version, "unit": record.unit} | arguments
