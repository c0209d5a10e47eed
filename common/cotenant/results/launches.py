"""From rows to launches, the unit of repetition: a node's rate is the sum over the tenants of one launch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

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


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """The records of one launch of a job on a host: `tenants` and their `rates`, the rows they are.

    `flaw` is the reason why it has no `rate`; `overlap` the least of its tenants'. `outcomes` are of tenants that did
    not complete, `findings` counts of errors, warnings and all.
    """

    suite: str
    host: str
    job: str
    run_id: int
    start_time: str
    flaw: str | None
    rate: LaunchRate | None
    tenants: Sequence[str]
    rates: Sequence[float | None]
    at: Sequence[int]
    overlap: float | None
    outcomes: Sequence[str]
    invalid: bool
    findings: tuple[int, int, int]
    gpus: Sequence[str]
    unit: str
    group: str


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
    launch = pl.col("tenants").first().is_not_null() & (pl.col("tenants").first() != pl.len())
    incomplete = pl.format("{} of {} tenants have a record.", pl.len(), pl.col("tenants").first())
    found = frame.group_by("suite", *apart, "name", "run_id", maintain_order=True).agg(
        pl.col(_OF_FIRST).first(),
        pl.col("hostname").first().alias("host"),
        earliest=pl.col("start_time").min(),
        flaw=pl.coalesce(_flaw().drop_nulls().first(), pl.when(launch).then(incomplete)),
        rate=pl.col("rate_items_s").sum(),
        rates=pl.col("rate_items_s"),
        tenant_labels=pl.coalesce(pl.col("tenant").cast(pl.String), "vcd"),
        at=AT,
        overlap=pl.col("overlap").min(),
        outcomes=pl.col("outcome").filter(~pl.col("completed")),
        invalid=pl.col("invalid").any(),
        errors=_count("error_findings"),
        warnings=_count("warning_findings"),
        findings=_count("findings"),
        gpus=pl.col("gpu").unique(maintain_order=True),
        unit=pl.col("unit").filter(pl.col("unit") != "").first(),
    )
    works: dict[Any, Work] = {}
    return [_launch(values, works) for values in found.iter_rows(named=True)]


_WORK = {"benchmark": "unique_id"} | {
    name: name for name in ("batch_size", "precision", "devices", "tenants", "isolation", "software")
}
_OF_FIRST = ["group", "start_time", *_WORK.values()]


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
    rules = pl.when(pl.col(column) != "").then(pl.col(column).str.count_matches(",", literal=True) + 1)
    return rules.sum()


def _launch(values: dict[str, Any], works: dict[Any, Work]) -> Launch:
    rate = None
    if values["flaw"] is None:
        key = tuple(values[column] for column in _WORK.values())
        work = works.get(key) or works.setdefault(key, Work(*key))
        members = len(values["at"])
        rate = LaunchRate(
            values["name"], values["group"], values["run_id"], values["start_time"], values["rate"], work, members
        )
    return Launch(
        suite=values["suite"],
        host=values["host"],
        job=values["name"],
        run_id=values["run_id"],
        start_time=values["earliest"],
        flaw=values["flaw"],
        rate=rate,
        tenants=values["tenant_labels"],
        rates=values["rates"],
        at=values["at"],
        overlap=values["overlap"],
        outcomes=values["outcomes"],
        invalid=values["invalid"],
        findings=(values["errors"], values["warnings"], values["findings"]),
        gpus=values["gpus"],
        unit=values["unit"] or "",
        group=values["group"],
    )
