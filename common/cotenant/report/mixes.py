"""Rates of different jobs beside each other: each tenant's progress, and the worth of the mix as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from cotenant.report import numbers
from cotenant.report.alone import STEP_TIMES, BaselineWord
from cotenant.report.grid import (
    Cell,
    Column,
    Grid,
    Measurement,
    Row,
    RowGroup,
    Words,
    measured_columns,
    place_columns,
    row,
    word,
)
from cotenant.report.kept import (
    OF_N,
    QUICK,
    QUICKLY,
    kept_columns,
    kept_fields,
    kept_values,
    percents,
    shown,
)
from cotenant.report.price import (
    ALONE_HEADING,
    STEPS_HEADING,
    StepTimes,
    energy,
    legends,
    steps_alone,
    steps_cell,
    steps_together,
)
from cotenant.report.summary import JobSummary, Summary
from cotenant.results.columns import TENANT
from cotenant.results.identity import natural
from cotenant.results.launches import grouped
from cotenant.results.record import SUSPECT
from cotenant.stats.evenness import differences_within
from cotenant.stats.kept import Kept, joint
from cotenant.stats.launches import AcrossLaunches, across_launches
from cotenant.stats.multiprogram import MixMeasures, mix_measures


@dataclass(frozen=True, slots=True)
class MixTenant:
    """A tenant of a mix: rates in items per second, `progress` together over alone; None where one was not measured.

    `doubts` are the rules of
    warnings on its launches: the worst of those beside others, and all of those alone.
    `sharers` is how many tenants have its device, or its processors where it has none; `entitlement` its part of that.
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
    sharers: int
    entitlement: float
    steps: StepTimes | None = None
    steps_alone: StepTimes | None = None

    @property
    def quick(self) -> bool:
        return self.baseline == "quick"


@dataclass(frozen=True, slots=True)
class MixBlock:
    """A mix of one suite on one host under one isolation. `measures` is None where a tenant's progress is not known,
    and `notes` say why. `sharers` is how many tenants have the same processors. `energy` is over that alone."""

    suite: str
    host: str
    mix: str
    isolation: str
    sharers: int
    tenants: tuple[MixTenant, ...]
    measures: MixMeasures | None
    notes: tuple[str, ...]
    energy: Kept | None = None

    @property
    def is_pair(self) -> bool:
        """Whether it is a pair of two jobs that has no other name."""
        return len(self.tenants) == 2 and self.mix == "+".join(tenant.job for tenant in self.tenants)


def mix_blocks(summary: Summary) -> list[MixBlock]:
    """Return a block for each mix, in the order of first sight."""
    of_mixes = [job for job in summary.jobs if job.mix]
    blocks = []
    for (suite, host, mix, isolation), jobs in grouped(
        of_mixes, lambda job: (job.suite, job.host, job.mix, job.isolation)
    ).items():
        own = sorted(
            ((tenant, job) for job in jobs for tenant in job.together.tenants), key=lambda pair: natural(pair[0])
        )
        reasons = [f"{job.name}: {why}" for job in jobs if (why := _why_not(job))]
        if len({job.name for job in jobs}) < len(jobs):
            reasons.append("its launches did different work: report on one directory of them")
        tenants_of = {dict(launch.work)["tenants"] for job in jobs for launch in job.rates}
        if not reasons and tenants_of != {len(own)}:
            reasons.append(f"there are records of {len(own)} of its {max(tenants_of)} tenants")
        measures = None if reasons else _measures(own)
        if measures is None and not reasons:
            reasons.append("no repetition has all tenants together and each of their jobs alone")
        tenants = tuple(_tenant(tenant, job, measures) for tenant, job in own)
        sharers = max(job.sharers for job in jobs)
        joules = None if reasons else energy(own)
        blocks.append(MixBlock(suite, host, mix, isolation, sharers, tenants, measures, tuple(reasons), joules))
    return blocks


def _why_not(job: JobSummary) -> str:
    """Return why the progress of a job's tenants is not known; "" where it is."""
    if not job.rates:
        return f"no launch counts ({job.verdict})"
    if job.alone is None:
        return f"{job.cell} was not measured alone: --baseline quick, or whole"
    if any(not job.alone.of(tenant) for tenant in job.together.tenants):
        return f"{job.cell} alone: {job.alone.reason or 'not in this slice'}"
    return ""


def _measures(tenants: Sequence[tuple[str, JobSummary]]) -> MixMeasures | None:
    together = {tenant: job.together.of(tenant) for tenant, job in tenants}
    alone = {tenant: job.alone.of(tenant) for tenant, job in tenants if job.alone is not None}
    # Devices, or slices, that they have together: of what K tenants share each has a part of one.
    return mix_measures(together, alone, sum(1 / _part(tenant, job)[0] for tenant, job in tenants))


def _part(tenant: str, job: JobSummary) -> tuple[int, float]:
    """Return how many tenants have this one's device, or its processors where it has none, and its part of that."""
    columns = ("share", "share_asked", "device_sharers", "sharers", "entitlement")
    known = job.members.where(TENANT.eq(tenant)).columns(*columns).row(0, named=True)
    mode = known["share"] or known["share_asked"]
    sharers = known["device_sharers"] if mode else known["sharers"]
    # Alone a user of an instance has that instance.
    return sharers, (None if mode == "mig" else known["entitlement"]) or 1 / sharers


def _tenant(tenant: str, job: JobSummary, measures: MixMeasures | None) -> MixTenant:
    together, alone = job.together.of(tenant), {} if job.alone is None else job.alone.of(tenant)
    sharers, entitlement = _part(tenant, job)
    return MixTenant(
        tenant=tenant,
        job=job.cell,
        unit=job.unit,
        together=across_launches([*together.values()]) if together else None,
        alone=across_launches([*alone.values()]) if alone else None,
        progress=None if measures is None else job.kept.get(tenant),
        baseline="" if job.alone is None else job.alone.baseline,
        verdict=f"{job.verdict}, {SUSPECT} alone" if job.alone is not None and job.alone.doubts else job.verdict,
        doubts=job.doubts,
        sharers=sharers,
        entitlement=entitlement,
        steps=steps_together(job, tenant),
        steps_alone=steps_alone(job, tenant),
    )


# The view

LEGEND = (
    "/ alone: a tenant's rate beside the others over its rate alone in its slice; slowdown: its inverse. STP: the sum "
    "of / alone, how many slices those of the mix are worth; ANTT: the mean slowdown; fairness: the least / alone over "
    "the greatest; tax: 1 - STP / slices."
)
MEASURES = ("stp", "antt", "worst_slowdown", "fairness", "tax")
FIELDS = (
    *("suite", "host", "mix", "isolation", "tenant", "job", "unit"),
    *(*kept_fields("progress"), "share_kept", "slowdown"),
    *("together", "together_low", "together_high", "alone", "alone_low", "alone_high", "baseline", "verdict"),
    *(*STEP_TIMES, *(f"alone_{name}" for name in STEP_TIMES), "measure", *kept_fields("value")),
)
Item = tuple[MixBlock, MixTenant]


def _share_kept(item: Item) -> Cell:
    """Return the kept part of its entitlement, which is a part of a device, or of processors, that several share."""
    _, tenant = item
    if tenant.progress is None:
        return Cell()
    share_kept = tenant.progress.value / tenant.entitlement
    return Cell(numbers.ratio(share_kept) if tenant.sharers > 1 else "", {"share_kept": share_kept})


def _slowdown(item: Item) -> Cell:
    if item[1].progress is None:
        return Cell()
    value = item[1].progress.inverse().value
    return Cell(numbers.ratio(value), {"slowdown": value})


def _rate(name: str) -> Sequence[Column[Item]]:
    def rate(item: Item) -> Measurement | None:
        across: AcrossLaunches | None = getattr(item[1], name)
        return None if across is None else Measurement(across.rate, across.interval, str(across.n))

    return measured_columns(name, rate, [name, f"{name}_low", f"{name}_high"])[:1]


PLACE: Sequence[Column[Item]] = place_columns(lambda item: item[0], "suite", "host", "mix", "isolation")
COLUMNS: Sequence[Column[Item]] = (
    *PLACE,
    Column("tenant", lambda item: word(item[1].tenant, "tenant")),
    Column("job", lambda item: word(item[1].job, "job"), left=True),
    *kept_columns("/ alone", lambda item: item[1].progress, "progress"),
    Column("share kept", _share_kept, optional=True),
    Column("slowdown", _slowdown),
    *_rate("together"),
    *_rate("alone"),
    Column("unit", lambda item: Cell(f"{item[1].unit or 'item'}/s", {"unit": item[1].unit}), left=True),
    Column(STEPS_HEADING, lambda item: steps_cell("", item[1].steps), optional=True),
    Column(ALONE_HEADING, lambda item: steps_cell("alone_", item[1].steps_alone), optional=True),
    Column("baseline", lambda item: _baseline(item[1]), left=True, optional=True),
    Column("verdict", lambda item: word(item[1].verdict, "verdict"), left=True),
)


def _baseline(tenant: MixTenant) -> Cell:
    kind = "" if tenant.alone is None else tenant.baseline
    return Cell(kind if kind != "whole" else "", {"baseline": kind})


def mix_grid(blocks: Sequence[MixBlock]) -> Grid:
    """Return a row per tenant of each mix, and its measures below. Of programs' rows each measure is one."""
    groups = [
        RowGroup([*_rows(block)], f"{block.mix}: {len(block.tenants)} tenants", _facts(block), [*_notes(block)])
        for block in blocks
    ]
    document = {"schema": "cotenant-mix-1", "mixes": [asdict(block) for block in blocks]}
    legend = [LEGEND, OF_N]
    if any(tenant.quick for block in blocks for tenant in block.tenants):
        legend.append(QUICK)
    steps = (tenant.steps for block in blocks for tenant in block.tenants)
    legend += legends((block.energy for block in blocks), steps)
    return Grid(COLUMNS, groups, notes=[((" ".join(legend), "dim"),)], fields=FIELDS, document=document)


def _facts(block: MixBlock) -> str:
    of_device = max((tenant.sharers for tenant in block.tenants), default=1)
    shared = f", {of_device} of them have the same device" if of_device > 1 else ""
    shared = f", {block.sharers} of them have the same processors" if block.sharers > 1 else shared
    return f"{block.suite} on {block.host}, isolation {block.isolation}{shared}"


def _rows(block: MixBlock) -> Iterator[Row]:
    place = {"suite": block.suite, "host": block.host, "mix": block.mix, "isolation": block.isolation}
    for tenant in block.tenants:
        made = row(COLUMNS, (block, tenant))
        yield Row(made.cells, {**made.record, **place})
    if block.measures is not None:
        measures: dict[str, Kept] = {name: getattr(block.measures, name) for name in MEASURES}
        for name, measure in (measures | ({"energy": block.energy} if block.energy else {})).items():
            yield Row(values={**place, "measure": name, **kept_values(measure, "value")})


def _notes(block: MixBlock) -> Iterator[Words]:
    if (measures := block.measures) is not None:
        worst = next(tenant for tenant in block.tenants if tenant.tenant == measures.worst)
        parts = [
            f"STP {shown(measures.stp)} of {measures.slices:g} slices",
            f"ANTT {shown(measures.antt)}",
            f"worst slowdown {shown(measures.worst_slowdown)}, tenant {worst.tenant} ({worst.job})",
            f"fairness {shown(measures.fairness)}",
            f"tax {percents(measures.tax)}",
            *([f"energy {shown(block.energy)}"] if block.energy else []),
        ]
        yield (("; ".join(parts), "bold"),)
    yield from (((note, "yellow"),) for note in block.notes)


def mix_sentence(block: MixBlock) -> str:
    """Return the kept shares of a mix's users, and who keeps least; that it is not known, and why, where it is not."""
    if block.measures is None:
        return f"what the users of {block.mix} keep beside each other is not known: {'; '.join(block.notes)}"
    known = {tenant.job: tenant.progress for tenant in block.tenants if tenant.progress is not None}
    parts = [tenant.progress for tenant in block.tenants if tenant.progress is not None]
    mean, least = joint(parts), min(known, key=lambda job: known[job].value)
    assert mean is not None  # measures are of tenants
    differ = block.measures.differences or differences_within(parts)
    worst = f"; least: {least}, {percents(known[least])}" if differ is None or differ.notable else ""
    quick = QUICKLY if any(tenant.quick for tenant in block.tenants) else ""
    return (
        f"beside each other the {len(block.tenants)} users of {block.mix} keep {percents(mean)} of what each has "
        f"alone{quick}{worst}{'; measured once' if block.measures.stp.n == 1 else ''}"
    )
