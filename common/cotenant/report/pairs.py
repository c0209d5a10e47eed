"""The matrix of pairs: what each job keeps of its rate alone beside each other one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from cotenant.report import numbers
from cotenant.report.grid import Cell, Column, Grid, Row, RowGroup, Words, row, word
from cotenant.report.mixes import QUICK, SINGLE, MixBlock, mix_blocks
from cotenant.report.summary import Summary
from cotenant.results.launches import grouped
from cotenant.stats.multiprogram import Measure

SUM = "sum (noisy)"


@dataclass(frozen=True, slots=True)
class PairMatrix:
    """What jobs keep in pairs of one suite on one host under one isolation: `kept[victim][neighbour]`.

    Of a job beside itself that is the mean of both tenants, without an interval. `notes` say why pairs are missing.
    """

    suite: str
    host: str
    isolation: str
    jobs: tuple[str, ...]
    kept: Mapping[str, Mapping[str, Measure]]
    notes: tuple[str, ...]
    quick: bool

    def sensitivity(self, victim: str) -> float | None:
        """Return the sum of a row: what a job keeps beside all; None where a pair is missing."""
        return _sum([self.kept[victim].get(neighbour) for neighbour in self.jobs])

    def noise(self, neighbour: str) -> float | None:
        """Return the sum of a column: what all keep beside a job; None where a pair is missing."""
        return _sum([self.kept[victim].get(neighbour) for victim in self.jobs])


def _sum(measures: Sequence[Measure | None]) -> float | None:
    known = [measure.value for measure in measures if measure is not None]
    return sum(known) if len(known) == len(measures) else None


def pair_matrices(summary: Summary) -> list[PairMatrix]:
    """Return a matrix for each suite, host and isolation that has measured several pairs.

    A job beside itself is a pair of one job, or a launch of two equal tenants: they are the same.
    """
    pairs = [block for block in mix_blocks(summary) if block.is_pair]
    matrices = []
    for place, blocks in grouped(pairs, lambda block: (block.suite, block.host, block.isolation)).items():
        kept: dict[str, dict[str, Measure]] = {}
        for block in blocks:
            for tenant in block.tenants:
                kept.setdefault(tenant.job, {})
            for victim, neighbour, measure in _of_pair(block):
                kept[victim][neighbour] = measure
        for name, measure in _of_equals(summary, place):
            if name in kept and any(each != name for each in kept[name]):
                kept[name].setdefault(name, measure)
        notes = tuple(f"{block.mix}: {note}" for block in blocks for note in block.notes)
        quick = any(tenant.quick for block in blocks for tenant in block.tenants)
        if len(blocks) > 1 and any(kept.values()):
            matrices.append(PairMatrix(*place, tuple(kept), kept, notes, quick))
    return matrices


def outside_pairs(summary: Summary) -> list[MixBlock]:
    """Return the mixes that stand in no matrix of pairs."""
    places = {(matrix.suite, matrix.host, matrix.isolation) for matrix in pair_matrices(summary)}
    blocks = mix_blocks(summary)
    return [each for each in blocks if not each.is_pair or (each.suite, each.host, each.isolation) not in places]


def _of_equals(summary: Summary, place: tuple[str, str, str]) -> Iterator[tuple[str, Measure]]:
    """Yield what a job keeps beside itself, of each whose launches were of two equal tenants with a slice each."""
    for job in summary.jobs:
        if job.mix or (job.suite, job.host, job.isolation) != place or len(job.tenants) != 2 or job.sharers > 1:
            continue
        kept = [job.over_alone(tenant) for tenant in job.tenants]
        if all(kept):
            known = [each for each in kept if each is not None]
            yield job.name, Measure(fmean(each.ratio for each in known), None, min(each.n[0] for each in known))


def _of_pair(block: MixBlock) -> list[tuple[str, str, Measure]]:
    """Return victim, neighbour and what the victim keeps, in both directions; none where that is not known."""
    first, second = block.tenants
    if first.progress is None or second.progress is None:
        return []
    if first.job != second.job:
        return [(first.job, second.job, first.progress), (second.job, first.job, second.progress)]
    mean = fmean((first.progress.value, second.progress.value))
    return [(first.job, first.job, Measure(mean, None, first.progress.n))]


# The view

LEGEND = (
    "A row is a job, a column its neighbour: the rate beside it over the rate alone. The sum of a row is low for a "
    "sensitive job, that of a column for a noisy one; the less is kept the darker is a cell."
)
FIELDS = ("suite", "host", "isolation", "victim", "neighbour", "kept", "kept_low", "kept_high", "launches")
DARKEST = 0.5
"""At this share and below a cell has its whole shade."""
Line = tuple[PairMatrix, str]


def pairs_grid(summary: Summary) -> Grid:
    """Return a row per job and a column per neighbour; programs have a row for each direction of each pair."""
    matrices = pair_matrices(summary)
    jobs = list(dict.fromkeys(job for matrix in matrices for job in matrix.jobs))
    columns: list[Column[Line]] = [
        Column("job", lambda line: word(line[1]), left=True),
        *(Column(job, partial(_cell, job), optional=True) for job in jobs),
        Column("sum (sensitive)", _row_sum),
    ]
    groups = [
        RowGroup(
            [*(Row(row(columns, (matrix, victim)).cells, {}) for victim in (*matrix.jobs, SUM)), *_records(matrix)],
            f"pairs of {matrix.suite or 'suite'}",
            f"{matrix.host}, isolation {matrix.isolation}",
            _notes(matrix),
        )
        for matrix in matrices
    ]
    document = {
        "schema": "cotenant-pairs-1",
        "pairs": [dict(row.record) for group in groups for row in group.rows if row.record],
    }
    legend = f"{LEGEND} {QUICK}" if any(matrix.quick for matrix in matrices) else LEGEND
    return Grid(columns, groups, notes=[((legend, "dim"),)], fields=FIELDS, document=document)


def _cell(neighbour: str, line: Line) -> Cell:
    matrix, victim = line
    if victim == SUM:
        total = matrix.noise(neighbour) if neighbour in matrix.jobs else None
        return Cell() if total is None else Cell(numbers.ratio(total), style="bold")
    measure = matrix.kept[victim].get(neighbour)
    if measure is None:
        return Cell()
    heat = round(100 * min(1.0, max(0.0, (1 - measure.value) / (1 - DARKEST))))
    note = "" if measure.interval is None else f"({numbers.ratio_interval(*measure.interval)})"
    return Cell(numbers.ratio(measure.value), heat=heat, note=note)


def _row_sum(line: Line) -> Cell:
    matrix, victim = line
    total = None if victim == SUM else matrix.sensitivity(victim)
    return Cell("" if victim == SUM else numbers.ABSENT) if total is None else Cell(numbers.ratio(total), style="bold")


def _records(matrix: PairMatrix) -> list[Row]:
    place = {"suite": matrix.suite, "host": matrix.host, "isolation": matrix.isolation}
    return [
        Row(
            values={
                **place,
                "victim": victim,
                "neighbour": neighbour,
                "kept": measure.value,
                "kept_low": measure.interval and measure.interval[0],
                "kept_high": measure.interval and measure.interval[1],
                "launches": measure.n,
            }
        )
        for victim, of_victim in matrix.kept.items()
        for neighbour, measure in of_victim.items()
    ]


def _notes(matrix: PairMatrix) -> list[Words]:
    single = any(measure.n == 1 for of_victim in matrix.kept.values() for measure in of_victim.values())
    return [*([((SINGLE, "dim"),)] if single else []), *(((note, "yellow"),) for note in matrix.notes)]


def pairs_sentence(matrix: PairMatrix) -> str:
    """Return which job keeps least beside which, of how many pairs."""
    known = [
        (measure.value, victim, neighbour) for victim, of in matrix.kept.items() for neighbour, measure in of.items()
    ]
    kept, victim, neighbour = min(known)
    beside = "itself" if victim == neighbour else neighbour
    mean = 100 * fmean(value for value, _, _ in known)
    quick = " (quick baseline)" if matrix.quick else ""
    return (
        f"in pairs these {len(matrix.jobs)} jobs keep {mean:.0f} % of what each has alone{quick}; "
        f"the worst is {victim} beside {beside}, which keeps {100 * kept:.0f} %"
    )
