"""From rows to launches, the unit of repetition: a node's rate is the sum over the tenants of one launch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec
import polars as pl

from cotenant.results.newest import AT, as_numbers, launch_key, newest_in, with_lone
from cotenant.results.row import Row
from cotenant.results.table import GOOD, JOB, bare, frame_of


@dataclass(frozen=True, slots=True)
class Work:
    """What has to be equal where rates are compared. What a record does not know is empty.

    `cache` is the policy for the page cache, `processors` how many each tenant's slice has, `device` the model that it
    ran on; a launch of two says both.
    """

    benchmark: str
    batch_size: int | None
    precision: str
    devices: int | None
    tenants: int | None
    isolation: str
    software: str
    cache: str = ""
    processors: int | None = None
    device: str = ""


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
    host: str = ""


class Launch(msgspec.Struct, frozen=True):
    """The records of one launch of a job on a host: `tenants` and their `rates`, and the rows they are.

    A `solo` launch is of one tenant alone, beside launches of the job. `flaw` is the reason why it has no `rate`;
    `overlap` the least of its tenants'. `outcomes` are of tenants that did not complete, `findings` counts of errors,
    warnings and all.
    """

    suite: str
    host: str
    job: str
    group: str
    unit: str
    isolation: str
    run_id: int
    solo: bool
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


def difference_of(works: Collection[Work], beside: Collection[str] = ()) -> tuple[str, str] | None:
    """Return the first field in which works differ, none of those `beside`, and its values: empty for `benchmark`.

    What a record does not know differs from nothing.
    """
    for name in (one.name for one in fields(Work) if one.name not in beside):
        seen = {str(value) for work in works if (value := getattr(work, name)) not in ("", None)}
        if len(seen) > 1:
            return name, "" if name == "benchmark" else " and ".join(sorted(seen))
    return None


def said_of_difference(name: str, values: str) -> str:
    """Return a difference as a person reads it: `different batch size: 32 and 64`."""
    what = "source or arguments of the benchmark" if name == "benchmark" else name.replace("_", " ")
    return f"different {what}{f': {values}' if values else ''}"


def told_apart(work: Work, works: Collection[Work]) -> str:
    """Name the values of a work that others of its job do not share: `batch size 32, device unknown`."""
    differing = [one.name for one in fields(Work) if len({getattr(other, one.name) for other in works}) > 1]
    return ", ".join(f"{name.replace('_', ' ')} {_known(work, name)}" for name in differing)


def _known(work: Work, name: str) -> str:
    value = getattr(work, name)
    return "unknown" if value in ("", None) else str(value)[: HASH_SHOWN if name == "benchmark" else None]


@dataclass(slots=True)
class Launches:
    """Launches with a rate, per job in the order of first sight; and sentences on those that have none."""

    of: dict[str, list[LaunchRate]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def launches_of(rows: Iterable[Row] | pl.DataFrame) -> Launches:
    """Group rows into launches of one host. One with a failed, invalid or missing tenant has no rate, and is said.

    Solo launches are none of these: a tenant alone is not the node.
    """
    newest, twice = newest_in(_frame(rows).filter(~pl.col("solo")), apart=["hostname"])
    found = Launches(left_out=twice)
    for launch in launches_in(newest, apart=["hostname"]):
        of_job = found.of.setdefault(launch.job, [])
        if launch.rate is None:
            found.left_out.append(left_out(launch))
        else:
            of_job.append(launch.rate)
    return found


def left_out(launch: Launch) -> str:
    """Return the sentence on a launch without a rate."""
    return f"{launch.job}{' alone' if launch.solo else ''}, repetition {launch.run_id}: {launch.flaw}"


def work_of(row: Row) -> Work:
    """Return what has to be equal where this row's rate is compared."""
    return Work(*(getattr(row, name) for name in WORK))


def launches_in(frame: pl.DataFrame, apart: Sequence[str] = ()) -> list[Launch]:
    """Return the launches of the newest rows, in the order of their first rows."""
    key = launch_key(apart)
    keyed = with_lone(frame).with_columns(job=JOB)
    keyed = keyed.with_columns(as_numbers(keyed.select(key)))
    flawed, mixed = _flawed(keyed, key), _mixed(keyed, key)
    counts = {name: _count(name) for name in ("error_findings", "warning_findings", "findings")}
    rows = keyed.with_columns(**counts, label=pl.coalesce(pl.col("tenant").cast(pl.String), "vcd"))
    found = (
        rows.lazy()
        .group_by(key, maintain_order=True)
        .agg(
            pl.col("group", "start_time", *(name for name in WORK if name not in (*key, "gpu"))).first(),
            pl.col("gpu").min(),
            pl.col("gpu").max().alias("other_gpu"),
            *(() if "hostname" in key else (pl.col("hostname").first(),)),
            pl.col("job").first(),
            pl.col("unit").max(),
            pl.col("overlap").min(),
            pl.col(*counts).sum(),
            pl.col("label", "rate_items_s", AT),
            pl.col("start_time").min().alias("earliest"),
            pl.col("rate_items_s").sum().alias("rate"),
            pl.len().alias("members"),
        )
        .collect(engine="streaming")
    )
    found = found.with_columns(gpu=joined_models("gpu", "other_gpu"))
    return list(_launches(found.with_columns(pl.col(pl.Categorical).cast(pl.String)), key, flawed, mixed))


def joined_models(first: str, last: str) -> pl.Expr:
    """Return the device of a launch by the columns of its first and last model: one name, or both where they differ."""
    one_model = (pl.col(first) == "") | (pl.col(first) == pl.col(last))
    return pl.when(one_model).then(last).otherwise(pl.col(first) + " + " + pl.col(last))


WORK = (
    *("unique_id", "batch_size", "precision", "devices", "tenants", "isolation", "software", "cache", "processors"),
    "gpu",
)
"""The columns of Work, in its order."""
HASH_SHOWN = 12
"""How much of a hash a person is shown."""

_SAME = ("unit", "version", "batch_size", "precision")
"""In what the tenants of a launch must not differ, or its sum were one of different works."""

Flaw = tuple[str | None, list[str], bool]


def _flawed(frame: pl.DataFrame, key: Sequence[str]) -> dict[tuple[Any, ...], Flaw]:
    """Return the first flaw, the outcomes that are none, and whether one is invalid, of each launch that has any."""
    without_rate = ~GOOD | pl.col("rate_items_s").is_null()
    rows = frame.filter(without_rate).with_columns(flaw=_flaw())
    outcomes = pl.col("outcome").filter(~pl.col("completed"))
    found = rows.group_by(key).agg(pl.col("flaw").first(), outcomes, pl.col("invalid").any())
    return {values[:-3]: (values[-3], values[-2], values[-1]) for values in found.iter_rows()}


def _mixed(frame: pl.DataFrame, key: Sequence[str]) -> dict[tuple[Any, ...], str]:
    """Return the flaw of each launch whose tenants did different work."""
    distinct = frame.select(*key, *_SAME).unique(maintain_order=True)
    works: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for values in distinct.filter(pl.struct(key).is_duplicated()).iter_rows():
        works[values[: len(key)]].append(values[len(key) :])
    return {of: _difference(found) for of, found in works.items()}


def _difference(works: Sequence[tuple[Any, ...]]) -> str:
    """Name the first column in which works differ, and its values."""
    columns = (
        (name, dict.fromkeys(map(str, values))) for name, values in zip(_SAME, zip(*works, strict=True), strict=True)
    )
    name, values = next((name, values) for name, values in columns if len(values) > 1)
    return f"its tenants did different work ({name.replace('_', ' ')} {' and '.join(values)})."


def _launches(
    found: pl.DataFrame,
    key: Sequence[str],
    flawed: Mapping[tuple[Any, ...], Flaw],
    mixed: Mapping[tuple[Any, ...], str],
) -> Iterator[Launch]:
    # Of lists in a table one flat list is taken: a million small ones from polars take longer than all the rest.
    tenants, rates, at = (found[name].explode().to_list() for name in ("label", "rate_items_s", AT))
    names = [name for name in found.columns if name not in ("label", "rate_items_s", AT)]
    columns = {name: found[name].to_list() for name in names}
    works: dict[tuple[Any, ...], Work] = {}
    end = 0
    for index, (of, work) in enumerate(zip(_tuples(columns, key), _tuples(columns, WORK), strict=True)):
        members = columns["members"][index]
        begin, end = end, end + members
        flaw, outcomes, invalid = flawed.get(of, (None, [], False))
        flaw = flaw or mixed.get(of)
        expected = columns["tenants"][index]
        if flaw is None and expected is not None and expected != members:
            flaw = f"{members} of {expected} tenants have a record."
        solo, group, run_id = columns["solo"][index], columns["group"][index], columns["run_id"][index]
        job = columns["job"][index]
        rate = None
        if flaw is None:
            known = works.get(work) or works.setdefault(work, Work(*work))
            started = columns["start_time"][index]
            host = columns["hostname"][index]
            rate = LaunchRate(job, group, run_id, started, columns["rate"][index], known, members, host)
        yield Launch(
            suite=columns["suite"][index],
            host=columns["hostname"][index],
            job=job,
            group=group,
            unit=columns["unit"][index],
            isolation=columns["isolation"][index],
            run_id=run_id,
            solo=solo,
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
    """Why a row has no rate to add to its launch's; one that has any never asks."""
    tenant = pl.lit("tenant ") + pl.col("vcd")  # pl.format panics where a column's first chunk is empty (polars 2.1)
    rules = pl.col("findings").str.replace_all(",", ", ", literal=True)
    return (
        pl.when(~pl.col("completed"))
        .then(tenant + " " + pl.col("outcome") + ".")
        .when(pl.col("losses_non_finite") > 0)
        .then(tenant + " has " + pl.col("losses_non_finite").cast(pl.String) + " losses that are not finite.")
        .when("invalid")
        .then(tenant + " is INVALID (" + rules + ").")
        .otherwise(tenant + " has no rate.")
    )


def _count(column: str) -> pl.Expr:
    """Count the rules in texts of them."""
    rules = pl.col(column).str.count_matches(",", literal=True) + 1
    return pl.when(pl.col(column) != "").then(rules).otherwise(0)
