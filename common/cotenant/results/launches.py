"""Groups rows into launches, the unit of repetition: a node's rate is the sum over the tenants of one launch."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from cotenant.frames import pl
from cotenant.results.columns import CELL, COUNTS, JOB, TENANT, TOGETHER, equal_columns
from cotenant.results.newest import as_numbers, joined_models, launch_key, newest_in, with_lone
from cotenant.results.record import INVALID
from cotenant.results.table import AT

T = TypeVar("T")
K = TypeVar("K")
ABORTED = "aborted"
HASH_SHOWN = 12
"""The number of a hash's characters in texts for people."""
HASHES = ("benchmark", "work_of_an_item")
"""The words with hashes as values."""
_SAME = ("unit", "version", "batch_size", "precision")
"""Values that must be equal in the tenants of a launch: otherwise its rate would sum different works."""
_COUNTED = ("error_findings", "warning_findings", "findings")

Work = tuple[tuple[str, Any], ...]
"""The values that must be equal in a comparison of rates, by the words of `equal_columns`; empty or None if unknown.

`device` is the model of a launch's devices; a launch on two models has both names.
"""


class LaunchRecords(msgspec.Struct, frozen=True):
    """The records of one launch of a job on a host: `tenants`, their `rates`, and the numbers `at` of their rows.

    `rate` is the items per second of all tenants together; without one `flaw` is the reason, and `failure` the outcome
    of a failed tenant, or INVALID for an invalid record. A `solo` launch has one tenant alone, as a baseline for
    launches of the job. For a `mix` the records are of one `cell`. `overlap` is the tenants' smallest. `findings`
    counts errors, warnings and all findings.
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
    rate: float | None
    work: Work
    tenants: list[str]
    rates: list[float | None]
    flaw: str | None = None
    at: list[int] = []
    overlap: float | None = None
    failure: str | None = None
    findings: tuple[int, ...] = (0, 0, 0)
    cell: str = ""
    mix: str = ""
    shape: str = ""


_GATHERED = ("host", "unit", "work", "tenants", "rates", "at", "findings")
"""Fields that are not columns of the same name."""
_FIELDS = [name for name in LaunchRecords.__struct_fields__ if name not in _GATHERED]


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items in lists by their key, in the order of the keys' first items."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def failure_of(launches: Iterable[LaunchRecords]) -> str | None:
    """Return the failure of launches that have no rate; None if no tenant failed and no record is invalid.

    `aborted`, which follows from another tenant's fault, comes after other outcomes, and INVALID last.
    """
    failures = [launch.failure for launch in launches if launch.failure is not None]
    return min(failures, key=lambda failure: (failure == INVALID, failure == ABORTED), default=None)


def rates_of(launches: Iterable[LaunchRecords]) -> list[float]:
    """Return the rates of the launches that have one."""
    return [launch.rate for launch in launches if launch.rate is not None]


def launches_of(frame: pl.DataFrame) -> tuple[dict[str, list[LaunchRecords]], list[str]]:
    """Return the launches with a rate by job, in the order of the jobs' first rows, and sentences on the others.

    A launch with a failed, invalid or missing tenant has no rate. Duets are left out, and solo launches, since a tenant
    alone is not the node.
    """
    newest, left_out = newest_in(frame.filter(TOGETHER))
    launches = launches_in(newest)
    left_out += [why_left_out(launch) for launch in launches if launch.rate is None]
    jobs = grouped(launches, lambda launch: launch.job)
    return {job: [launch for launch in of_job if launch.rate is not None] for job, of_job in jobs.items()}, left_out


def why_left_out(launch: LaunchRecords) -> str:
    """Return a sentence on a launch without a rate."""
    return f"{launch.job}{' alone' if launch.solo else ''}, repetition {launch.run_id}: {launch.flaw}"


def work_of(row: Mapping[str, Any]) -> Work:
    """Return the values of a row that must be equal in a comparison of its rate."""
    return tuple((word, row[column.name]) for word, column in equal_columns().items())


def difference_of(works: Collection[Work], beside: Collection[str] = ()) -> tuple[str, str] | None:
    """Return the first word not in `beside` in which works differ, and its values (empty for `benchmark`).

    An unknown value equals any other.
    """
    seen: dict[str, set[str]] = {word: set() for word in equal_columns() if word not in beside}
    for work in works:
        for word, value in work:
            if word in seen and value not in ("", None):
                seen[word].add(str(value))
    for word, values in seen.items():
        if len(values) > 1:
            return word, "" if word == "benchmark" else " and ".join(sorted(values))
    return None


def difference_words(name: str, values: str) -> str:
    """Return a difference in words: `different batch size: 32 and 64`."""
    what = "source or arguments of the benchmark" if name == "benchmark" else name.replace("_", " ")
    return f"different {what}{f': {values}' if values else ''}"


def changed_arguments(launches: Iterable[LaunchRecords]) -> str:
    """Return the arguments of an item's work in which launches differ, with their values: `dropout 0.0 and 0.5`."""
    shapes = [json.loads(shape) for shape in dict.fromkeys(launch.shape for launch in launches) if shape]
    values = {
        name: list(dict.fromkeys(json.dumps(shape[name]) if name in shape else "unsaid" for shape in shapes))
        for name in dict.fromkeys(name for shape in shapes for name in shape)
    }
    return ", ".join(f"{name} {' and '.join(seen)}" for name, seen in values.items() if len(seen) > 1)


def distinguishing_values(work: Work, works: Collection[Work]) -> str:
    """Return the values of a work that differ from other works of its job: `batch size 32, device unknown`."""
    differing = [word for word, _ in work if len({dict(other).get(word) for other in works}) > 1]
    named = {word: "users" if word == "tenants" else word.replace("_", " ") for word in differing}
    return ", ".join(f"{name} {_shown(word, dict(work)[word])}" for word, name in named.items())


def _shown(word: str, value: Any) -> str:
    return "unknown" if value in ("", None) else str(value)[: HASH_SHOWN if word in HASHES else None]


def launches_in(frame: pl.DataFrame) -> list[LaunchRecords]:
    """Return the launches of the newest rows, which are numbered `at`, in the order of their first rows."""
    key, equal = launch_key(), {word: column.name for word, column in equal_columns().items()}
    keyed = with_lone(frame).with_columns(job=JOB, cell=CELL)
    keyed = keyed.with_columns(as_numbers(keyed.select(key)))
    lost = pl.col("outcome").filter(~pl.col("completed"))
    flawed = keyed.filter(~COUNTS).with_columns(flaw=_flaw()).group_by(key)
    flaws = flawed.agg(
        pl.col("flaw").first(),
        failure=pl.coalesce(
            lost.filter(lost != ABORTED).first(), lost.first(), pl.when(pl.col("invalid").any()).then(pl.lit(INVALID))
        ),
    )
    launches = (
        keyed.lazy()
        .with_columns(pl.col(*_COUNTED).str.count_matches(r"[^,]+"), label=TENANT)
        .group_by(key, maintain_order=True)
        .agg(
            pl.col(
                "group", "job", "cell", "shape", *(name for name in equal.values() if name not in (*key, "gpu"))
            ).first(),
            pl.coalesce("alike", "tenants").first(),
            pl.col("gpu").min(),
            pl.col("unit", "gpu").max().name.prefix("last_"),
            pl.col("overlap", "start_time").min(),
            pl.col(*_COUNTED).sum(),
            pl.col("label", "rate_items_s", AT),
            pl.col("rate_items_s").sum().alias("rate"),
            pl.len().alias("members"),
        )
        .collect(engine="streaming")
    )
    missing = pl.concat_str("members", pl.lit(" of "), "alike", pl.lit(" users have a record."))
    launches = (
        launches.join(flaws, on=key, how="left", nulls_equal=True, maintain_order="left")
        .join(_mixed(keyed, key), on=key, how="left", nulls_equal=True, maintain_order="left")
        .with_columns(
            gpu=joined_models("gpu", "last_gpu"),
            flaw=pl.coalesce("flaw", "mixed", pl.when(pl.col("alike") != pl.col("members")).then(missing)),
        )
        .with_columns(pl.col(pl.Categorical).cast(pl.String), pl.when(pl.col("flaw").is_null()).then("rate"))
    )
    return list(_launches(launches, equal))


def _launches(launches: pl.DataFrame, equal: Mapping[str, str]) -> Iterator[LaunchRecords]:
    # Read columns of lists as one flat list: making a million small lists takes longer than all the rest.
    tenants, rates, at = (launches[name].explode().to_list() for name in ("label", "rate_items_s", AT))
    fields = launches.select(*_FIELDS, host="hostname", unit="last_unit").iter_rows(named=True)
    works: dict[Work, Work] = {}
    end = 0
    others = (launches.select(columns).iter_rows() for columns in (equal.values(), _COUNTED, ["members"]))
    for row, values, counts, (members,) in zip(fields, *others, strict=True):
        begin, end = end, end + members
        work = tuple(zip(equal, values, strict=True))
        yield LaunchRecords(
            **row,
            work=works.setdefault(work, work),
            tenants=tenants[begin:end],
            rates=rates[begin:end],
            at=at[begin:end],
            findings=counts,
        )


def _flaw() -> pl.Expr:
    """Return an expression for the reason why a row's rate does not count."""
    # Name the user, not the device: several users may share one.
    tenant = pl.lit("user ") + TENANT  # pl.format panics if a column's first chunk is empty (polars 2.1)
    rules = pl.col("error_findings").str.replace_all(",", ", ", literal=True)
    return (
        pl.when(~pl.col("completed"))
        .then(tenant + " " + pl.col("outcome") + ".")
        .when(pl.col("losses_non_finite") > 0)
        .then(tenant + " has " + pl.col("losses_non_finite").cast(pl.String) + " losses that are not finite.")
        .when("invalid")
        .then(tenant + " is INVALID (" + rules + ").")
        .otherwise(tenant + " has no rate.")
    )


def _mixed(frame: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Return the launches of tenants with different work, with a sentence on the first difference as `mixed`."""
    works = frame.select(*key, *_SAME).unique(maintain_order=True).filter(pl.struct(key).is_duplicated())
    values = works.group_by(key).agg(pl.col(*_SAME).cast(pl.String).fill_null("None").unique(maintain_order=True))
    differences = [
        pl.when(pl.col(name).list.len() > 1).then(
            pl.lit(f"its users did different work ({name.replace('_', ' ')} ") + pl.col(name).list.join(" and ") + ")."
        )
        for name in _SAME
    ]
    return values.select(*key, mixed=pl.coalesce(differences))
