"""How long a fleet is tested: tiers of measured time on each node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from cotenant.fleet.resources import witnesses
from cotenant.suite.cells import Job, expand

TierName = Literal["3m", "15m", "1h", "soak"]
TIERS = get_args(TierName)
_SECONDS = {"3m": 180.0, "15m": 900.0, "1h": 3600.0, "soak": 3600.0}
SOAK_REPETITIONS = 24
WITNESSES = 2
"""Jobs of a resource in the shortest tier: as many as have to agree before it is named (stats.acceptance)."""


@dataclass(frozen=True, slots=True)
class Tier:
    """Which jobs run, for how many seconds each launch measures, and how often the suite is repeated."""

    jobs: tuple[Job, ...]
    budget_s: float | None
    repetitions: int = 1


def tier_of(name: TierName | None, jobs: tuple[Job, ...], resources: Mapping[str, str]) -> Tier:
    """Return the jobs of a tier among these; without one all of them, for as long as the job file has it.

    The shortest takes of each resource the jobs that can name it together; a soak is a day of repetitions.
    """
    if name is None:
        return Tier(jobs, None)
    if name == "3m":
        chosen = witnesses([job.name for job in jobs], resources, WITNESSES)
        jobs = tuple(job for job in jobs if job.name in chosen)
    launches = sum(len(expand(job)) for job in jobs)
    return Tier(jobs, _SECONDS[name] / max(launches, 1), SOAK_REPETITIONS if name == "soak" else 1)
