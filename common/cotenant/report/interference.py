"""What neighbours cost and what slices are worth: launches alone in a slice, together in slices, together without."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from cotenant.report import numbers
from cotenant.report.alone import NO_SLICES, RecordRow, Side, alone, rows_of, sliced, together, unlike
from cotenant.report.grid import Cell, Column, Grid, Row, RowGroup, Value, Words, measured, measured_columns, word
from cotenant.report.summary import JobSummary, Summary
from cotenant.results.identity import natural
from cotenant.results.launches import grouped
from cotenant.stats.interference import Ratio, mean_ratio, ratio
from cotenant.stats.launches import AcrossLaunches, across_launches


@dataclass(frozen=True, slots=True)
class InterferenceLine:
    """One job's node, or one tenant of it. What is None was not measured, or does not count.

    Rates are items per second: `alone` in the slice, `sliced` together in slices, `unsliced` together without;
    `unsliced_alone` is a tenant alone on the whole machine, and below no line of a ratio.
    """

    job: str
    tenant: str | None
    unit: str
    alone: AcrossLaunches | None
    sliced: AcrossLaunches | None
    unsliced: AcrossLaunches | None
    unsliced_alone: AcrossLaunches | None
    kept: Ratio | None
    """Together in slices over alone: 1 - it is the interference."""
    unsliced_kept: Ratio | None
    """Together without slices over alone in the slice."""
    worth: Ratio | None
    """Together in slices over together without."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mean:
    """The geometric mean of a ratio over the `jobs` that have it."""

    ratio: Ratio | None
    jobs: int


@dataclass(frozen=True, slots=True)
class Block:
    """One suite on one host: its lines, and over its `jobs` the means of the three ratios of nodes."""

    suite: str
    host: str
    lines: tuple[InterferenceLine, ...]
    jobs: int
    kept: Mean
    unsliced_kept: Mean
    worth: Mean


def interference_blocks(summary: Summary) -> list[Block]:
    """Return a block per suite and host that has a job measured in two of the three ways."""
    shared = [job for job in summary.jobs if job.group != "all"]
    solos = grouped(rows_of(summary.solos), lambda row: (row["suite"], row["hostname"], row["job"]))
    blocks = []
    for (suite, host), jobs in grouped(shared, lambda job: (job.suite, job.host)).items():
        of_names = grouped(jobs, lambda job: job.name).items()
        lines = tuple(line for name, same in of_names for line in _lines(same, solos.get((suite, host, name), [])))
        if lines:
            blocks.append(_block(suite, host, lines))
    return blocks


def apart(summary: Summary) -> list[str]:
    """Say which jobs were measured with slices and without, but not in one suite on one host."""
    places: dict[str, dict[bool, set[tuple[str, str]]]] = defaultdict(lambda: {True: set(), False: set()})
    for job in summary.jobs:
        if job.group != "all" and job.isolation:
            places[job.name][sliced(job.isolation)].add((job.suite, job.host))
    return [
        f"{name}: in slices it ran as {_named(with_slices)}, without as {_named(without)}; those are never compared."
        for name, of in places.items()
        for with_slices, without in [(of[True], of[False])]
        if with_slices and without and not with_slices & without
    ]


def _named(places: set[tuple[str, str]]) -> str:
    return ", ".join(sorted(f"{suite or 'a suite'} on {host or 'an unnamed host'}" for suite, host in places))


def _block(suite: str, host: str, lines: tuple[InterferenceLine, ...]) -> Block:
    nodes = [line for line in lines if line.tenant is None]
    means = []
    for name in ("kept", "unsliced_kept", "worth"):
        known = [found for line in nodes if (found := getattr(line, name)) is not None]
        means.append(Mean(mean_ratio(known), len(known)))
    return Block(suite, host, lines, len(nodes), *means)


def _lines(jobs: Sequence[JobSummary], solos: Sequence[RecordRow]) -> Iterator[InterferenceLine]:
    """Yield the lines of the jobs of one name: with and without slices, paired where their work is equal."""
    without = [job for job in jobs if job.isolation == NO_SLICES]
    pairs: list[tuple[JobSummary | None, JobSummary | None, list[str]]] = []
    for job in jobs:
        if sliced(job.isolation):
            partner, notes = _partner(job, without)
            pairs.append((job, partner, notes))
            without = [one for one in without if one is not partner]
    pairs += [(None, job, [] if len(jobs) == 1 else ["nothing equal ran in slices"]) for job in without]
    for with_, without_, notes in pairs:
        if solos or (with_ is not None and without_ is not None):
            yield from _of_pair(with_, without_, solos, notes, one_of=len(pairs))


def _partner(job: JobSummary, without: Sequence[JobSummary]) -> tuple[JobSummary | None, list[str]]:
    """Return the job that did the same without slices, and what there is to say where there is none."""
    mine = rows_of(job.members)
    reasons = {id(other): unlike([*mine, *rows_of(other.members)]) for other in without}
    # Of one that never finished nothing is known but its name.
    for one in sorted(without, key=lambda one: not one.members):
        if reasons[id(one)] is None:
            return one, []
    return None, [f"without slices: {reason}" for reason in dict.fromkeys(reasons.values())]


def _of_pair(
    with_: JobSummary | None, without: JobSummary | None, solos: Sequence[RecordRow], notes: Sequence[str], one_of: int
) -> Iterator[InterferenceLine]:
    jobs = [job for job in (with_, without) if job is not None]
    members = [row for job in jobs for row in rows_of(job.members)]
    lone, reason = alone([row for row in solos if sliced(row["isolation"])], members)
    unsliced_lone, _ = alone([row for row in solos if row["isolation"] == NO_SLICES], members)
    together_sliced, together_unsliced = (_side(job) for job in (with_, without))
    node_notes = [
        *notes,
        *([f"alone: {reason}"] if reason else []),
        *([f"in slices: {with_.verdict}"] if with_ is not None and not with_.rates else []),
        *([f"without slices: {without.verdict}"] if without is not None and not without.rates else []),
    ]
    sides = (lone, together_sliced, together_unsliced, unsliced_lone)
    for who in (None, *sorted({who for side in sides for who in side.tenants}, key=natural)):
        rates = [side.node if who is None else side.tenants.get(who, {}) for side in sides]
        under, over, over_unsliced, unsliced_under = rates
        yield InterferenceLine(
            job=jobs[0].label if one_of > 1 else jobs[0].name,
            tenant=who,
            unit=jobs[0].unit or jobs[-1].unit,
            alone=_across(under),
            sliced=_across(over),
            unsliced=_across(over_unsliced),
            unsliced_alone=_across(unsliced_under),
            kept=ratio(over, under),
            unsliced_kept=ratio(over_unsliced, under),
            worth=ratio(over, over_unsliced),
            notes=tuple(node_notes) if who is None else (),
        )


def _side(job: JobSummary | None) -> Side:
    return Side({}, {}) if job is None else together(rows_of(job.members), job.rates)


def _across(rates: dict[int, float]) -> AcrossLaunches | None:
    return across_launches(list(rates.values())) if rates else None


# The view

MEAN = "geometric mean"
RATES = ("alone", "sliced", "unsliced", "unsliced_alone")
RATIOS = ("kept", "unsliced_kept", "worth")
COLUMNS = (
    Column("suite", "suite", left=True, seen="files"),
    Column("host", "host", left=True, seen="files"),
    Column("job", "job", left=True),
    Column("tenant", "tenant"),
    *measured_columns("kept", "/ alone"),
)
WORTH = measured_columns("worth", "worth")
RATE_COLUMNS = (*measured_columns("alone", "alone"), *measured_columns("sliced", "together"))
UNSLICED_COLUMNS = (
    *measured_columns("unsliced", "no slices"),
    *measured_columns("unsliced_kept", "no slices / alone"),
)
NOTE = Column("note", "note", left=True, seen="files")
FIELDS = (
    *("suite", "host", "job", "tenant", "unit"),
    *(f"{name}{part}" for name in RATES for part in ("", "_low", "_high", "_launches")),
    *(f"{name}{part}" for name in RATIOS for part in ("", "_low", "_high", "_over", "_under", "_paired")),
    *("jobs", "note"),
)
LEGEND = (
    "alone: a tenant alone in its slice; together: all at once, each in its slice; no slices: all at once with "
    "--isolation none, over the same alone. worth: together in slices over together without. 1 - (/ alone) is what "
    "neighbours cost. n: launches, of ratios in pairs of one uid; of 3 and more the 95 % t interval of the logarithms."
)


def interference_grid(summary: Summary) -> Grid:
    """Return a row per job and per tenant of it, and the means of each suite on each host.

    Without the columns of what nobody ran without slices. The means are for people one row, for programs three.
    """
    blocks = interference_blocks(summary)
    whole = any(map(_ran_unsliced, blocks))
    groups = []
    for block in blocks:
        named = {"suite": word(block.suite, "suite"), "host": word(block.host, "host")}
        rows = [_row(line, named) for line in block.lines]
        rows += [Row(_bare(named | _mean_cells(block))), *_mean_records(block)]
        groups.append(RowGroup(rows, block.suite or "suite", block.host, [*_notes(block)]))
    columns = (*COLUMNS, *(WORTH if whole else ()), *RATE_COLUMNS, *(UNSLICED_COLUMNS if whole else ()), NOTE)
    document = {
        "schema": "cotenant-interference-1",
        "blocks": [asdict(block) for block in blocks],
        "notes": [*summary.notes, *apart(summary)],
    }
    return Grid(columns, groups, notes=[((LEGEND, "dim"),)], fields=FIELDS, document=document)


def _row(line: InterferenceLine, named: dict[str, Cell]) -> Row:
    cells = named | {
        "job": Cell(line.job if line.tenant is None else "", {"job": line.job}),
        "tenant": Cell("all" if line.tenant is None else line.tenant, {"tenant": line.tenant}),
        "note": Cell("; ".join(line.notes), {"note": "; ".join(line.notes)}),
    }
    for name in RATES:
        cells |= _rate_cells(name, getattr(line, name))
    for name in RATIOS:
        cells |= _ratio_cells(name, getattr(line, name))
    return Row(cells, {"unit": line.unit})


def _rate_cells(key: str, found: AcrossLaunches | None) -> dict[str, Cell]:
    if found is None:
        return measured(key, None, None, "", {})
    return measured(key, found.rate, found.interval, str(found.n), {f"{key}_launches": found.n})


def _ratio_cells(key: str, found: Ratio | None, n: str | None = None) -> dict[str, Cell]:
    if found is None:
        return measured(key, None, None, "", {}) | ({} if n is None else {f"{key} n": Cell(n)})
    counts: dict[str, Value] = {
        f"{key}_over": found.n[0],
        f"{key}_under": found.n[1],
        f"{key}_paired": int(found.paired),
    }
    n = launches_words(found) if n is None else n
    return measured(key, found.ratio, found.interval, n, counts, numbers.ratio, numbers.ratio_interval)


def launches_words(found: Ratio) -> str:
    """Return how many pairs of launches a ratio is of; of each side where they are no pairs."""
    return str(found.n[0]) if found.paired else f"{found.n[0]}, {found.n[1]}"


def _mean_cells(block: Block) -> dict[str, Cell]:
    cells = {"job": word(MEAN)}
    for name in RATIOS:
        mean: Mean = getattr(block, name)
        cells |= _ratio_cells(name, mean.ratio, f"{mean.jobs}/{block.jobs} jobs")
    return cells


def _bare(cells: dict[str, Cell]) -> dict[str, Cell]:
    """Return cells for people alone."""
    return {key: replace(cell, values={}) for key, cell in cells.items()}


def _mean_records(block: Block) -> Iterator[Row]:
    named = {"suite": block.suite, "host": block.host, "job": MEAN}
    for name in RATIOS:
        mean: Mean = getattr(block, name)
        if mean.ratio is not None:
            yield Row(values=named | {"jobs": mean.jobs} | Row(_ratio_cells(name, mean.ratio)).record)


def _ran_unsliced(block: Block) -> bool:
    return any(line.unsliced is not None or any("without" in note for note in line.notes) for line in block.lines)


def _notes(block: Block) -> Iterator[Words]:
    """Yield why numbers are absent, and what --solo measured with --isolation none: no ratio here is of that."""
    for line in block.lines:
        yield from (((f"{line.job}: {note}", ""),) for note in line.notes)
        if line.unsliced_alone is not None and line.tenant is not None:
            found, span, n = (cell.text for cell in _rate_cells("alone", line.unsliced_alone).values())
            words = f"tenant {line.tenant} alone on the whole machine, without a slice: {found} ({span}, n {n})"
            yield ((f"{line.job}: {words}; no ratio here is of that.", ""),)
