"""The cost of neighbours and the worth of slices: launches alone in a slice, together in slices, together without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from cotenant.report import numbers
from cotenant.report.alone import NO_SLICES, BaselineWord, Side, rows_of, sliced, unlike
from cotenant.report.grid import Cell, Column, Grid, Row, RowGroup, Words, place_columns, row, text_column, word
from cotenant.report.kept import (
    BLOCKS,
    OF_N,
    QUICK,
    baseline_cell,
    explained,
    kept_columns,
    kept_fields,
    kept_values,
    rate_fields,
    rates_over_launches,
)
from cotenant.report.summary import JobSummary, Summary
from cotenant.results.identity import natural
from cotenant.results.launches import grouped
from cotenant.stats.interference import Rates, log_ratios, mean_kept, ratio
from cotenant.stats.kept import Kept
from cotenant.stats.launches import AcrossLaunches


@dataclass(frozen=True, slots=True)
class InterferenceLine:
    """One job's node, or one tenant of it. A value that was not measured, or does not count, is None.

    Rates are items per second: `alone` in the slice, `sliced` together in slices, `unsliced` together without;
    `unsliced_alone` is a tenant alone on the whole machine, and in no ratio.
    """

    job: str
    tenant: str | None
    unit: str
    alone: AcrossLaunches | None
    sliced: AcrossLaunches | None
    unsliced: AcrossLaunches | None
    unsliced_alone: AcrossLaunches | None
    kept: Kept | None
    """Together in slices over alone: 1 minus this is the interference."""
    unsliced_kept: Kept | None
    """Together without slices over alone in the slice."""
    worth: Kept | None
    """Together in slices over together without."""
    notes: tuple[str, ...]
    baseline: BaselineWord = ""
    """How tenants ran alone: in `blocks`, or in launches, `quick` ones where these had few observations; or empty."""


@dataclass(frozen=True, slots=True)
class InterferenceBlock:
    """One suite on one host: its lines, and over its `jobs` the geometric means of the three ratios of nodes."""

    suite: str
    host: str
    lines: tuple[InterferenceLine, ...]
    jobs: int
    kept: Kept | None
    unsliced_kept: Kept | None
    worth: Kept | None


RATES = ("alone", "sliced", "unsliced", "unsliced_alone")
RATIOS = ("kept", "unsliced_kept", "worth")


@lru_cache(maxsize=1)
def interference_blocks(summary: Summary) -> Sequence[InterferenceBlock]:
    """Return a block per suite and host that has a job measured in two of the three ways."""
    shared = [job for job in summary.jobs if job.group != "all" and not job.mix]
    blocks = []
    for (suite, host), jobs in grouped(shared, lambda job: (job.suite, job.host)).items():
        of_names = grouped(jobs, lambda job: job.name).values()
        made = [each for of_name in of_names for each in _lines(of_name)]
        if made:
            nodes = [(line, logs) for line, logs in made if line.tenant is None]
            means = [
                mean_kept((getattr(line, name), logs[at]) for line, logs in nodes) for at, name in enumerate(RATIOS)
            ]
            blocks.append(InterferenceBlock(suite, host, tuple(line for line, _ in made), len(nodes), *means))
    return blocks


def apart(summary: Summary) -> list[str]:
    """Say which jobs were measured with slices and without, but not in one suite on one host."""
    sentences = []
    shared = [job for job in summary.jobs if job.group != "all" and job.isolation and not job.mix]
    for name, jobs in grouped(shared, lambda job: job.name).items():
        inside, outside = ({_place(job) for job in jobs if sliced(job.isolation) == way} for way in (True, False))
        if inside and outside and not inside & outside:
            ran = f"in slices it ran as {', '.join(sorted(inside))}, without as {', '.join(sorted(outside))}"
            sentences.append(f"{name}: {ran}; those are never compared.")
    return sentences


def _place(job: JobSummary) -> str:
    return f"{job.suite or 'a suite'} on {job.host or 'an unnamed host'}"


def _lines(jobs: Sequence[JobSummary]) -> Iterator[tuple[InterferenceLine, Sequence[Rates]]]:
    """Yield the lines of the jobs of one name: with and without slices, paired where their work is equal."""
    without = [job for job in jobs if job.isolation == NO_SLICES]
    pairs: list[tuple[JobSummary | None, JobSummary | None, list[str]]] = []
    for job in jobs:
        if sliced(job.isolation):
            partner, notes = _partner(job, without)
            pairs.append((job, partner, notes))
            without = [other for other in without if other is not partner]
    pairs += [(None, job, [] if len(jobs) == 1 else ["nothing equal ran in slices"]) for job in without]
    for with_, without_, notes in pairs:
        yield from _of_pair(with_, without_, notes, several=len(pairs) > 1)


def _partner(job: JobSummary, without: Sequence[JobSummary]) -> tuple[JobSummary | None, list[str]]:
    """Return the job that did equal work without slices, or None and the differences of those that did not."""
    mine, reasons = rows_of(job.members), []
    # A job that never finished matches any, since only its name is known: it comes last.
    for other in sorted(without, key=lambda other: not other.members):
        if (reason := unlike([*mine, *rows_of(other.members)])) is None:
            return other, []
        reasons.append(f"without slices: {reason}")
    return None, list(dict.fromkeys(reasons))


def _of_pair(
    with_: JobSummary | None, without: JobSummary | None, notes: Sequence[str], several: bool
) -> Iterator[tuple[InterferenceLine, Sequence[Rates]]]:
    """Yield the lines of a job and its partner with the logarithms of RATIOS, if it was measured in two ways."""
    jobs = [job for job in (with_, without) if job is not None]
    first = jobs[0]
    if first.alone is None and len(jobs) < 2:
        return
    under, unsliced_under = first.alone or Side(), first.unsliced_alone or Side()
    over, over_unsliced = (Side() if job is None else job.together for job in (with_, without))
    notes = [*notes, *([f"alone: {under.reason}"] if under.reason else [])]
    notes += [f"{'in' if job is with_ else 'without'} slices: {job.verdict}" for job in jobs if not job.rates]
    tenants = {who for side in (under, over, over_unsliced, unsliced_under) for who in side.tenants}
    for who in (None, *sorted(tenants, key=natural)):
        lone, together, unsliced = under.of(who), over.of(who), over_unsliced.of(who)
        line = InterferenceLine(
            job=first.label if several else first.name,
            tenant=who,
            unit=first.unit or jobs[-1].unit,
            alone=under.across(who),
            sliced=over.across(who),
            unsliced=over_unsliced.across(who),
            unsliced_alone=unsliced_under.across(who),
            kept=None if with_ is None else with_.kept.get(who),
            unsliced_kept=ratio(unsliced, lone),
            worth=ratio(together, unsliced),
            notes=tuple(notes) if who is None else (),
            baseline=under.baseline if lone else "",
        )
        yield line, [log_ratios(together, lone), log_ratios(unsliced, lone), log_ratios(together, unsliced)]


# The view

MEAN = "geometric mean"
FIELDS = (
    *("suite", "host", "job", "tenant", "unit"),
    *(field for name in RATES for field in rate_fields(name)),
    *(field for name in RATIOS for field in kept_fields(name)),
    *("baseline", "jobs", "note"),
)
LEGEND = (
    "alone: a user alone in its slice; together: all at once, each in its slice; no slices: all at once with "
    "--isolation none, over the same alone. worth: together in slices over together without. 1 - (/ alone) is what "
    "neighbours cost."
)
PLACE: Sequence[Column[InterferenceBlock]] = place_columns(lambda block: block, "suite", "host")
JOB: Column[InterferenceLine] = Column(
    "job",
    lambda line: Cell(
        line.job if line.tenant is None else "", {"job": line.job, "tenant": line.tenant, "unit": line.unit}
    ),
    left=True,
)
# A line and a block's means have these alike.
KEPT: Sequence[Column[Any]] = kept_columns("/ alone", lambda of: of.kept, "kept")
WORTH: Sequence[Column[Any]] = kept_columns("worth", lambda of: of.worth, "worth", optional=True)
UNSLICED_KEPT: Sequence[Column[Any]] = kept_columns(
    "no slices / alone", lambda of: of.unsliced_kept, "unsliced_kept", optional=True
)
OF_LINE: Sequence[Column[Any]] = (
    JOB,
    Column("user", lambda line: word(line.tenant or "all")),
    *KEPT,
    *WORTH,
    *rates_over_launches("alone", lambda line: line.alone, "alone"),
    Column("baseline", lambda line: baseline_cell(line.baseline), left=True, optional=True),
    *rates_over_launches("together", lambda line: line.sliced, "sliced"),
    *rates_over_launches("no slices", lambda line: line.unsliced, "unsliced", optional=True),
    *UNSLICED_KEPT,
    text_column("note", lambda line: "; ".join(line.notes), "note", seen="files"),
)
FOR_PROGRAMS: Sequence[Column[Any]] = rates_over_launches("", lambda line: line.unsliced_alone, "unsliced_alone")


def interference_grid(summary: Summary) -> Grid:
    """Return a row per job and per tenant of it, and the means of each suite on each host.

    Columns without slices are left out where no job ran so. The means are one row for people, three for programs.
    """
    blocks = interference_blocks(summary)
    groups = [RowGroup([*_rows(block)], block.suite or "suite", block.host, [*_notes(block)]) for block in blocks]
    document = {
        "schema": "cotenant-interference-1",
        "blocks": [asdict(block) for block in blocks],
        "notes": [*summary.notes, *apart(summary)],
    }
    kinds = {line.baseline for block in blocks for line in block.lines}
    notes = explained({LEGEND: True, OF_N: True, BLOCKS: "blocks" in kinds, QUICK: "quick" in kinds})
    return Grid((*PLACE, *OF_LINE), groups, notes=notes, fields=FIELDS, document=document)


def _rows(block: InterferenceBlock) -> Iterator[Row]:
    place = row(PLACE, block)
    for line in block.lines:
        yield Row({**place.cells, **row((*OF_LINE, *FOR_PROGRAMS), line).cells})
    means = row((*KEPT, *WORTH, *UNSLICED_KEPT), block)
    yield Row({**place.cells, JOB: word(MEAN), **means.cells}, values={})
    for name in RATIOS:
        if (mean := getattr(block, name)) is not None:
            known = sum(line.tenant is None and getattr(line, name) is not None for line in block.lines)
            yield Row(values={**place.record, "job": MEAN, "jobs": known, **kept_values(mean, name)})


def _notes(block: InterferenceBlock) -> Iterator[Words]:
    """Yield why numbers are absent, and rates alone without slices, which are in no ratio here."""
    for line in block.lines:
        yield from (((f"{line.job}: {note}", ""),) for note in line.notes)
        if (lone := line.unsliced_alone) is not None and line.tenant is not None:
            rate = f"{numbers.rate(lone.rate)} ({numbers.span(lone.interval)}, n {lone.n})"
            words = f"user {line.tenant} alone on the whole machine, without a slice: {rate}"
            yield ((f"{line.job}: {words}; no ratio here is of that.", ""),)
