"""Records as one table: a row per record, the columns of an export, and from it rows and details again.

A million records are a table of some hundred megabytes; as objects they would be many times that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import polars as pl

from cotenant.finding import Finding, Severity
from cotenant.results.columns import COLUMNS, OBSERVATION_COLUMNS
from cotenant.results.detail import Cell, Detail, Spans
from cotenant.results.record import MOST, portable
from cotenant.results.row import SOLO, Row

DTYPES: dict[type, pl.DataType] = {str: pl.String(), int: pl.Int64(), float: pl.Float64(), bool: pl.Boolean()}
SCHEMA = pl.Schema({column.name: DTYPES[column.kind] for column in COLUMNS})
OBSERVATION_SCHEMA = pl.Schema({name: DTYPES[kind] for name, (kind, _) in OBSERVATION_COLUMNS.items()})
TEXTS = tuple(column.name for column in COLUMNS if column.kind is str)
RULES = {"error": "error_findings", "warning": "warning_findings"}

GOOD = pl.col("completed") & ~pl.col("invalid") & (pl.col("losses_non_finite") == 0)
"""Whether a record has anything to be averaged."""
JOB = pl.when("solo").then(pl.col("name").str.strip_suffix(SOLO)).otherwise("name")
"""The name of the job: of a solo launch that of the launch beside which it stands."""

# What a row of the table has under another name, or in one text.
_RENAMED = {f"{name}_items_s": name for name in ("rate", "rate_mean", "rate_min", "rate_max")}
_OF_ROW = {
    column.name: _RENAMED.get(column.name, column.name)
    for column in COLUMNS
    if _RENAMED.get(column.name, column.name) in Row.__struct_fields__
}
_OF_CELL = Cell.__struct_fields__
_NO_SPANS = Spans(np.array([], np.int64), np.array([], np.int64), np.array([]), np.array([], np.bool_))


def frame_of(details: Iterable[Detail]) -> pl.DataFrame:
    """Return the table of these records, in their order. A text that is not known is empty, as in a row."""
    values = [[portable(column.of(detail)) for column in COLUMNS] for detail in details]
    return pl.DataFrame(values, SCHEMA, orient="row")


def bare(
    row: Row,
    cell: Cell | None = None,
    findings: tuple[Finding, ...] = (),
    place: str = "",
    work: str = "",
    end_time: str = "",
) -> Detail:
    """Return the detail of a record of which no more than its row is known; `place` is its slice."""
    return Detail(row, None, None, _NO_SPANS, findings, (), cell or Cell(), place, work, {}, end_time)


def rows_of(frame: pl.DataFrame) -> list[Row]:
    """Return the rows of a table, in its order."""
    names, fields = list(_OF_ROW), list(_OF_ROW.values())
    at = fields.index("findings")
    found = []
    for values in frame.select(names).iter_rows():
        row = dict(zip(fields, values, strict=True))
        row["findings"] = rules_in(values[at])
        found.append(Row(**row))
    return found


def details_of(frame: pl.DataFrame) -> list[Detail]:
    """Return what a table can say of its records: of their findings no more than rule and severity."""
    cells = [Cell(*values) for values in frame.select(_OF_CELL).iter_rows()]
    rules = frame.select(*RULES.values(), "findings").iter_rows()
    others = frame.select("slice", "work", "end_time").iter_rows()
    return [
        bare(row, cell, _findings(*texts), *other)
        for row, cell, texts, other in zip(rows_of(frame), cells, rules, others, strict=True)
    ]


def _findings(errors: str, warnings: str, all_of_them: str) -> tuple[Finding, ...]:
    severities: dict[str, Severity] = dict.fromkeys(rules_in(warnings), "warning")
    severities |= dict.fromkeys(rules_in(errors), "error")
    return tuple(Finding(rule, severities.get(rule, "info"), "") for rule in rules_in(all_of_them))


def rules_in(text: str) -> tuple[str, ...]:
    """Return the rules that `joined` made one text of."""
    return tuple(text.split(",")) if text else ()


def plausible(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return a table from a file as if its records had been read: what cannot be is not known."""
    rates = [*(name for name in SCHEMA if name.endswith("_items_s")), "tflops", "mfu"]
    lengths = ["robust_spread", "mean_s", "sd_s"]
    counts = ["nodes", "world_size", "batch_size_per_device"]
    return frame.with_columns(
        pl.when(pl.col(rates).is_between(1 / MOST, MOST, closed="none")).then(pl.col(rates)),
        pl.when(pl.col(lengths).is_between(0, MOST, closed="left")).then(pl.col(lengths)),
        pl.when(pl.col("overlap").is_between(0, 1)).then(pl.col("overlap")),
        pl.when(pl.col(counts) > 0).then(pl.col(counts)),
        pl.col(TEXTS).fill_null(""),
    ).with_columns(
        pl.when("completed").then(pl.col(rates)),
        pl.col("nodes").fill_null(1),
        pl.col("losses_non_finite").fill_null(0),
        pl.col("comparable", "ours").fill_null(True),
        pl.col("solo").fill_null(False),
        invalid=pl.col("completed") & (pl.col("error_findings") != ""),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Records: the `frame`, of its first rows the `own` details; those of exported rows are made when asked for."""

    frame: pl.DataFrame
    own: Sequence[Detail] = ()

    @classmethod
    def of(cls, details: Iterable[Detail]) -> Table:
        own = tuple(details)
        return cls(frame_of(own), own)


class Details(Sequence[Detail]):
    """Some records of a table, by the numbers of their rows."""

    def __init__(self, table: Table, at: Sequence[int] | None = None) -> None:
        self.table = table
        self.at: Sequence[int] = range(table.frame.height) if at is None else at

    def __len__(self) -> int:
        return len(self.at)

    @overload
    def __getitem__(self, index: int) -> Detail: ...
    @overload
    def __getitem__(self, index: slice) -> Details: ...
    def __getitem__(self, index: int | slice) -> Detail | Details:
        if isinstance(index, slice):
            return Details(self.table, self.at[index])
        return next(self._made([self.at[index]]))

    def __iter__(self) -> Iterator[Detail]:
        return self._made(self.at)

    def _made(self, at: Sequence[int]) -> Iterator[Detail]:
        own = self.table.own
        made = iter(details_of(self.table.frame[[i for i in at if i >= len(own)]]))
        return (own[i] if i < len(own) else next(made) for i in at)

    def columns(self, *names: str) -> pl.DataFrame:
        """Return columns of theirs, which costs a hundredth of making them."""
        return self.table.frame.select(names)[self.at]

    def where(self, chosen: pl.Expr) -> Details:
        """Return those of which this is true."""
        mask = self.table.frame.select(chosen).to_series()[self.at]
        return Details(self.table, pl.Series(self.at, dtype=pl.UInt32).filter(mask).to_list())

    @property
    def newest(self) -> Detail:
        """The one that started last, of several the first. Raises IndexError where there is none."""
        newest_first = (
            self.columns("start_time").with_row_index("place").sort("start_time", descending=True, maintain_order=True)
        )
        return self[int(newest_first["place"][0])]

    def records(self) -> Iterator[Detail]:
        """Yield those that were read as records; an exported row has no meters and no observations to look for."""
        own = self.table.own
        return (own[i] for i in self.at if i < len(own))

    @property
    def rows(self) -> list[Row]:
        return rows_of(self.table.frame[self.at])

    def findings(self) -> Iterator[tuple[Finding, str, int]]:
        """Yield findings, the job of each, and how many records have it; of exported ones the sentence is empty."""
        own = self.table.own
        for i in self.at:
            if i < len(own):
                yield from ((one, own[i].row.name, 1) for one in own[i].findings)
        at = pl.Series(self.at, dtype=pl.UInt32)
        texts = self.table.frame.select(*RULES.values(), "findings", "name")[at.filter(at >= len(own))]
        found = texts.filter(pl.col("findings") != "")
        counted = found.group_by(texts.columns, maintain_order=True).len()
        for errors, warnings, whole, job, count in counted.iter_rows():
            yield from ((one, job, count) for one in _findings(errors, warnings, whole))
