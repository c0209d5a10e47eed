"""Two configurations under one name: left in a directory by an earlier run, or merged by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import polars as pl

from cotenant.results.launches import WORK, Work
from cotenant.results.table import GOOD

_JOB = ("hostname", "name")
_WORK = WORK[:-1]
"""The device apart: it is known of each record by itself, and tenants of one launch may have different ones."""
_SAME = ("unique_id", "batch_size", "precision")
"""What hosts side by side must do alike; tenants, isolation and software are each host's own."""
_COUNTS = pl.col("ours") & GOOD & pl.col("rate_items_s").is_not_null()


def newest_work(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return the rows without rates of other work than a job's newest, and a sentence on each such job.

    For readers that average all records of one name: two configurations under one name have no average. On one host
    the newest is the newest there; a host whose newest is another benchmark, batch size or precision than the newest
    of all has no rate of that job.
    """
    # What has no number decides nothing: an INVALID record would else drive out the good ones.
    counted = frame.filter(_COUNTS)
    newest = counted.sort("start_time", descending=True, maintain_order=True).unique(_JOB, keep="first")
    # They are in no order after `unique`; the newest of all is the first of its name again.
    of_all = newest.sort("start_time", descending=True, maintain_order=True).unique("name", keep="first")
    alike = newest.join(of_all.select("name", *_SAME), on=["name", *_SAME], how="semi", nulls_equal=True)
    current = {(host, name): Work(*work) for host, name, *work in alike.select(*_JOB, *_WORK).iter_rows()}
    leader = {name: Work(*work) for name, *work in of_all.select("name", *_WORK).iter_rows()}
    seen = counted.group_by(*_JOB, *_WORK, maintain_order=True).len()
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
    mine = alike.select(*_JOB, *_WORK, current=True)
    beside = frame.join(mine, on=[*_JOB, *_WORK], how="left", nulls_equal=True, maintain_order="left")
    return frame.filter(~_COUNTS | beside["current"].is_not_null()), said


def _differing(work: Work, others: Sequence[Work]) -> str:
    """Name what other works differ in from `work`, with both values where a person can read them."""
    told = []
    for one in fields(Work):
        mine, theirs = str(getattr(work, one.name)), {str(getattr(other, one.name)) for other in others}
        if theirs - {mine}:
            values = "" if one.name == "benchmark" else f" {', '.join(sorted(theirs - {mine}))}, not {mine}"
            told.append(f"{one.name.replace('_', ' ')}{values}")
    return "; ".join(told)
