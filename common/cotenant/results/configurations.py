"""Two configurations under one name: left in a directory by an earlier run, or merged by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import polars as pl

from cotenant.results.launches import WORK, Work, joined_models
from cotenant.results.newest import as_numbers, launch_key, with_lone
from cotenant.results.table import GOOD

_JOB = ("hostname", "name")
_SAME = ("unique_id", "batch_size", "precision", "gpu")
"""What hosts side by side must do alike; tenants, isolation and software are each host's own."""
_COUNTS = pl.col("ours") & GOOD & pl.col("rate_items_s").is_not_null()


def newest_work(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return the rows without rates of other work than a job's newest, and a sentence on each such job.

    For readers that average all records of one name: two configurations under one name have no average. On one host
    the newest is the newest there; a host whose newest is another benchmark, batch size, precision or device than the
    newest of all has no rate of that job. The device is a launch's: its tenants may have different ones.
    """
    launched = _with_devices(frame)
    # What has no number decides nothing: an INVALID record would else drive out the good ones.
    counted = launched.filter(_COUNTS)
    newest = counted.sort("start_time", descending=True, maintain_order=True).unique(_JOB, keep="first")
    # They are in no order after `unique`; the newest of all is the first of its name again.
    of_all = newest.sort("start_time", descending=True, maintain_order=True).unique("name", keep="first")
    alike = newest.join(of_all.select("name", *_SAME), on=["name", *_SAME], how="semi", nulls_equal=True)
    current = {(host, name): Work(*work) for host, name, *work in alike.select(*_JOB, *WORK).iter_rows()}
    leader = {name: Work(*work) for name, *work in of_all.select("name", *WORK).iter_rows()}
    seen = counted.group_by(*_JOB, *WORK, maintain_order=True).len()
    others: dict[tuple[str, str], list[tuple[Work, int]]] = {}
    for host, name, *work, count in seen.iter_rows():
        if Work(*work) != current.get((host, name)):
            others.setdefault((host, name), []).append((Work(*work), count))
    if not others:
        return frame, []
    said = [
        f"{name}: {sum(count for _, count in of_job)} records are of other work than the newest "
        f"({_differing(current.get((host, name), leader[name]), [work for work, _ in of_job])}); they do not count."
        for (host, name), of_job in others.items()
    ]
    mine = alike.select(*_JOB, *WORK, current=True)
    beside = launched.join(mine, on=[*_JOB, *WORK], how="left", nulls_equal=True, maintain_order="left")
    return frame.filter(~_COUNTS | beside["current"].is_not_null()), said


def _with_devices(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the table with the models of all tenants of its launch as each row's device.

    A tenant that was lost before it could say has its slice's name for a model, which counts where a rate has it too.
    """
    models = frame.filter(_COUNTS)["gpu"].unique()
    if len(models) < 2:
        return frame
    launch = launch_key(["hostname"])
    model = pl.when(pl.col("gpu") != "", pl.col("gpu").is_in(models.implode())).then("gpu")
    rows = with_lone(frame).select(*launch, model=model)
    found = rows.with_columns(as_numbers(rows.select(launch))).select(
        first=pl.col("model").min().over(launch), last=pl.col("model").max().over(launch)
    )
    return frame.with_columns(found.select(gpu=joined_models("first", "last").fill_null("")).to_series())


def _differing(work: Work, others: Sequence[Work]) -> str:
    """Name what other works differ in from `work`, with both values where a person can read them."""
    told = []
    for one in fields(Work):
        mine, theirs = str(getattr(work, one.name)), {str(getattr(other, one.name)) for other in others}
        if theirs - {mine}:
            values = "" if one.name == "benchmark" else f" {', '.join(sorted(theirs - {mine}))}, not {mine}"
            told.append(f"{one.name.replace('_', ' ')}{values}")
    return "; ".join(told)
