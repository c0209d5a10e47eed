"""Records that were copied: a launch under another repetition's number is no second launch."""

from __future__ import annotations

import polars as pl

_MOMENT = ("suite", "hostname", "name", "start_time")


def without_copies(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[tuple[str, str]]]:
    """Return the rows without copies of a launch under another repetition's number; those launches, and the reasons.

    No two launches of a host begin at the same microsecond: equal numbers would look like many that agree. Only what
    has a rate can be such a copy: a failure is never left out.
    """
    has_rate = pl.col("ours") & (pl.col("start_time") != "") & pl.col("rate_items_s").is_not_null()
    # A look at two columns, which finds nothing as a rule: all of the moment's take ten times as long.
    moments = frame.select("start_time", "run_id", has_rate.alias("rated")).filter("rated").unique()
    if not moments["start_time"].is_duplicated().any():
        return frame, []
    first = pl.when(has_rate).then("run_id").min().over(_MOMENT)
    at = frame.select(copy=has_rate & (pl.col("run_id") != first), first=first)
    if not at["copy"].any():
        return frame, []
    told = pl.concat([frame.select("name", "run_id"), at], how="horizontal").filter("copy").unique()
    said = [
        (
            f"{name}, repetition {run_id}",
            f"it began at the same moment as repetition {of}, and is a copy of it; it does not count.",
        )
        for name, run_id, of in told.select("name", "run_id", "first").iter_rows()
    ]
    return frame.filter(~at["copy"]), sorted(said)
