"""Which rows of a table count: of a repetition that was run several times the newest, and no copy of another."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from cotenant.results.copies import without_copies

AT = "at"
"""The column with the number of a row in the table that others were taken from."""
LONE = "lone"
"""The column that keeps solo launches apart: their tenant, as each is of one tenant; else null."""
NAMED = 5
"""How many jobs or repetitions a sentence names; more are counted."""
TOGETHER_DAYS = 7
"""Within how many days the repetitions of a suite are taken for one measurement."""


def with_lone(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the table with the column `lone`."""
    return frame.with_columns(pl.when("solo").then("tenant").alias(LONE))


def launch_key(apart: Sequence[str] = ()) -> list[str]:
    """Return the columns that are equal in the rows of one repetition; `apart` are more that keep rows apart.

    With and without isolation are two things, whatever their uid.
    """
    return ["suite", *apart, "name", "isolation", "run_id", "solo", LONE]


def as_numbers(frame: pl.DataFrame) -> list[pl.Expr]:
    """Return the columns of a table, texts as categories: groups of these take a tenth of the memory."""
    return [
        pl.col(name).cast(pl.Categorical) if kind == pl.String else pl.col(name) for name, kind in frame.schema.items()
    ]


def newest_in(frame: pl.DataFrame, apart: Sequence[str] = ()) -> tuple[pl.DataFrame, list[str]]:
    """Return the newest row of each tenant of each repetition of a job, and sentences on copies and where were several.

    A tenant is known by its number, in the original's records by its device and host. Of our own records those of the
    newest launch count alone: what is left of an earlier one with more tenants was not measured beside these. A column
    `at` numbers the rows as they were.
    """
    key = launch_key(apart)
    kept, copied = without_copies(frame.with_row_index(AT))
    newest, several = newest_of_tenants(with_lone(kept), key)
    last = pl.when("ours").then("start_time").max().over(key)
    older = newest.select(older=pl.col("ours") & (pl.col("start_time") != last)).to_series()
    told = {*several, *newest.filter(older).select("name", "run_id").iter_rows()}
    said = [f"{name}, repetition {uid}: there are records of several runs; the newest count." for name, uid in told]
    of_one_run = (newest.filter(~older) if older.any() else newest).drop(LONE)
    copies = [f"{launch}: {reason}" for launch, reason in copied]
    return of_one_run, [*copies, *sorted(said), *_of_earlier_runs(of_one_run), *_of_other_times(of_one_run)]


def _of_earlier_runs(frame: pl.DataFrame) -> list[str]:
    """Return a sentence on each repetition with jobs that its newest suite run never launched: what they say is old."""
    run = ("suite", "hostname", "isolation", "run_id")
    last = pl.col("suite_start_time").max().over(run)
    known = frame.select(*run, "name", "suite_start_time", "ours").filter("ours", pl.col("suite_start_time") != "")
    earlier = known.with_columns(last=last).filter(pl.col("suite_start_time") != pl.col("last"))
    told = earlier.group_by(*run, "last", maintain_order=True).agg(pl.col("name").unique().sort())
    return [
        f"{suite}, repetition {uid}: an earlier run than that of {began[:19]} launched {_named(names)}."
        for suite, _, _, uid, began, names in told.iter_rows()
    ]


def _of_other_times(frame: pl.DataFrame) -> list[str]:
    """Return a sentence on the repetitions of a suite on a host that ran long before its newest: much may differ."""
    suite = ("suite", "hostname", "isolation")
    began = pl.col("suite_start_time").str.slice(0, 19).str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False)
    ours = frame.select(*suite, "run_id", "suite_start_time", "ours").filter("ours")
    runs = ours.group_by(*suite, "run_id", maintain_order=True).agg(began.max().alias("began"))
    of_suite = runs.with_columns(newest=pl.col("began").max().over(suite))
    older = of_suite.filter(pl.col("newest") - pl.col("began") > pl.duration(days=TOGETHER_DAYS))
    told = older.group_by(*suite, "newest", maintain_order=True).agg(pl.col("run_id").sort())
    return [
        f"{name}, repetition {_named(list(map(str, uids)))}: more than {TOGETHER_DAYS} days before the newest, "
        f"which began {newest:%Y-%m-%d}."
        for name, _, _, newest, uids in told.iter_rows()
    ]


def _named(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def newest_of_tenants(frame: pl.DataFrame, key: Sequence[str]) -> tuple[pl.DataFrame, set[tuple[str, int]]]:
    """Return the newest row of each tenant where its first row was, and name and uid of those that have several.

    The rows are numbered `at` and have the columns of the launch's `key`.
    """
    unnumbered = pl.col("tenant").is_null()
    tenant = [pl.when(unnumbered).then(name).alias(f"of_{name}") for name in ("hostname", "vcd")]
    of = pl.struct(*as_numbers(frame.select(key)), pl.col("tenant").alias("of_tenant"), *tenant)
    several = frame.select(of.is_duplicated()).to_series()
    if not several.any():
        return frame, set()
    same = frame.filter(several).with_columns(place=pl.col(AT).min().over(of))
    in_order = same.sort("start_time", "path", descending=True, maintain_order=True)
    newest = in_order.group_by("place", maintain_order=True).first()
    once = frame.filter(~several).with_columns(place=pl.col(AT))
    together = pl.concat([once, newest.select(once.columns)]).sort("place").drop("place")
    return together, set(same.select("name", "run_id").unique().iter_rows())
