"""From rows to launches, the unit of repetition: a node's rate is the sum over the tenants of one launch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import polars as pl

from cotenant.results.row import Row
from cotenant.results.table import bare, frame_of

AT = "at"
"""The column with the number of a row in the table that others were taken from."""


@dataclass(frozen=True, slots=True)
class Work:
    """What has to be equal where rates are compared. A field of the original's records that is not known is empty."""

    benchmark: str
    batch_size: int | None
    precision: str
    devices: int | None
    tenants: int | None
    isolation: str
    software: str


@dataclass(frozen=True, slots=True)
class LaunchRate:
    """One launch of a job: the items per second of all its tenants together, and how many these are."""

    job: str
    group: str
    run_id: int
    start_time: str
    rate: float
    work: Work
    members: int


class Launch(msgspec.Struct, frozen=True):
    """The records of one launch of a job on a host: `tenants` and their `rates`, and the rows they are.

    `flaw` is the reason why it has no `rate`; `overlap` the least of its tenants'. `outcomes` are of tenants that did
    not complete, `findings` counts of errors, warnings and all.
    """

    suite: str
    host: str
    job: str
    group: str
    unit: str
    run_id: int
    start_time: str
    flaw: str | None
    rate: LaunchRate | None
    tenants: list[str]
    rates: list[float | None]
    at: list[int]
    overlap: float | None
    outcomes: list[str]
    invalid: bool
    findings: tuple[int, int, int]


@dataclass(slots=True)
class Launches:
    """Launches with a rate, per job in the order of first sight; and sentences on those that have none."""

    of: dict[str, list[LaunchRate]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def launches_of(rows: Iterable[Row] | pl.DataFrame) -> Launches:
    """Group rows into launches. A launch with a failed, invalid or missing tenant has no rate, and is said."""
    newest, twice = newest_in(_frame(rows))
    found = Launches(left_out=twice)
    for launch in launches_in(newest):
        of_job = found.of.setdefault(launch.job, [])
        if launch.rate is None:
            found.left_out.append(left_out(launch))
        else:
            of_job.append(launch.rate)
    return found


def left_out(launch: Launch) -> str:
    """Return the sentence on a launch without a rate."""
    return f"{launch.job}, repetition {launch.run_id}: {launch.flaw}"


def newest_in(frame: pl.DataFrame, apart: Sequence[str] = ()) -> tuple[pl.DataFrame, list[str]]:
    """Return the newest row of each tenant of each repetition of a job, and a sentence where there were several.

    A tenant is known by its number, in the original's records by its device and host. Where columns are given that keep
    rows `apart`, what differs in them is not the same repetition. A column `at` numbers the rows as they were.
    """
    numbered = frame.with_row_index(AT)
    unnumbered = pl.col("tenant").is_null()
    tenant = [pl.when(unnumbered).then(name).alias(f"of_{name}") for name in ("hostname", "vcd")]
    key = pl.struct("suite", *apart, "name", "run_id", "tenant", *tenant)
    several = numbered.select(key.is_duplicated()).to_series()
    if not several.any():
        return numbered, []
    same = numbered.filter(several).with_columns(place=pl.col(AT).min().over(key))
    newest = same.sort("start_time", "path", maintain_order=True).group_by("place").last()
    once = numbered.filter(~several).with_columns(place=pl.col(AT))
    together = pl.concat([once, newest.select(once.columns)]).sort("place").drop("place")
    said = same.select("name", "run_id").unique().iter_rows()
    sentences = {
        f"{name}, repetition {uid}: there are records of several runs; the newest count." for name, uid in said
    }
    return together, sorted(sentences)


def launches_in(frame: pl.DataFrame, apart: Sequence[str] = ()) -> list[Launch]:
    """Return the launches of the newest rows, in the order of their first rows."""
    key = ["suite", *apart, "name", "run_id"]
    counts = {name: _count(name) for name in ("error_findings", "warning_findings", "findings")}
    found = (
        frame.with_columns(**counts, label=pl.coalesce(pl.col("tenant").cast(pl.String), "vcd"))
        .group_by(key, maintain_order=True)
        .agg(
            pl.col("group", "start_time", *_WORK).first(),
            *(() if "hostname" in key else (pl.col("hostname").first(),)),
            pl.col("unit").max(),
            pl.col("overlap").min(),
            pl.col(*counts).sum(),
            pl.col("label", "rate_items_s", AT),
            pl.col("start_time").min().alias("earliest"),
            pl.col("rate_items_s").sum().alias("rate"),
            pl.len().alias("members"),
        )
    )
    return list(_launches(found, key, _flawed(frame, key)))


_WORK = ("unique_id", "batch_size", "precision", "devices", "tenants", "isolation", "software")
"""The columns of Work, in its order."""

Flaw = tuple[str | None, list[str], bool]


def _flawed(frame: pl.DataFrame, key: Sequence[str]) -> dict[tuple[Any, ...], Flaw]:
    """Return the first flaw, the outcomes that are none, and whether one is invalid, of each launch that has any."""
    rows = frame.with_columns(flaw=_flaw()).filter(pl.col("flaw").is_not_null())
    outcomes = pl.col("outcome").filter(~pl.col("completed"))
    found = rows.group_by(key).agg(pl.col("flaw").first(), outcomes, pl.col("invalid").any())
    return {values[:-3]: (values[-3], values[-2], values[-1]) for values in found.iter_rows()}


def _launches(found: pl.DataFrame, key: Sequence[str], flawed: Mapping[tuple[Any, ...], Flaw]) -> Iterator[Launch]:
    # Of lists in a table one flat list is taken: a million small ones from polars take longer than all the rest.
    tenants, rates, at = (found[name].explode().to_list() for name in ("label", "rate_items_s", AT))
    names = [name for name in found.columns if name not in ("label", "rate_items_s", AT)]
    columns = {name: found[name].to_list() for name in names}
    works: dict[tuple[Any, ...], Work] = {}
    end = 0
    for index, (of, work) in enumerate(zip(_tuples(columns, key), _tuples(columns, _WORK), strict=True)):
        members = columns["members"][index]
        begin, end = end, end + members
        flaw, outcomes, invalid = flawed.get(of, (None, [], False))
        expected = columns["tenants"][index]
        if flaw is None and expected is not None and expected != members:
            flaw = f"{members} of {expected} tenants have a record."
        job, group, run_id = columns["name"][index], columns["group"][index], columns["run_id"][index]
        rate = None
        if flaw is None:
            known = works.get(work) or works.setdefault(work, Work(*work))
            started = columns["start_time"][index]
            rate = LaunchRate(job, group, run_id, started, columns["rate"][index], known, members)
        yield Launch(
            suite=columns["suite"][index],
            host=columns["hostname"][index],
            job=job,
            group=group,
            unit=columns["unit"][index],
            run_id=run_id,
            start_time=columns["earliest"][index],
            flaw=flaw,
            rate=rate,
            tenants=tenants[begin:end],
            rates=rates[begin:end],
            at=at[begin:end],
            overlap=columns["overlap"][index],
            outcomes=outcomes,
            invalid=invalid,
            findings=(
                columns["error_findings"][index],
                columns["warning_findings"][index],
                columns["findings"][index],
            ),
        )


def _tuples(columns: Mapping[str, list[Any]], names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(columns[name] for name in names), strict=True)


def _frame(rows: Iterable[Row] | pl.DataFrame) -> pl.DataFrame:
    return rows if isinstance(rows, pl.DataFrame) else frame_of(bare(row) for row in rows)


def _flaw() -> pl.Expr:
    vcd = pl.col("vcd")
    return (
        pl.when(~pl.col("completed"))
        .then(pl.format("tenant {} {}.", vcd, "outcome"))
        .when("invalid")
        .then(pl.format("tenant {} is INVALID ({}).", vcd, pl.col("findings").str.replace_all(",", ", ", literal=True)))
        .when(pl.col("rate_items_s").is_null())
        .then(pl.format("tenant {} has no rate.", vcd))
    )


def _count(column: str) -> pl.Expr:
    """Count the rules in texts of them."""
    rules = pl.col(column).str.count_matches(",", literal=True) + 1
    return pl.when(pl.col(column) != "").then(rules).otherwise(0)
