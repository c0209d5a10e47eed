"""Derives tenants beside each other from a summary: the measures of mixes of jobs, and the matrix of pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from itertools import chain
from statistics import median
from typing import NamedTuple

from cotenant.report.alone import POWER, STEP_TIMES, BaselineWord, RecordRow, Side
from cotenant.report.summary import JobSummary, Summary
from cotenant.results.columns import TENANT
from cotenant.results.identity import natural
from cotenant.results.launches import grouped
from cotenant.results.record import SUSPECT
from cotenant.stats.interference import MixMeasures, energy_over_alone, mix_measures
from cotenant.stats.kept import Kept, joint
from cotenant.stats.launches import AcrossLaunches

SLICES = "slices"
"""The modes of tenants that share processors but no device, and of tenants with a device instance each."""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Nanoseconds that 50, 95 and 99 of 100 steps of a tenant do not exceed."""

    p50_ns: float
    p95_ns: float
    p99_ns: float

    def __str__(self) -> str:
        """`4.1, 6.0, 9.8 ms`."""
        return f"{', '.join(f'{time_ns / 1e6:.3g}' for time_ns in astuple(self))} ms"


@dataclass(frozen=True, slots=True)
class TenantBeside:
    """A tenant beside others: rates in items per second, `progress` together over alone; None where not measured.

    `doubts` are the rules of the worst warning on its launches together, and of all warnings on those alone.
    `sharers` counts the tenants on its device, or on its processors if it has none; `entitlement` is its part of that.
    `steps` are medians over launches.
    """

    tenant: str
    job: str
    unit: str
    together: AcrossLaunches | None
    alone: AcrossLaunches | None
    progress: Kept | None
    baseline: BaselineWord
    verdict: str
    doubts: tuple[str, ...]
    mode: str
    sharers: int
    entitlement: float
    steps: StepTimes | None
    steps_alone: StepTimes | None

    @property
    def slowdown(self) -> float | None:
        """1 / progress."""
        return None if self.progress is None else 1 / self.progress.value


@dataclass(frozen=True, slots=True)
class MixBlock:
    """A mix of one suite on one host under one isolation. `measures` is None where a tenant's progress is not known,
    and `notes` say why. `sharers` tenants have the same processors. `energy` is together over alone."""

    suite: str
    host: str
    mix: str
    isolation: str
    sharers: int
    tenants: tuple[TenantBeside, ...]
    measures: MixMeasures | None
    notes: tuple[str, ...]
    energy: Kept | None

    @property
    def place(self) -> tuple[str, str, str]:
        """Suite, host and isolation: all pairs of one place form a matrix."""
        return self.suite, self.host, self.isolation

    @property
    def quick(self) -> bool:
        """Whether a rate alone is known from few observations."""
        return any(tenant.baseline == "quick" for tenant in self.tenants)

    @property
    def is_pair(self) -> bool:
        """Whether it is a pair of two jobs that has no other name."""
        return len(self.tenants) == 2 and self.mix == "+".join(tenant.job for tenant in self.tenants)


@lru_cache(maxsize=1)
def mix_blocks(summary: Summary) -> Sequence[MixBlock]:
    """Return a block for each mix, in the order in which they first appear."""
    of_mixes = grouped(
        (job for job in summary.jobs if job.mix), lambda job: (job.suite, job.host, job.mix, job.isolation)
    )
    return [_mix(*place, jobs) for place, jobs in of_mixes.items()]


def _mix(suite: str, host: str, mix: str, isolation: str, jobs: Sequence[JobSummary]) -> MixBlock:
    tenants = sorted(chain.from_iterable(map(tenants_of, jobs)), key=lambda of: natural(of.tenant))
    reasons = [f"{job.name}: {why}" for job in jobs if (why := why_not(job))]
    if len({job.name for job in jobs}) < len(jobs):
        reasons.append("its launches did different work: report on one directory of them")
    launched = {dict(launch.work)["tenants"] for job in jobs for launch in job.rates}
    if not reasons and launched != {len(tenants)}:
        reasons.append(f"there are records of {len(tenants)} of its {max(launched)} users")
    measures, energy = (None, None) if reasons else measured(jobs, tenants)
    if measures is None:
        tenants = [replace(tenant, progress=None) for tenant in tenants]
        reasons = reasons or ["no repetition has all users together and each of their jobs alone"]
    sharers = max(job.sharers for job in jobs)
    return MixBlock(suite, host, mix, isolation, sharers, tuple(tenants), measures, tuple(reasons), energy)


def why_not(job: JobSummary) -> str:
    """Return why the progress of a job's tenants is not known; "" where it is."""
    if not job.rates:
        return f"no launch counts ({job.verdict})"
    if job.alone is None:
        return f"{job.cell} was not measured alone: --baseline blocks, or whole"
    if any(not job.alone.of(tenant) for tenant in job.together.tenants):
        return f"{job.cell} alone: {job.alone.reason or 'not in this slice'}"
    return ""


def tenants_of(job: JobSummary) -> list[TenantBeside]:
    """Return the tenants of a job, in the order of its records."""
    names = ("share", "share_asked", "device_sharers", "sharers", "entitlement", *STEP_TIMES)
    rows = grouped(job.members.columns(*names, who=TENANT).to_dicts(), lambda row: str(row["who"]))
    alone = job.alone or Side()
    tenants = []
    for who in job.together.tenants:
        first = rows[who][0]
        mode = first["share"] or first["share_asked"] or SLICES
        sharers = first["sharers" if mode == SLICES else "device_sharers"]
        tenants.append(
            TenantBeside(
                tenant=who,
                job=job.cell,
                unit=job.unit,
                together=job.together.across(who),
                alone=alone.across(who),
                progress=job.kept.get(who),
                baseline=alone.baseline,
                verdict=f"{job.verdict}, {SUSPECT} alone" if alone.doubts else job.verdict,
                doubts=job.doubts,
                mode=mode,
                sharers=sharers,
                entitlement=first["entitlement"] or 1 / sharers,
                steps=_steps(rows[who]),
                steps_alone=_steps(alone.rows.get(who, {}).values()),
            )
        )
    return tenants


def _steps(rows: Iterable[RecordRow]) -> StepTimes | None:
    """Return the medians of step times over launches; None where these were not measured."""
    known = [times for row in rows if None not in (times := [row[name] for name in STEP_TIMES])]
    return StepTimes(*(median(of) for of in zip(*known, strict=True))) if known else None


def measured(jobs: Collection[JobSummary], tenants: Sequence[TenantBeside]) -> tuple[MixMeasures | None, Kept | None]:
    """Return the measures of all tenants of these jobs, and the energy of their items together over alone."""
    together = {who: rates for job in jobs for who, rates in job.together.tenants.items()}
    sides = {who: job.alone or Side() for job in jobs for who in job.together.tenants}
    # Their devices, or slices, in all: each of K sharers counts for 1 / K of one.
    slices = sum(1 / tenant.sharers for tenant in tenants)
    progress = {tenant.tenant: tenant.progress for tenant in tenants if tenant.progress is not None}
    alone = {who: side.of(who) for who, side in sides.items()}
    alone_j = {
        who: {uid: row[POWER] / row["rate_items_s"] for uid, row in side.rows.get(who, {}).items() if row[POWER]}
        for who, side in sides.items()
    }
    return mix_measures(progress, together, alone, slices), energy_over_alone(watts(jobs), together, alone_j)


def watts(jobs: Collection[JobSummary]) -> dict[int, float]:
    """Return the watts of all devices in the launches of these jobs, by uid; a shared device counts once."""
    devices: dict[int, dict[str, float | None]] = defaultdict(dict)
    for job in jobs:
        for uid, device, power_w in job.members.columns("run_id", "vcd", POWER).iter_rows():
            devices[uid][device] = power_w
    return {uid: sum(filter(None, of.values())) for uid, of in devices.items() if all(of.values())}


Pair = tuple[str, str]
"""A victim and its neighbour."""


class PairShare(NamedTuple):
    """The share that a victim keeps, and the rules that warn of its launches, alone or beside the neighbour."""

    kept: Kept
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PairMatrix:
    """The shares that jobs keep in pairs of one suite on one host under one isolation.

    For a job beside itself it is the mean of both tenants. `notes` say why pairs are missing.
    """

    suite: str
    host: str
    isolation: str
    jobs: tuple[str, ...]
    shares: Mapping[Pair, PairShare]
    notes: tuple[str, ...]
    quick: bool

    def sensitivity(self, victim: str) -> float | None:
        """Return the sum of a row, a job's kept shares beside all jobs; None where a pair is missing."""
        return self._sum((victim, neighbour) for neighbour in self.jobs)

    def noise(self, neighbour: str) -> float | None:
        """Return the sum of a column, all jobs' kept shares beside one job; None where a pair is missing."""
        return self._sum((victim, neighbour) for victim in self.jobs)

    def _sum(self, pairs: Iterable[Pair]) -> float | None:
        known = [self.shares[pair].kept.value for pair in pairs if pair in self.shares]
        return sum(known) if len(known) == len(self.jobs) else None


@lru_cache(maxsize=1)
def pair_matrices(summary: Summary) -> Sequence[PairMatrix]:
    """Return a matrix for each suite, host and isolation under which several pairs were measured.

    A job beside itself is either a pair that names it twice or a launch of two equal tenants.
    """
    pairs = [block for block in mix_blocks(summary) if block.is_pair]
    matrices = []
    for place, blocks in grouped(pairs, lambda block: block.place).items():
        jobs = [*dict.fromkeys(tenant.job for block in blocks for tenant in block.tenants)]
        shares = dict(chain.from_iterable(map(_of_pair, blocks)))
        victims = {victim for victim, _ in shares}
        for job in summary.jobs:
            # Two equal tenants with a slice each are a pair, too.
            is_here = not job.mix and (job.suite, job.host, job.isolation) == place
            if is_here and job.name in victims and len(job.tenants) == len(job.shares) == 2 and job.sharers == 1:
                shares.setdefault((job.name, job.name), PairShare(joint(job.shares), job.doubts))
        # A single pair needs no matrix: the table of mixes shows both its directions.
        if shares and (len(blocks) > 1 or len(shares) > 2):
            by_victim = dict(sorted(shares.items(), key=lambda share: jobs.index(share[0][0])))
            notes = tuple(f"{block.mix}: {note}" for block in blocks for note in block.notes)
            quick = any(block.quick for block in blocks)
            matrices.append(PairMatrix(*place, tuple(jobs), by_victim, notes, quick))
    return matrices


def outside_pairs(summary: Summary) -> list[MixBlock]:
    """Return the mixes that stand in no matrix of pairs."""
    places = {(matrix.suite, matrix.host, matrix.isolation) for matrix in pair_matrices(summary)}
    return [block for block in mix_blocks(summary) if not block.is_pair or block.place not in places]


def _of_pair(block: MixBlock) -> Iterator[tuple[Pair, PairShare]]:
    """Yield the shares in both directions, where these are known."""
    if block.measures is None:
        return
    (one, other), shares = block.tenants, [*block.measures.progress.values()]
    if one.job == other.job:
        doubts = tuple(dict.fromkeys((*one.doubts, *other.doubts)))
        yield (one.job, one.job), PairShare(joint(shares), doubts)
        return
    yield (one.job, other.job), PairShare(shares[0], one.doubts)
    yield (other.job, one.job), PairShare(shares[1], other.doubts)
