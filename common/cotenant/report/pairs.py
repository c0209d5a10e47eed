"""The matrix of pairs: the share that each job keeps beside each other job, and beside itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from statistics import fmean
from typing import NamedTuple

from cotenant.frames import pl
from cotenant.report import numbers
from cotenant.report.beside import MixBlock, mix_blocks
from cotenant.report.kept import (
    QUICK,
    QUICKLY,
    SINGLE,
    kept_fields,
    kept_meanings,
    kept_of,
    kept_values,
    legend_of,
    percents,
    shaded,
)
from cotenant.report.kept_rows import COPIES, FIELDS, KEPT, VALUE
from cotenant.report.kept_table import kept_table
from cotenant.report.summary import Summary
from cotenant.report.view import BLANK, Cell, Column, Row, RowGroup, View, Words, place_columns
from cotenant.results.launches import grouped
from cotenant.results.record import SUSPECT
from cotenant.stats.evenness import differences_by_intervals
from cotenant.stats.kept import Kept, joint

SUM = "sum (noisy)"
OF_PAIRS = (
    "A row is a job, a column its neighbour: the rate beside it over the rate alone. The sum of a row is low for a "
    "sensitive job, that of a column for a noisy one; the less is kept the darker is a cell."
)
UNSURE, DOUBTED = "~", "?"
OF_UNSURE = f"{UNSURE}: its interval holds 1, or it has none."
OF_DOUBTED = f"{DOUBTED}: suspect, beside the other or alone: its findings tell why."
PAIR_FIELDS = {
    **{name: FIELDS[name] for name in ("suite", "host", "isolation")},
    "victim": "the job whose share it is",
    "neighbour": "the job beside it",
    **kept_meanings("kept", "the rate beside the neighbour over the rate alone"),
    "doubts": "the rules of warnings on the launches, by commas",
}
Pair = tuple[str, str]
"""A victim and its neighbour."""


class PairShare(NamedTuple):
    """The share that a victim keeps, and the rules of warnings on its launches, alone or beside the neighbour."""

    kept: Kept
    doubts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class PairMatrix:
    """The shares that jobs keep in pairs of one suite on one host under one isolation.

    A job beside itself has the mean share of both users. `notes` say why pairs are missing.
    """

    suite: str
    host: str
    isolation: str
    jobs: Sequence[str]
    shares: Mapping[Pair, PairShare]
    notes: Sequence[str]
    quick: bool

    def sensitivity(self, victim: str) -> float | None:
        """Return the sum of a row, a job's kept shares beside all jobs; None if a pair is missing."""
        return self._sum((victim, neighbour) for neighbour in self.jobs)

    def noise(self, neighbour: str) -> float | None:
        """Return the sum of a column, all jobs' kept shares beside one job; None if a pair is missing."""
        return self._sum((victim, neighbour) for victim in self.jobs)

    def _sum(self, pairs: Iterable[Pair]) -> float | None:
        values = [self.shares[pair].kept.value for pair in pairs if pair in self.shares]
        return sum(values) if len(values) == len(self.jobs) else None


@lru_cache(maxsize=1)
def pair_matrices(summary: Summary) -> Sequence[PairMatrix]:
    """Return a matrix for each suite, host and isolation with several measured pairs.

    A job beside itself is either a pair that names it twice or a launch of two equal users.
    """
    pairs, matrices = [block for block in mix_blocks(summary) if block.is_pair], list[PairMatrix]()
    of_equals = _equals(summary) if pairs else {}
    for place, blocks in grouped(pairs, lambda block: block.place).items():
        jobs = [*dict.fromkeys(user["job"] for block in blocks for user in block.users)]
        shares = dict(chain.from_iterable(_of_pair(block.users) for block in blocks if block.measures))
        victims = {victim for victim, _ in shares}
        for users in of_equals.get(place, ()):
            if users[0]["job"] in victims:
                for pair, share in _of_pair(users):
                    shares.setdefault(pair, share)
        # A single pair needs no matrix: the table of mixes shows both its directions.
        if shares and (len(blocks) > 1 or len(shares) > 2):
            by_victim = dict(sorted(shares.items(), key=lambda share: jobs.index(share[0][0])))
            notes = [f"{block.mix}: {note}" for block in blocks for note in block.notes]
            matrices.append(PairMatrix(*place, jobs, by_victim, notes, any(block.quick for block in blocks)))
    return matrices


def _equals(summary: Summary) -> dict[tuple[str, str, str], list[list[Row]]]:
    """Return each job's two users with a slice each, by suite, host and isolation: they are a pair, too."""
    users = kept_table(summary).filter(
        pl.col("company") == COPIES, pl.col("measure") == KEPT, pl.col("processor_sharers") == 1,
        pl.col("tenant").is_not_null(), pl.col("together").is_not_null(),
    )  # fmt: skip
    jobs = users.group_by("suite", "host", "isolation", "job", "difference", maintain_order=True)
    equals: list[list[Row]] = [[*job.to_dicts()] for _, job in jobs if len(job) == 2 and not job["value"].null_count()]
    return grouped(equals, lambda rows: (rows[0]["suite"], rows[0]["host"], rows[0]["isolation"]))


def outside_pairs(summary: Summary) -> list[MixBlock]:
    """Return the mixes that are in no matrix of pairs."""
    places = {(matrix.suite, matrix.host, matrix.isolation) for matrix in pair_matrices(summary)}
    return [block for block in mix_blocks(summary) if not block.is_pair or block.place not in places]


def _of_pair(users: Sequence[Row]) -> Iterator[tuple[Pair, PairShare]]:
    """Yield the shares of two users in both directions, for equal users their mean."""
    one, other = users
    shares = [
        PairShare(kept, (*user["doubts"], *user["alone_doubts"]))
        for user in users
        if (kept := kept_of(user, VALUE)) is not None
    ]
    if one["job"] == other["job"]:
        doubts = dict.fromkeys(chain.from_iterable(share.doubts for share in shares))
        yield (one["job"], one["job"]), PairShare(joint([share.kept for share in shares]), tuple(doubts))
        return
    yield (one["job"], other["job"]), shares[0]
    yield (other["job"], one["job"]), shares[1]


def pairs_view(summary: Summary) -> View:
    """Return a row per job and a column per neighbour; for programs a row for each direction of each pair."""
    matrices = pair_matrices(summary)
    jobs = list(dict.fromkeys(job for matrix in matrices for job in matrix.jobs))
    columns = [
        *place_columns("suite", "host", "isolation"),
        Column("job", left=True),
        *(Column(job, f"beside {job}", _as_it_is, optional=True) for job in jobs),
        Column("sum (sensitive)", "sum", _as_it_is),
    ]
    groups = [
        RowGroup(
            [_line(matrix, victim, jobs) for victim in (*matrix.jobs, SUM)],
            f"pairs of {matrix.suite or 'suite'}",
            f"{matrix.host}, isolation {matrix.isolation}",
            _pair_notes(matrix),
        )
        for matrix in matrices
    ]
    shares = [share for matrix in matrices for share in matrix.shares.values()]
    texts = {
        OF_PAIRS: True,
        OF_UNSURE: any(share.kept.is_unsure for share in shares),
        OF_DOUBTED: any(share.doubts for share in shares),
        QUICK: any(matrix.quick for matrix in matrices),
    }
    rows = [
        {
            **_place(matrix),
            "victim": victim,
            "neighbour": neighbour,
            "doubts": ",".join(doubts),
            **kept_values(kept, kept_fields("kept")),
        }
        for matrix in matrices
        for (victim, neighbour), (kept, doubts) in matrix.shares.items()
    ]
    notes = [note for matrix in matrices for note in matrix.notes]
    return View("pairs", PAIR_FIELDS, rows, columns, groups, lines=legend_of(texts), notes=notes)


def _place(matrix: PairMatrix) -> dict[str, str]:
    return {"suite": matrix.suite, "host": matrix.host, "isolation": matrix.isolation}


def _line(matrix: PairMatrix, victim: str, jobs: Sequence[str]) -> Row:
    """Return the cells of a job, or of the sums of all jobs, by their neighbours among `jobs`."""
    is_sum = victim == SUM
    cells = {f"beside {job}": _total(matrix.noise(job)) if is_sum else _cell(matrix, (victim, job)) for job in jobs}
    return {**_place(matrix), "job": victim, **cells, "sum": BLANK if is_sum else _total(matrix.sensitivity(victim))}


def _cell(matrix: PairMatrix, pair: Pair) -> Cell:
    if (share := matrix.shares.get(pair)) is None:
        return Cell()
    cell, unsure = shaded(share.kept), UNSURE if share.kept.is_unsure else ""
    return replace(cell, text=f"{unsure}{cell.text}{DOUBTED if share.doubts else ''}")


def _total(total: float | None) -> Cell:
    return Cell() if total is None else Cell(numbers.ratio(total), style="bold")


def _as_it_is(cell: Cell) -> Cell:
    return cell


def _pair_notes(matrix: PairMatrix) -> list[Words]:
    single = any(share.kept.n == 1 for share in matrix.shares.values())
    return [*([((SINGLE, "dim"),)] if single else []), *(((note, "yellow"),) for note in matrix.notes)]


def pairs_sentence(matrix: PairMatrix) -> str:
    """Return the mean of the kept shares, and the pair with the least share if noise does not explain it."""
    parts = [share.kept for share in matrix.shares.values()]
    differ, mean = differences_by_intervals(parts), 100 * fmean(part.value for part in parts)
    once = "; measured once" if any(part.n == 1 for part in parts) else ""
    worst = ""
    if differ is not None and differ.notable:
        (victim, neighbour), share = min(matrix.shares.items(), key=lambda pair: pair[1].kept.value)
        beside = "itself" if victim == neighbour else neighbour
        suspect = f" ({SUSPECT})" if share.doubts else ""
        worst = f"; the worst is {victim} beside {beside}, which keeps {percents(share.kept)}{suspect}"
    return (
        f"in pairs these {len(matrix.jobs)} jobs keep {mean:.0f} % of what each has "
        f"alone{QUICKLY if matrix.quick else ''}{worst}{once}"
    )
