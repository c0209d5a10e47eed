"""Two configurations under one name: left in a directory by an earlier run, or merged by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import polars as pl

from cotenant.results.launches import WORK, Work

_JOB = ("hostname", "name")
_WORK = WORK[:-1]
"""The device apart: it is known of each record by itself, and tenants of one launch may have different ones."""
_COUNTS = pl.col("ours") & pl.col("completed") & ~pl.col("invalid") & pl.col("rate_items_s").is_not_null()


def newest_work(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return the rows without rates of other work than a job's newest on its host, and a sentence on each such job.

    For readers that average all records of one name: two configurations under one name have no average.
    """
    # What has no number decides nothing: an INVALID record would else drive out the good ones.
    counted = frame.filter(_COUNTS)
    newest = counted.sort("start_time", descending=True, maintain_order=True).unique(_JOB, keep="first")
    current = {(host, name): Work(*work) for host, name, *work in newest.select(*_JOB, *_WORK).iter_rows()}
    seen = counted.group_by(*_JOB, *_WORK, maintain_order=True).len()
    others: dict[tuple[str, str], list[tuple[Work, int]]] = {}
    for host, name, *work, count in seen.iter_rows():
        if Work(*work) != current[host, name]:
            others.setdefault((host, name), []).append((Work(*work), count))
    if not others:
        return frame, []
    said = [
        f"{name}: {sum(count for _, count in of_job)} records are of other work than the newest "
        f"({_differing(current[host, name], [work for work, _ in of_job])}); they do not count."
        for (host, name), of_job in others.items()
    ]
    mine = newest.select(*_JOB, *_WORK, current=True)
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
