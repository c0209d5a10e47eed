"""A job: what a job file launches as equal tenants, or names in a mix."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cotenant.suite.fields import Args, Group


@dataclass(frozen=True, slots=True)
class Job:
    """One entry of a job file, in one of its precisions where that is an axis. Its texts still name variables.

    `stem` is the start of its files' names; `family` is the entry's own name where precision is an axis, else empty.
    `tuned`: its arguments were searched for on a machine (`cotenant tune`).
    """

    name: str
    cmd: str
    args: Args
    group: Group
    weight: float = 1.0
    timeout_s: float | None = None
    env: tuple[tuple[str, str], ...] = ()
    stem: str = ""
    family: str = ""
    tuned: bool = False


def labels_of(job: Job) -> tuple[str, ...]:
    """Return what a job's cells are called: the job's stem, and `.c<index>` where there are several."""
    cells = math.prod(len(values) for _, values in job.args)
    stem = job.stem or job.name
    return (stem,) if cells == 1 else tuple(f"{stem}.c{index}" for index in range(1, cells + 1))
