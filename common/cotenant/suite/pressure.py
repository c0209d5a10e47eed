"""Neighbours of known pressure: `--pressure dram:0,25,50` as a job of ours, and the mixes of it with others."""

from __future__ import annotations

from collections.abc import Iterable

from cotenant.errors import CotenantError, did_you_mean
from cotenant.suite.fields import Args, checked_name
from cotenant.suite.jobfile import Job, labels_of
from cotenant.suite.mixes import JOINED, Mix
from cotenant.text import listed, quoted

RESOURCES = ("cpu", "llc", "dram", "disk", "memory")
USUAL_LEVELS = (0, 25, 50, 75, 100)
PREFIX = "pressure_"
ROUNDS = 4
"""How often each level comes: with three there is an interval."""
BLOCK_S = 3.0
"""How long a level lasts at once: long against a job's observations, of which those inside count."""
PERIODS_S = {"memory": 0.2}
USUAL_PERIOD_S = 0.05
"""As the benchmarks' --period-ms."""


def neighbour(text: str) -> Job:
    """Return the job of `RESOURCE` or `RESOURCE:LEVELS`. Raises CotenantError for what is no resource or no levels."""
    resource, _, rest = text.partition(":")
    if resource not in RESOURCES:
        remedy = did_you_mean(resource, RESOURCES) or f"There are {listed(RESOURCES)}."
        raise CotenantError(f"--pressure: there is no pressure on {quoted(resource)}.", remedy)
    levels = _levels(rest) if rest or ":" in text else USUAL_LEVELS
    number = round(BLOCK_S / PERIODS_S.get(resource, USUAL_PERIOD_S))
    flags: dict[str, str | int] = {
        "--level": " ".join(map(str, levels)),
        "--number": number,
        "--repeat": ROUNDS * len(levels),
        "--skip": 0,
    }
    args: Args = tuple((name, (value,)) for name, value in flags.items())
    name = f"{PREFIX}{resource}"
    return Job(name, f"./pressure/{resource}/pytorch/run.sh", args, "student", stem=name)


def beside(jobs: Iterable[Job], pressures: Iterable[Job]) -> tuple[Mix, ...]:
    """Return every cell of `jobs` beside each of the neighbours, called `vae+dram`."""
    labels = [label for job in jobs for label in labels_of(job)]
    return tuple(
        Mix(checked_name(f"{label}{JOINED}{pressure.name.removeprefix(PREFIX)}"), (label, pressure.name))
        for pressure in pressures
        for label in labels
    )


def _levels(text: str) -> tuple[int, ...]:
    try:
        levels = sorted(map(int, text.split(",")))
    except ValueError:
        raise CotenantError(f"--pressure: {quoted(text)} are no levels.", "As dram:0,25,50,75,100.") from None
    if levels[0] != 0 or len(levels) < 2:
        raise CotenantError(
            "--pressure: a curve is over what a job has beside level 0, and needs another level.", "As dram:0,50,100."
        )
    if levels[-1] > 100 or len(set(levels)) < len(levels):
        raise CotenantError("--pressure: levels are different percentages, 0 to 100.", "As dram:0,25,50,75,100.")
    return tuple(levels)
