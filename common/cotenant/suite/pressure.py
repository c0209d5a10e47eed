"""Neighbours of known pressure: `--pressure dram:25,50` as jobs of ours, one for each level, and their pairs with
other jobs, which measure the shares that both keep."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cotenant.choices import OF_DEVICES, OF_HOSTS, PCIE
from cotenant.errors import CotenantError, did_you_mean
from cotenant.suite.cells import Job
from cotenant.suite.fields import checked_name, name_of, positive_of
from cotenant.suite.mixes import Mix, check_keys_of, checked_pairs, labels_named, texts_of
from cotenant.text import quoted

RESOURCES = OF_HOSTS + OF_DEVICES
USUAL_LEVELS = (25, 50, 75, 100)
FULL = 100
PREFIX = "pressure_"
LAUNCHED = ("memory",)
"""Resources that a neighbour occupies even while it is stopped: a job's rate alone needs launches without it."""
KEYS = ("name", "sense", "pressure", "timeout")


@dataclass(frozen=True, slots=True)
class Sense:
    """Pairs of jobs with `neighbours`, jobs of ours: a mix for each resource."""

    mixes: tuple[Mix, ...]
    neighbours: tuple[Job, ...]


def level_of(label: str) -> tuple[str, int] | None:
    """Return resource and level of a neighbour of known pressure, by its name; None for any other job."""
    found = re.fullmatch(f"{PREFIX}({'|'.join(RESOURCES)})_([0-9]+)", label)
    return None if found is None else (found[1], int(found[2]))


def pressable(devices: int) -> tuple[str, ...]:
    """Return the resources that two tenants of a host with `devices` devices share: of several each has its own."""
    return OF_HOSTS + (OF_DEVICES if devices == 1 else (PCIE,) if devices else ())


def why_unpressed(labels: Iterable[str], devices: Sequence[Collection[object]], in_memory: bool) -> str:
    """Return why a neighbour among these cells would press on no resource of the others; "" if it would.

    `devices` are those of each tenant. `in_memory`: temporary files are in memory.
    """
    resources = {known[0] for label in labels if (known := level_of(label)) is not None}
    if "disk" in resources and in_memory:
        return "temporary files lie in memory, where no disk is pressed: let BASE lie on one."
    if not resources.intersection(OF_DEVICES):
        return ""
    if not all(devices):
        return "there is no device to be pressed."
    if PCIE in resources or set.intersection(*map(set, devices)):
        return ""
    return "each user has a device of its own: show the runner one (CUDA_VISIBLE_DEVICES=0), and use --share time."


def neighbours(text: str) -> tuple[Job, ...]:
    """Return the jobs of `RESOURCE` or `RESOURCE:LEVELS`, by rising level, without level 0, a neighbour at rest.

    Raises CotenantError for an unknown resource, and for invalid levels.
    """
    resource, _, rest = text.partition(":")
    if resource not in RESOURCES:
        remedy = did_you_mean(resource, RESOURCES) or f"There are {', '.join(RESOURCES)}."
        raise CotenantError(f"--pressure: there is no pressure on {quoted(resource)}.", remedy)
    levels = _levels(rest) if rest or ":" in text else USUAL_LEVELS
    cmd = f"./pressure/{resource}/pytorch/run.sh"
    names = [(f"{PREFIX}{resource}_{level}", level) for level in levels]
    return tuple(Job(name, cmd, (("--level", (level,)),), "student", stem=name) for name, level in names)


def pressed(labels: Iterable[str], resources: Iterable[str], family: str, timeout_s: float | None = None) -> Sense:
    """Return every cell beside each level of each of `resources`, as pairs in a mix for each resource."""
    cells = tuple(dict.fromkeys(labels))
    mixes: list[Mix] = []
    every: dict[Job, None] = {}
    for text in resources:
        jobs, resource = neighbours(text), text.partition(":")[0]
        every |= dict.fromkeys(jobs)
        there = (*cells, *(job.name for job in jobs))
        pairs = tuple((cell, level) for cell in range(len(cells)) for level in range(len(cells), len(there)))
        name = checked_name(f"{family.lstrip('-')}_{resource}")
        mix = checked_pairs(Mix(name, there, timeout_s, family, pairs))
        mixes += mix.apart if resource in LAUNCHED else (mix,)
    return Sense(tuple(mixes), tuple(every))


def sense_named(text: str, resources: Sequence[str]) -> Sense:
    """Return the pairs of `--sense a,b` on `resources`. Raises CotenantError without a name, or a full level."""
    return _in_full(pressed(labels_named(text, "--sense"), resources, "--sense"))


def sense_of(entry: Mapping[str, object]) -> Sense:
    """Return the pairs of a job file's entry, whose cells are not yet looked up. Raises CotenantError."""
    check_keys_of(entry, KEYS)
    labels, resources = texts_of(entry, "sense"), [*OF_HOSTS]
    if "pressure" in entry:
        resources = texts_of(entry, "pressure", '["cpu", "dram:50,100"]')
    name, timeout_s = name_of(entry), positive_of(entry, "timeout")
    return _in_full(pressed(labels, dict.fromkeys(resources), name, timeout_s))


def _in_full(sense: Sense) -> Sense:
    """Return `sense` unchanged. Raises CotenantError for a resource without the full level, which compares jobs."""
    levels = dict(known for job in sense.neighbours if (known := level_of(job.name)) is not None)
    for resource, highest in levels.items():
        if highest != FULL:
            raise CotenantError(
                f"{resource}: what a job takes is read at level {FULL}, which is missing.", "As dram:50,100."
            )
    return sense


def _levels(text: str) -> tuple[int, ...]:
    try:
        levels = sorted(map(int, text.split(",")))
    except ValueError:
        raise CotenantError(f"--pressure: {quoted(text)} are no levels.", "As dram:25,50,75,100.") from None
    if levels[0] < 0 or levels[-1] > FULL or len(set(levels)) < len(levels):
        raise CotenantError("--pressure: levels are different percentages, 1 to 100.", "As dram:25,50,75,100.")
    if not any(levels):
        raise CotenantError("--pressure: level 0 is a neighbour at rest, and no curve.", "As dram:50,100.")
    return tuple(level for level in levels if level)
