"""Neighbours of known pressure: `--pressure dram:25,50` as jobs of ours, one for each level, and their pairs with
other jobs, which measure the shares that these keep."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from cotenant.choices import OF_DEVICES, OF_HOSTS
from cotenant.errors import CotenantError, did_you_mean
from cotenant.removed import removed
from cotenant.suite.cells import Job
from cotenant.suite.mixes import Mix, checked_pairs
from cotenant.text import quoted

FLAG = "--pressure"
RESOURCES = OF_HOSTS + OF_DEVICES
USUAL_LEVELS = (25, 50, 75, 100)
FULL = 100
PREFIX = "pressure_"


class Pressed(NamedTuple):
    """The pairs of jobs with pressure `neighbours`, in a mix for each resource."""

    mixes: tuple[Mix, ...]
    neighbours: tuple[Job, ...]


def level_of(label: str) -> tuple[str, int] | None:
    """Return resource and level of a neighbour of known pressure, by its name; None for any other job."""
    found = re.fullmatch(f"{PREFIX}({'|'.join(RESOURCES)})_([0-9]+)", label)
    return None if found is None else (found[1], int(found[2]))


def why_unpressed(labels: Iterable[str], devices: Sequence[Collection[object]], in_memory: bool) -> str:
    """Return why a neighbour among these cells would press on no resource of the others; "" if it would.

    `devices` are each tenant's. `in_memory`: temporary files are in memory.
    """
    resources = {level[0] for label in labels if (level := level_of(label)) is not None}
    if "disk" in resources and in_memory:
        return "temporary files lie in memory, where no disk is pressed: let BASE lie on one."
    if not resources.intersection(OF_DEVICES):
        return ""
    if not all(devices):
        return "there is no device to be pressed."
    if set.intersection(*map(set, devices)):
        return ""
    return "each user has a device of its own: show the runner one (CUDA_VISIBLE_DEVICES=0), and use --share time."


def neighbours(text: str) -> tuple[Job, ...]:
    """Return the jobs of `RESOURCE` or `RESOURCE:LEVELS`, by rising level; level 0, a neighbour at rest, is left out.

    Raises CotenantError for an unknown resource, and for invalid levels.
    """
    resource, _, rest = text.partition(":")
    if sentence := removed(resource, FLAG):
        raise CotenantError(f"{FLAG} {resource} was removed.", sentence)
    if resource not in RESOURCES:
        remedy = did_you_mean(resource, RESOURCES) or f"There are {', '.join(RESOURCES)}."
        raise CotenantError(f"{FLAG}: there is no pressure on {quoted(resource)}.", remedy)
    levels = _levels(rest) if rest or ":" in text else USUAL_LEVELS
    cmd = f"./pressure/{resource}/pytorch/run.sh"
    names = [(f"{PREFIX}{resource}_{level}", level) for level in levels]
    return tuple(Job(name, cmd, (("--level", (level,)),), "student", stem=name) for name, level in names)


def pressed(labels: Iterable[str], resources: Iterable[str]) -> Pressed:
    """Return every cell beside each level of each of `resources`, as pairs in a mix for each resource."""
    cells = tuple(dict.fromkeys(labels))
    mixes: list[Mix] = []
    every: dict[Job, None] = {}
    for text in resources:
        jobs, resource = neighbours(text), text.partition(":")[0]
        every |= dict.fromkeys(jobs)
        there = (*cells, *(job.name for job in jobs))
        pairs = tuple((cell, level) for cell in range(len(cells)) for level in range(len(cells), len(there)))
        mixes.append(checked_pairs(Mix(f"{PREFIX}{resource}", there, family=FLAG, pairs=pairs)))
    return Pressed(tuple(mixes), tuple(every))


def _levels(text: str) -> tuple[int, ...]:
    try:
        levels = sorted(map(int, text.split(",")))
    except ValueError:
        raise CotenantError(f"{FLAG}: {quoted(text)} are no levels.", "As dram:25,50,75,100.") from None
    if levels[0] < 0 or levels[-1] > FULL or len(set(levels)) < len(levels):
        raise CotenantError(f"{FLAG}: levels are different percentages, 1 to 100.", "As dram:25,50,75,100.")
    if not any(levels):
        raise CotenantError(f"{FLAG}: level 0 is a neighbour at rest, and no curve.", "As dram:50,100.")
    return tuple(level for level in levels if level)
