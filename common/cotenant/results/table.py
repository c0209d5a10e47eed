"""Records as one table with a row for each record, by the columns of `columns.py`, and one with a row for each finding.

A million records are a table of some hundred megabytes; as objects they would be many times that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from cotenant.frames import pl
from cotenant.results import columns
from cotenant.results.columns import checked, schema, values_of
from cotenant.results.record import Record, plain_record
from cotenant.results.record_files import AnyRecord, record_in
from cotenant.results.skipped import Skipped

BATCH_RECORDS = 500
AT = "at"
"""The column with a row's number in the whole table."""
IN_FILE = "in_file"
"""The column with a record's number in its file; null in an exported row."""
FINDINGS = pl.Schema(
    {
        AT: pl.UInt32,
        "rule": pl.String,
        "severity": pl.String,
        "sentence": pl.String,
        "remedy": pl.String,
        "value": pl.Float64,
        "effect": pl.Float64,
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Records: `frame` has a row for each record, `findings` one for each finding, with the record's row in `at`.

    Unknown texts are empty. Findings of exported records have only a rule and a severity. `unvouched` counts our
    records that no journal lists.
    """

    frame: pl.DataFrame
    findings: pl.DataFrame
    unvouched: int = 0

    def __len__(self) -> int:
        return self.frame.height


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Some records of a table, by their row numbers: a million records are not copied."""

    table: Table
    at: Sequence[int]

    @classmethod
    def all(cls, table: Table) -> Rows:
        return cls(table, range(len(table)))

    def __len__(self) -> int:
        return len(self.at)

    @property
    def whole(self) -> bool:
        """Return whether these are all rows of the table, in the table's order."""
        return self.at == range(len(self.table))

    @property
    def frame(self) -> pl.DataFrame:
        """All columns of these rows."""
        return self.table.frame if self.whole else self.table.frame[self.at]

    @property
    def numbered(self) -> pl.DataFrame:
        """All columns of these rows, and `at`."""
        if self.whole:
            return self.table.frame.with_row_index(AT)  # with a column of one chunk polars would copy all the others
        return self.frame.with_columns(pl.Series(AT, self.at, pl.UInt32))

    def columns(self, *names: str | pl.Expr, **more: pl.Expr) -> pl.DataFrame:
        """Return columns, or expressions of columns, for these rows."""
        if self.whole:
            return self.table.frame.select(*names, **more)
        made = [pl.col(name) if isinstance(name, str) else name for name in (*names, *more.values())]
        needed = dict.fromkeys(root for expression in made for root in expression.meta.root_names())
        return self.table.frame.select(list(needed))[self.at].select(*names, **more)

    def where(self, chosen: pl.Expr) -> Rows:
        """Return the rows for which `chosen` is true."""
        mask = self.columns(chosen.alias("chosen"))["chosen"]
        return Rows(self.table, pl.Series(self.at, dtype=pl.UInt32).filter(mask).to_list())

    def by(self, column: str, descending: bool = False) -> Rows:
        """Return the rows in the order of a column."""
        values = self.columns(column).with_columns(pl.Series(AT, self.at, pl.UInt32))
        return Rows(self.table, values.sort(column, descending=descending, maintain_order=True)[AT].to_list())

    def findings(self) -> pl.DataFrame:
        """Return the findings of these rows with `name` and `run_words` of their records, in the order of the table."""
        findings = self.table.findings
        if not self.whole:
            findings = findings.filter(pl.col(AT).is_in(pl.Series(self.at, dtype=pl.UInt32).implode()))
        return findings.with_columns(self.table.frame[column].gather(findings[AT]) for column in ("name", "run_words"))


def record_tables(records: Iterable[AnyRecord | Skipped], size: int = BATCH_RECORDS) -> Iterator[Table | Skipped]:
    """Yield records in tables of `size` rows, and skipped files or parts; one record's JSON at a time is in memory."""
    values: list[list[Any]] = []
    findings: list[tuple[Any, ...]] = []
    unvouched = 0
    for record in records:
        if isinstance(record, Skipped):
            yield record
            continue
        try:
            values.append([*values_of(record, columns.COLUMNS), record.number])
        except RecursionError:
            yield Skipped(record.path, "it is nested too deeply")
            continue
        unvouched += record.ours and record.edited is None
        at = len(values) - 1
        findings += [(at, *astuple(finding)) for finding in record.all_findings]
        if len(values) == size:
            yield _table(values, findings, unvouched)
            values, findings, unvouched = [], [], 0
    if values:
        yield _table(values, findings, unvouched)


def _table(values: list[list[Any]], findings: list[tuple[Any, ...]], unvouched: int = 0) -> Table:
    types = pl.Schema({**schema(), IN_FILE: pl.UInt32()})
    frame = checked(pl.LazyFrame(values, types, orient="row")).collect()
    return Table(frame, pl.DataFrame(findings, FINDINGS, orient="row"), unvouched)


def table_of(records: Iterable[AnyRecord]) -> Table:
    """Return the table of these records, in their order."""
    return joined_tables([table for table in record_tables(records) if isinstance(table, Table)])


def table_of_records(records: Iterable[Record]) -> Table:
    """Return the table of new records, as it would be read from their files."""
    return table_of(record_in(plain_record(record), "") for record in records)


def table_of_rows(rows: pl.LazyFrame) -> Table:
    """Return the table of exported rows; their findings have only a rule and a severity."""
    unknown = pl.lit(None, pl.UInt32()).alias(IN_FILE)
    whole = checked(rows).with_columns(unknown).collect(engine="streaming")
    rules = whole.select("findings", "error_findings", "warning_findings").with_row_index(AT)
    pairs = rules.filter(pl.col("findings") != "").with_columns(rule=pl.col("findings").str.split(",")).explode("rule")
    severity = pl.lit("info")
    for name in ("warning", "error"):
        of_name = pl.col(f"{name}_findings").str.split(",")
        severity = pl.when(of_name.list.contains(pl.col("rule"))).then(pl.lit(name)).otherwise(severity)
    unsaid = {"sentence": pl.lit(""), "remedy": pl.lit(""), "value": pl.lit(None), "effect": pl.lit(None)}
    findings = pairs.select(AT, "rule", severity=severity, **unsaid)
    return Table(whole, findings.cast(FINDINGS))


def joined_tables(parts: Sequence[Table]) -> Table:
    """Return one table of the records of several tables; an empty one if there are none."""
    parts = parts or [_table([], [])]
    findings, before = [], 0
    for table in parts:
        findings.append(table.findings.with_columns(pl.col(AT) + pl.lit(before, pl.UInt32)))
        before += len(table)
    unvouched = sum(table.unvouched for table in parts)
    return Table(pl.concat([table.frame for table in parts]), pl.concat(findings), unvouched)
