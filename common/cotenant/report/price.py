"""The price of sharing beside rate: the time of steps that somebody waits for, and joules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from statistics import median

from cotenant.report.alone import POWER, STEP_TIMES, RecordRow
from cotenant.report.grid import Cell
from cotenant.report.summary import JobSummary
from cotenant.results.columns import TENANT
from cotenant.stats.kept import Kept
from cotenant.stats.launches import across_launches
from cotenant.stats.multiprogram import energy_over_alone

STEPS_HEADING, ALONE_HEADING = "p50, p95, p99 of a step", "of a step alone"
OF_ENERGY = (
    "energy: joules of the devices, by their own counters, over those of the same items by each tenant alone, one "
    "after another. Nothing tells the joules of one user of a device apart."
)
OF_STEPS = f"{STEPS_HEADING}: medians over launches, of a job whose steps somebody waits for."


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Nanoseconds that 50, 95 and 99 of 100 steps of a tenant do not exceed."""

    p50_ns: float
    p95_ns: float
    p99_ns: float

    def __str__(self) -> str:
        """`4.1, 6.0, 9.8 ms`."""
        return f"{', '.join(f'{time_ns / 1e6:.3g}' for time_ns in astuple(self))} ms"


def steps_together(job: JobSummary, tenant: str) -> StepTimes | None:
    """Return the times of a tenant's steps beside the others; None where nobody waits for them."""
    return _over_launches(job.members.where(TENANT.eq(tenant)).columns(*STEP_TIMES).to_dicts())


def steps_alone(job: JobSummary, tenant: str) -> StepTimes | None:
    """Return the times of a tenant's steps alone in its slice."""
    return None if job.alone is None else _over_launches([*job.alone.rows.get(tenant, {}).values()])


def _over_launches(rows: Sequence[RecordRow]) -> StepTimes | None:
    known = [times for row in rows if None not in (times := [row[name] for name in STEP_TIMES])]
    return StepTimes(*(median(of) for of in zip(*known, strict=True))) if known else None


def energy(tenants: Sequence[tuple[str, JobSummary]]) -> Kept | None:
    """Return the joules of these tenants of one launch over those that their items take by each of them alone.

    None where they are not known of every tenant, together and alone.
    """
    together = {tenant: job.together.of(tenant) for tenant, job in tenants}
    alone_j = {tenant: joules_alone(tenant, job) for tenant, job in tenants}
    return energy_over_alone(watts([job for _, job in tenants]), together, alone_j)


def joules_per_item(job: JobSummary) -> float | None:
    """Return the joules of an item beside others, of tenants that are equal: power over rate, of all of them."""
    of_launches, rates = watts([job]), job.together.node
    known = [of_launches[uid] / rate for uid, rate in rates.items() if uid in of_launches]
    return across_launches(known).rate if known else None


def watts(jobs: Collection[JobSummary]) -> dict[int, float]:
    """Return the power of the devices of launches of these jobs, by uid: of each that several share once."""
    devices: dict[int, dict[str, float | None]] = defaultdict(dict)
    for job in jobs:
        for row in job.members.columns("run_id", "vcd", POWER).to_dicts():
            devices[row["run_id"]][row["vcd"]] = row[POWER]
    return {uid: sum(filter(None, of.values())) for uid, of in devices.items() if all(of.values())}


def joules_alone(tenant: str, job: JobSummary) -> Mapping[int, float]:
    """Return the joules of an item of a tenant alone, by uid."""
    rows = {} if job.alone is None else job.alone.rows.get(tenant, {})
    return {uid: row[POWER] / row["rate_items_s"] for uid, row in rows.items() if row[POWER]}


def steps_cell(prefix: str, times: StepTimes | None) -> Cell:
    """Return the times of steps as `4.1, 6.0, 9.8 ms`, under fields of this prefix."""
    if times is None:
        return Cell()
    values = dict(zip((f"{prefix}{name}" for name in STEP_TIMES), astuple(times), strict=True))
    return Cell(str(times), values)


def joules_cell(joules: float | None) -> Cell:
    return Cell() if joules is None else Cell(f"{joules:.3g}", {"joules_per_item": joules})


def legends(energies: Iterable[Kept | None], steps: Iterable[StepTimes | None]) -> list[str]:
    """Return the sentences on those of these that are known of anybody."""
    every = ((OF_ENERGY, energies), (OF_STEPS, steps))
    return [text for text, known in every if any(each is not None for each in known)]
