"""Neighbours of known pressure: `--pressure dram:0,25,50` as a job of ours, the mixes of it with others, and `--sense`,
which adds what each job takes of a resource: what a probe loses beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cotenant.choices import OF_DEVICES, OF_HOSTS, PCIE
from cotenant.errors import CotenantError, did_you_mean
from cotenant.suite.cells import Job, labels_of
from cotenant.suite.fields import Args, checked_name, name_of, positive_of
from cotenant.suite.mixes import JOINED, Mix, check_keys_of, labels_named, texts_of
from cotenant.text import quoted

RESOURCES = OF_HOSTS + OF_DEVICES
USUAL_LEVELS = (0, 25, 50, 75, 100)
FULL = 100
PREFIX, PROBE = "pressure_", "probe_"
ROUNDS = 4
"""How often each level comes: with three there is an interval."""
BLOCK_S = 3.0
"""How long a level lasts at once: long against a job's observations, of which those inside count."""
PROBED_S = 0.2
"""How long an observation of a probe lasts: short against a block, and some periods long."""
PERIODS_S = {"memory": 0.2}
USUAL_PERIOD_S = 0.05
"""As the benchmarks' --period-ms."""
KEYS = ("name", "sense", "pressure", "block_s", "timeout")


@dataclass(frozen=True, slots=True)
class Sense:
    """The launches of an entry `sense`: `mixes` of jobs, and of probes, with `neighbours`, jobs of ours."""

    mixes: tuple[Mix, ...]
    neighbours: tuple[Job, ...]


def pressable(devices: int) -> tuple[str, ...]:
    """Return the resources that two tenants of a host with so many devices share: of several each has its own."""
    return OF_HOSTS + (OF_DEVICES if devices == 1 else (PCIE,) if devices else ())


def why_unpressed(labels: Iterable[str], devices: Sequence[Collection[object]], in_memory: bool) -> str:
    """Return why a neighbour among these cells would press on nothing that others have; "" where it would.

    `devices` are those of each tenant. `in_memory`: temporary files lie there.
    """
    resources = {label.removeprefix(PREFIX) for label in labels if label.startswith(PREFIX)}
    if "disk" in resources and in_memory:
        return "temporary files lie in memory, where no disk is pressed: let BASE lie on one."
    if not resources.intersection(OF_DEVICES):
        return ""
    if not all(devices):
        return "there is no device to be pressed."
    if PCIE in resources or set.intersection(*map(set, devices)):
        return ""
    return "each tenant has a device of its own: show the runner one (CUDA_VISIBLE_DEVICES=0), and use --share time."


def neighbour(text: str, block_s: float = BLOCK_S) -> Job:
    """Return the job of `RESOURCE` or `RESOURCE:LEVELS`. Raises CotenantError for what is no resource or no levels."""
    resource, _, rest = text.partition(":")
    if resource not in RESOURCES:
        remedy = did_you_mean(resource, RESOURCES) or f"There are {', '.join(RESOURCES)}."
        raise CotenantError(f"--pressure: there is no pressure on {quoted(resource)}.", remedy)
    levels = _levels(rest) if rest or ":" in text else USUAL_LEVELS
    return _job(PREFIX, resource, levels, block_s, ROUNDS * len(levels))


def probe(resource: str) -> Job:
    """Return the probe of a resource: a neighbour at full level, whose own rate tells what others take of it."""
    return _job(PROBE, resource, (FULL,), PROBED_S, 10)


def _job(prefix: str, resource: str, levels: Sequence[int], observation_s: float, repeat: int) -> Job:
    number = max(1, round(observation_s / PERIODS_S.get(resource, USUAL_PERIOD_S)))
    flags: dict[str, str | int] = {"--level": " ".join(map(str, levels)), "--number": number, "--repeat": repeat}
    args: Args = tuple((name, (value,)) for name, value in (flags | {"--skip": 0}).items())
    name = f"{prefix}{resource}"
    return Job(name, f"./pressure/{resource}/pytorch/run.sh", args, "student", stem=name)


def beside(labels: Iterable[str], pressures: Iterable[Job], family: str = "--pressure") -> tuple[Mix, ...]:
    """Return every cell beside each of the neighbours, called `vae+dram`."""
    cells = [*labels]
    return tuple(
        Mix(checked_name(f"{label}{JOINED}{pressure.name.removeprefix(PREFIX)}"), (label, pressure.name), family=family)
        for pressure in pressures
        for label in cells
    )


def sensed(labels: Iterable[str], pressures: Iterable[Job], family: str) -> Sense:
    """Return every cell, and the probe of each resource, beside each of the neighbours.

    Raises CotenantError for a neighbour that never reaches the probe's level.
    """
    cells, every = [*labels], [*pressures]
    for pressure in every:
        if str(dict(pressure.args)["--level"][0]).split()[-1] != str(FULL):
            raise CotenantError(
                f"{pressure.name.removeprefix(PREFIX)}: what a job takes is read at level {FULL}, which is missing.",
                "As dram:0,50,100.",
            )
    probes = [probe(pressure.name.removeprefix(PREFIX)) for pressure in every]
    mixes = [
        mix
        for own, pressure in zip(probes, every, strict=True)
        for mix in beside([*labels_of(own), *cells], [pressure], family)
    ]
    return Sense(tuple(mixes), (*every, *probes))


def sense_named(text: str, pressures: Sequence[str]) -> Sense:
    """Return the launches of `--sense a,b` on `pressures`. Raises CotenantError for no name."""
    return sensed(dict.fromkeys(labels_named(text, "--sense")), map(neighbour, pressures), "--sense")


def sense_of(entry: Mapping[str, object]) -> Sense:
    """Return the launches of an entry of a job file, its cells not yet looked up. Raises CotenantError."""
    check_keys_of(entry, KEYS)
    labels, resources = texts_of(entry, "sense"), [*OF_HOSTS]
    if "pressure" in entry:
        resources = texts_of(entry, "pressure", '["cpu", "dram:0,50,100"]')
    block_s = positive_of(dict(entry), "block_s") or BLOCK_S
    pressures = [neighbour(each, block_s) for each in dict.fromkeys(resources)]
    sense = sensed(dict.fromkeys(labels), pressures, name_of(dict(entry)))
    timeout_s = positive_of(dict(entry), "timeout")
    return replace(sense, mixes=tuple(replace(mix, timeout_s=timeout_s) for mix in sense.mixes))


def _levels(text: str) -> tuple[int, ...]:
    try:
        levels = sorted(map(int, text.split(",")))
    except ValueError:
        raise CotenantError(f"--pressure: {quoted(text)} are no levels.", "As dram:0,25,50,75,100.") from None
    if levels[0] < 0 or levels[-1] > FULL or len(set(levels)) < len(levels):
        raise CotenantError("--pressure: levels are different percentages, 0 to 100.", "As dram:0,25,50,75,100.")
    if levels[0] != 0 or len(levels) < 2:
        raise CotenantError("--pressure: a curve is relative to level 0, and needs another level.", "As dram:0,50,100.")
    return tuple(levels)
