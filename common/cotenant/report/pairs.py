"""The matrix of pairs: each job's kept share of its rate alone beside each other one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from statistics import fmean

from cotenant.report import numbers
from cotenant.report.grid import Cell, Column, Grid, Row, RowGroup, Words, place_columns, row, word
from cotenant.report.kept import QUICK, QUICKLY, SINGLE, around, kept_fields, kept_values
from cotenant.report.mixes import MixBlock, mix_blocks
from cotenant.report.summary import Summary
from cotenant.results.launches import grouped
from cotenant.results.record import SUSPECT
from cotenant.stats.kept import Kept, joint

SUM = "sum (noisy)"


@dataclass(frozen=True, slots=True)
class PairMatrix:
    """Rates that jobs keep in pairs of one suite on one host under one isolation: `kept[victim][neighbour]`.

    Of a job beside itself that is the mean of both tenants. `notes` say why pairs are missing,
    `doubts` (victim, neighbour) which rules warn of a launch of it, alone or beside the other.
    """

    suite: str
    host: str
    isolation: str
    jobs: tuple[str, ...]
    kept: Mapping[str, Mapping[str, Kept]]
    notes: tuple[str, ...]
    quick: bool
    doubts: Mapping[tuple[str, str], tuple[str, ...]]

    def sensitivity(self, victim: str) -> float | None:
        """Return the sum of a row: a job's kept shares beside all; None where a pair is missing."""
        return _sum([self.kept[victim].get(neighbour) for neighbour in self.jobs])

    def noise(self, neighbour: str) -> float | None:
        """Return the sum of a column: the shares that all keep beside a job; None where a pair is missing."""
        return _sum([self.kept[victim].get(neighbour) for victim in self.jobs])


def _sum(measures: Sequence[Kept | None]) -> float | None:
    known = [measure.value for measure in measures if measure is not None]
    return sum(known) if len(known) == len(measures) else None


def pair_matrices(summary: Summary) -> list[PairMatrix]:
    """Return a matrix for each suite, host and isolation that has measured several pairs.

    A job beside itself is a pair of one job, or a launch of two equal tenants: they are the same.
    """
    pairs = [block for block in mix_blocks(summary) if block.is_pair]
    matrices = []
    for place, blocks in grouped(pairs, lambda block: (block.suite, block.host, block.isolation)).items():
        shares: dict[str, dict[str, Kept]] = {}
        doubts: dict[tuple[str, str], tuple[str, ...]] = {}
        for block in blocks:
            for tenant in block.tenants:
                shares.setdefault(tenant.job, {})
            for victim, neighbour, measure in _of_pair(block):
                shares[victim][neighbour] = measure
                of_both = (of.doubts for of in block.tenants if of.job == victim)
                doubts[victim, neighbour] = tuple(dict.fromkeys(chain.from_iterable(of_both)))
        for name, measure, of_launches in _of_equals(summary, place):
            if name in shares and name not in shares[name] and shares[name]:
                shares[name][name], doubts[name, name] = measure, of_launches
        notes = tuple(f"{block.mix}: {note}" for block in blocks for note in block.notes)
        quick = any(tenant.quick for block in blocks for tenant in block.tenants)
        # Both directions of a single pair stand in the table of mixes.
        cells = sum(map(len, shares.values()))
        if cells and (len(blocks) > 1 or cells > 2):
            matrices.append(PairMatrix(*place, tuple(shares), shares, notes, quick, doubts))
    return matrices


def outside_pairs(summary: Summary) -> list[MixBlock]:
    """Return the mixes that stand in no matrix of pairs."""
    places = {(matrix.suite, matrix.host, matrix.isolation) for matrix in pair_matrices(summary)}
    blocks = mix_blocks(summary)
    return [each for each in blocks if not each.is_pair or (each.suite, each.host, each.isolation) not in places]


def _of_equals(summary: Summary, place: tuple[str, str, str]) -> Iterator[tuple[str, Kept, tuple[str, ...]]]:
    """Yield what a job keeps beside itself, of each whose launches were of two equal tenants with a slice each, and
    the rules of warnings on these launches and on those alone."""
    for job in summary.jobs:
        if job.mix or (job.suite, job.host, job.isolation) != place or len(job.tenants) != 2 or job.sharers > 1:
            continue
        if len(job.shares) == len(job.tenants) and (both := joint(job.shares)) is not None:
            yield job.name, both, job.doubts


def _of_pair(block: MixBlock) -> list[tuple[str, str, Kept]]:
    """Return victim, neighbour and what the victim keeps, in both directions; none where that is not known."""
    first, second = block.tenants
    if first.progress is None or second.progress is None:
        return []
    if first.job != second.job:
        return [(first.job, second.job, first.progress), (second.job, first.job, second.progress)]
    both = joint([first.progress, second.progress])
    return [] if both is None else [(first.job, first.job, both)]


# The view

LEGEND = (
    "A row is a job, a column its neighbour: the rate beside it over the rate alone. The sum of a row is low for a "
    "sensitive job, that of a column for a noisy one; the less is kept the darker is a cell."
)
UNSURE, DOUBTED = "~", "?"
MARKS = {
    UNSURE: f"{UNSURE}: its interval holds 1, or it has none.",
    DOUBTED: f"{DOUBTED}: suspect, beside the other or alone: its findings tell why.",
}
FIELDS = ("suite", "host", "isolation", "victim", "neighbour", *kept_fields("kept"), "doubts")
DARKEST = 0.5
"""At this share and below a cell has its whole shade."""
Line = tuple[PairMatrix, str]


PLACE: Sequence[Column[Line]] = place_columns(lambda line: line[0], "suite", "host", "isolation")


def pairs_grid(summary: Summary) -> Grid:
    """Return a row per job and a column per neighbour; programs have a row for each direction of each pair."""
    matrices = pair_matrices(summary)
    jobs = list(dict.fromkeys(job for matrix in matrices for job in matrix.jobs))
    columns: list[Column[Line]] = [
        *PLACE,
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
    shown = [cell.text for group in groups for line in group.rows for cell in line.cells.values()]
    legend = [LEGEND, *(words for mark, words in MARKS.items() if any(mark in text for text in shown))]
    if any(matrix.quick for matrix in matrices):
        legend.append(QUICK)
    return Grid(columns, groups, notes=[((" ".join(legend), "dim"),)], fields=FIELDS, document=document)


def _cell(neighbour: str, line: Line) -> Cell:
    matrix, victim = line
    if victim == SUM:
        total = matrix.noise(neighbour) if neighbour in matrix.jobs else None
        return Cell() if total is None else Cell(numbers.ratio(total), style="bold")
    measure = matrix.kept[victim].get(neighbour)
    if measure is None:
        return Cell()
    heat = round(100 * min(1.0, max(0.0, (1 - measure.value) / (1 - DARKEST))))
    note = "" if measure.interval is None else f"({around(measure)})"
    text = f"{UNSURE if measure.is_unsure else ''}{numbers.ratio(measure.value)}"
    return Cell(f"{text}{DOUBTED if matrix.doubts.get((victim, neighbour)) else ''}", heat=heat, note=note)


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
                **kept_values(measure, "kept"),
                "doubts": ",".join(matrix.doubts.get((victim, neighbour), ())),
            }
        )
        for victim, of_victim in matrix.kept.items()
        for neighbour, measure in of_victim.items()
    ]


def _notes(matrix: PairMatrix) -> list[Words]:
    single = any(kept.n == 1 for of_victim in matrix.kept.values() for kept in of_victim.values())
    return [*([((SINGLE, "dim"),)] if single else []), *(((note, "yellow"),) for note in matrix.notes)]


def _beside(victim: str, neighbour: str) -> str:
    return "itself" if victim == neighbour else neighbour


def pairs_sentence(matrix: PairMatrix) -> str:
    """Return which job keeps least beside which, of how many pairs."""
    known = [
        (measure.value, victim, neighbour) for victim, of in matrix.kept.items() for neighbour, measure in of.items()
    ]
    share, victim, neighbour = min(known)
    suspect = f" ({SUSPECT})" if matrix.doubts.get((victim, neighbour)) else ""
    mean = 100 * fmean(value for value, _, _ in known)
    quick = QUICKLY if matrix.quick else ""
    return (
        f"in pairs these {len(matrix.jobs)} jobs keep {mean:.0f} % of what each has alone{quick}; "
        f"the worst is {victim} beside {_beside(victim, neighbour)}, which keeps {100 * share:.0f} %{suspect}"
    )
