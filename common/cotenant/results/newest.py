"""Selects the rows of a table that count: the newest run of each repetition, no copies, one work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cotenant.frames import pl
from cotenant.results.columns import COUNTS, equal_columns
from cotenant.results.legacy import UNNAMED
from cotenant.results.table import AT
from cotenant.text import listed

LONE = "lone"
"""The column that distinguishes solo launches: their baseline and tenant; null for other launches."""
NAMED = 5
"""The most jobs or repetitions that a sentence names; the others are counted."""
TOGETHER_DAYS = 7
"""The repetitions of a suite within this many days are one measurement."""

_MOMENT = ("suite", "hostname", "name", "start_time")
_JOB = ("hostname", "name")
_OF_ANY_HOST = ("unique_id", "batch_size", "precision", "gpu")
"""Columns that must be equal on all hosts of a job; tenants, isolation and software may differ between hosts."""


def with_lone(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the table with the column `lone`."""
    alone = pl.col("baseline") + " " + pl.col("tenant").cast(pl.String)
    return frame.with_columns(pl.when("solo").then(alone).alias(LONE))


def launch_key() -> list[str]:
    """Return the columns that are equal in the rows of one repetition on one host, under one isolation."""
    return ["suite", "hostname", "name", "isolation", "run_id", "solo", LONE]


def as_numbers(frame: pl.DataFrame) -> list[pl.Expr]:
    """Return the columns of a table with texts as categories: grouping by categories takes a tenth of the memory."""
    return [
        pl.col(name).cast(pl.Categorical) if kind == pl.String else pl.col(name) for name, kind in frame.schema.items()
    ]


def newest_in(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return the newest row of each tenant of each repetition of a job, and sentences on copies and repeated runs.

    A suite's directory has a repetition once (`superseded.py`). Copied and merged directories, and directories of
    earlier versions, may have it again, and its users would be counted twice. A tenant is identified by its number, in
    the original's records by its device and host. Of our records only the newest launch's count: further tenants of an
    earlier launch were not measured beside these. The column `at` numbers the rows of the given table; it is added if
    it is missing.
    """
    key = launch_key()
    rows, copies = _without_copies(frame if AT in frame.columns else frame.with_row_index(AT))
    newest, several = _newest_of_tenants(with_lone(rows), key)
    last = pl.when("ours").then("start_time").max().over(key)
    older = newest.select(older=pl.col("ours") & (pl.col("start_time") != last)).to_series()
    repeated = {*several, *newest.filter(older).select("name", "run_id").iter_rows()}
    by_uid: dict[int, list[str]] = {}
    for name, uid in sorted(repeated):
        by_uid.setdefault(uid, []).append(name)
    several_runs = "there are records of several runs; the newest count."
    runs = [f"{listed(names, NAMED)}, repetition {uid}: {several_runs}" for uid, names in sorted(by_uid.items())]
    of_one_run = (newest.filter(~older) if older.any() else newest).drop(LONE)
    return of_one_run, [*copies, *runs, *_of_other_runs(of_one_run)]


def _newest_of_tenants(frame: pl.DataFrame, key: Sequence[str]) -> tuple[pl.DataFrame, set[tuple[str, int]]]:
    """Return each tenant's newest row at the position of its first one, and name and uid of tenants with several rows.

    The rows are numbered `at` and have the columns of the launch's `key`.
    """
    unnumbered = pl.col("tenant").is_null()
    tenant = [pl.when(unnumbered).then(name).alias(f"of_{name}") for name in ("hostname", "vcd")]
    # The original's failures may lack a name or a time: their job or their run is then unknown.
    lone = ~pl.col("ours") & ~pl.col("completed") & ((pl.col("name") == UNNAMED) | (pl.col("start_time") == ""))
    failure = pl.when(lone).then(AT).alias("of_failure")
    tenant_key = pl.struct(*as_numbers(frame.select(key)), pl.col("tenant").alias("of_tenant"), *tenant, failure)
    several = frame.select(tenant_key.is_duplicated()).to_series()
    if not several.any():
        return frame, set()
    same = frame.filter(several).with_columns(place=pl.col(AT).min().over(tenant_key))
    in_order = same.sort("start_time", "path", descending=True, maintain_order=True)
    once = frame.filter(~several).with_columns(place=pl.col(AT))
    newest = pl.concat([once, in_order.unique("place", keep="first")]).sort("place").drop("place")
    return newest, set(same.select("name", "run_id").iter_rows())


def _without_copies(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return the rows without copies of a launch under another repetition's number, and a sentence on each copy.

    Launches of one host that begin at the same microsecond are copies; copies would look like launches that agree.
    Only a row with a rate can be a copy: a failure is never left out.
    """
    has_rate = pl.col("ours") & (pl.col("start_time") != "") & pl.col("rate_items_s").is_not_null()
    # Usually there are no copies: these columns show it in a tenth of the time that all of _MOMENT would take.
    moments = frame.select("start_time", "run_id", has_rate.alias("rated")).filter("rated").unique()
    if not moments["start_time"].is_duplicated().any():
        return frame, []
    first = pl.when(has_rate).then("run_id").min().over(_MOMENT)
    marks = frame.select("name", "run_id", copy=has_rate & (pl.col("run_id") != first), first=first)
    copies = [
        f"{name}, repetition {run_id}: it began at the same moment as repetition {original}, and is a copy of it; "
        "it does not count."
        for name, run_id, original in marks.filter("copy").select("name", "run_id", "first").unique().iter_rows()
    ]
    return (frame.filter(~marks["copy"]) if copies else frame), sorted(copies)


def _of_other_runs(frame: pl.DataFrame) -> list[str]:
    """Return sentences on launches that are older than a suite's newest run on a host.

    Each repetition with jobs that its newest suite run never launched has a sentence, and so have repetitions that ran
    long before the newest, since much may differ. A quick baseline is ignored if there is also a whole one.
    """
    suite, began = ["suite", "hostname", "isolation"], pl.col("suite_start_time")
    replaced = (pl.col("baseline") == "quick") & (pl.col("baseline") == "whole").any().over(*suite, "run_id", "name")
    ours = frame.lazy().filter("ours", began != "", ~replaced.fill_null(False)).select(*suite, "run_id", began, "name")
    runs = ours.unique(maintain_order=True).with_columns(last=began.max().over(*suite, "run_id")).collect()
    earlier = runs.filter(began != pl.col("last")).group_by(*suite, "run_id", "last", maintain_order=True)
    sentences = [
        f"{name}, repetition {uid}: an earlier run than that of {last[:19]}Z launched {listed(jobs, NAMED)}."
        for name, _, _, uid, last, jobs in earlier.agg(pl.col("name").unique().sort()).iter_rows()
    ]
    time = pl.col("last").str.slice(0, 19).str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False)
    times = runs.select(*suite, "run_id", time=time).unique(maintain_order=True)
    times = times.with_columns(newest=pl.col("time").max().over(suite))
    older = times.filter(pl.col("newest") - pl.col("time") > pl.duration(days=TOGETHER_DAYS))
    uids_of = older.group_by(*suite, "newest", maintain_order=True).agg(pl.col("run_id").sort())
    return sentences + [
        f"{name}, repetition {listed(uids, NAMED)}: more than {TOGETHER_DAYS} days before the newest, "
        f"which began {newest:%Y-%m-%d}."
        for name, _, _, newest, uids in uids_of.iter_rows()
    ]


def newest_work(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Leave out rows with rates of a job's older work; return the others, and a sentence on each job with such rates.

    Readers that average all records of one name need this: two configurations under one name, from an earlier run or
    merged by hand, have no average. Each host has its own newest work; if that differs in benchmark, batch size,
    precision or device from the newest of all hosts, the host has no rate of that job. The device is the whole
    launch's, since its tenants may have different ones.
    """
    # Only counting rates decide: otherwise an INVALID record would exclude the good ones.
    counts, words = pl.col("ours") & COUNTS, [column.name for column in equal_columns().values()]
    job_and_work = [*_JOB, *words]
    rows = _with_devices(frame, counts).select(*job_and_work, "start_time", counts=counts)
    seen = rows.filter("counts").group_by(job_and_work, maintain_order=True)
    works = seen.agg(pl.len().alias("records"), pl.col("start_time").max())
    in_order = works.sort("start_time", descending=True, maintain_order=True)
    newest = in_order.unique(_JOB, keep="first", maintain_order=True)
    of_all = newest.unique("name", keep="first", maintain_order=True)
    current = newest.join(of_all, on=["name", *_OF_ANY_HOST], how="semi", nulls_equal=True)
    others = works.join(current, on=job_and_work, how="anti", nulls_equal=True, maintain_order="left")
    if others.is_empty():
        return frame, []
    leaders = {(host, name): work for host, name, *work in current.select(job_and_work).iter_rows()}
    of_name = {name: work for name, *work in of_all.select("name", *words).iter_rows()}
    sentences = []
    for (host, name), of_job in others.group_by(_JOB, maintain_order=True):
        differing = _differing(leaders.get((host, name), of_name[name]), of_job.select(words).rows())
        records = f"{name}: {of_job['records'].sum()} records are of other work than the newest"
        sentences.append(f"{records} ({differing}); they do not count.")
    marks = current.select(*job_and_work, current=True)
    counted = rows.join(marks, on=job_and_work, how="left", nulls_equal=True, maintain_order="left")
    return frame.filter(counted.select(~pl.col("counts") | pl.col("current").is_not_null()).to_series()), sentences


def _with_devices(frame: pl.DataFrame, counts: pl.Expr) -> pl.DataFrame:
    """Return the table with the models of all of a launch's tenants as the device in each of the launch's rows.

    A tenant lost before it reported its model has its slice's name for it, which counts only if a row with a rate has
    the same name.
    """
    models = frame.filter(counts)["gpu"].unique()
    if len(models) < 2:
        return frame
    launch = launch_key()
    model = pl.when(pl.col("gpu") != "", pl.col("gpu").is_in(models.implode())).then("gpu")
    rows = with_lone(frame).select(*launch, model=model)
    ends = rows.with_columns(as_numbers(rows.select(launch))).select(
        first=pl.col("model").min().over(launch), last=pl.col("model").max().over(launch)
    )
    return frame.with_columns(ends.select(gpu=joined_models("first", "last").fill_null("")).to_series())


def joined_models(first: str, last: str) -> pl.Expr:
    """Return the device of a launch from the columns of its first and last model: one name, or both if they differ."""
    one_model = (pl.col(first) == "") | (pl.col(first) == pl.col(last))
    return pl.when(one_model).then(last).otherwise(pl.col(first) + " + " + pl.col(last))


def _differing(work: Sequence[Any], others: Sequence[Sequence[Any]]) -> str:
    """Return the words in which other works differ from `work`, with values that people can read."""
    parts = []
    for word, value, *values in zip(equal_columns(), work, *others, strict=True):
        if differing := sorted({str(other) for other in values} - {str(value)}):
            shown = "" if word == "benchmark" else f" {', '.join(differing)}, not {value}"
            parts.append(f"{word.replace('_', ' ')}{shown}")
    return "; ".join(parts)
