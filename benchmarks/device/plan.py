"""Which parts there are, what they show, and how long each may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

RUN_S = 560.0
"""Ten minutes, less what the last part of a run may be late and takes to end."""
LATE_S = 30.0


class UsageError(Exception):
    """What was asked for cannot be done; says why."""


@dataclass(frozen=True)
class Part:
    """`seconds` is what a part plans with on a device, and `quick_s` with `--quick`.

    `by_name`: with `--quick` it runs only where it is named, since it takes as long as all others.
    `grows`: it has more to measure than its seconds allow, and plans with what a run has left as well.
    """

    seconds: float
    shows: str
    quick_s: float = 90.0
    by_name: bool = False
    grows: bool = False


PARTS = {
    "facts": Part(15, "versions, cgroups, every raw answer of NVML"),
    "probes": Part(20, "errors of each precision, a step of known length, who waits for whom"),
    "meters": Part(20, "every quantity is there, what a look costs, energy against power"),
    "tasks": Part(110, "all tasks complete, on a resident batch, in the precision that was asked for", grows=True),
    "forms": Part(
        85, "which form of a job is fastest; nothing is compiled inside observations", by_name=True, grows=True
    ),
    "silent": Part(30, "no step waits for the device; how busy it is"),
    "harness": Part(30, "the measured loop against a bare one", by_name=True),
    "input": Part(45, "loaders, and whose memory pinned pages are", by_name=True),
    "cotenancy": Part(
        140, "several tenants on one device, and what one of them can do to the others", by_name=True, grows=True
    ),
    "left": Part(5, "nothing is left behind"),
}
FAMILIES = "families"
"""A run of its own, as `share` and `pressure` are: it takes as long as there are cells."""
SHARE = "share"
PRESSURE = "pressure"
EVERY = PARTS | {
    FAMILIES: Part(480, "families of models, two seconds a cell", quick_s=480),
    SHARE: Part(480, "K users of one device under each mode of sharing, and the fault matrix", quick_s=30),
    PRESSURE: Part(240, "neighbours that press on a device, each alone and beside a job", quick_s=120),
}


def planned_s(name: str, quick: bool, elapsed_s: float = 0.0, later: Sequence[str] = ()) -> float:
    """Return with how many seconds a part plans that begins so long after its run, with these parts behind it.

    What nobody plans with is divided equally among it and those of them that grow.
    """
    part, others = EVERY[name], [EVERY[other] for other in later]
    if quick or not part.grows:
        return part.quick_s if quick else part.seconds
    spare_s = RUN_S - elapsed_s - part.seconds - sum(other.seconds for other in others)
    return part.seconds + max(0.0, spare_s) / (1 + sum(other.grows for other in others))


def deadline_s(seconds: float, quick: bool) -> float:
    """Return when a part that plans with so many seconds is ended.

    A fifth later, half a minute at most, and never before its interpreter has started.
    """
    return seconds + 60 if quick else max(30.0, seconds + min(seconds / 5, LATE_S))


def chosen_parts(text: str | None) -> tuple[list[str], tuple[str, ...]]:
    """Return the parts that `--parts` names, and the families. Raises UsageError for what is none."""
    if text is None:
        return list(PARTS), ()
    parts: list[str] = []
    families: list[str] = []
    for word in filter(None, (word.strip() for word in text.split(","))):
        name, colon, family = word.partition(":")
        if name == FAMILIES:
            families += [family] if family else []
            word = FAMILIES
        elif colon or word not in EVERY:
            # Behind `families:A` what is no part is another family.
            if FAMILIES not in parts or not families:
                raise UsageError(f"There is no part '{word}'. The parts are {', '.join(EVERY)}.")
            families.append(word)
            continue
        parts += [word] * (word not in parts)
    if not parts:
        raise UsageError(f"--parts names none. The parts are {', '.join(EVERY)}.")
    return parts, tuple(families)
