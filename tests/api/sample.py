"""Records of invented runs, for the examples of docs/api.md and of the notebook: `output`, `A` and `B`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from commands.calling import write
from cotenant.finding import Finding
from cotenant.results.record import Record
from report.making import BUSY, launch, solo
from results.made import NOON

TURNS = (0.0, 3.0, -3.0, 1.0, -1.0)
"""Differences between the launches of a job, in milliseconds of an observation."""


def repeated(
    name: str, together_ms: float, alone_ms: float | None = None, day: int = 0, findings: tuple[Finding, ...] = ()
) -> list[Record]:
    """Five launches of two tenants, and of each tenant alone if `alone_ms` is given."""
    records = []
    for uid, off_ms in enumerate(TURNS):
        slower = 1 + 0.02 * uid  # `launch` slows them by it
        started = NOON + timedelta(days=day, minutes=uid)
        records += launch(name, uid, 2, (together_ms + off_ms) / slower, started=started, findings=findings)
        if alone_ms is not None:
            records += solo(name, uid, 2, alone_ms / slower)
    return records


def make_sample(folder: Path) -> Path:
    """Write the records of `output`: a job that keeps 90 % and one that keeps 60 %; of A, and of B, which is slower."""
    write(folder / "output", [*repeated("vae", 500, 450), *repeated("wlm", 500, 300, findings=(BUSY,))])
    write(folder / "A", repeated("vae", 500))
    write(folder / "B", repeated("vae", 530, day=1))
    return folder
