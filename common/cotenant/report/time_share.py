"""How much of the time that launches took lies inside their observations: the rest is their price."""

from __future__ import annotations

import polars as pl

from cotenant.report.progress import duration_words
from cotenant.report.summary import Summary
from cotenant.results.columns import LAUNCH
from cotenant.results.table import Rows

_LAUNCH = ("hostname", "suite", "launch", "baseline", "start_time")


def observed_share(summary: Summary) -> tuple[float, float] | None:
    """Return the share of the launches' seconds that lies inside observations, and these seconds.

    A launch lasts from its begin to its last tenant's end; inside observations is its tenant that observed longest. All
    launches count that are in the summary: together and alone, kept observations and those that are not. None where
    nothing was observed, or more than can be.
    """
    whole = Rows(summary.records.table, [*summary.records.at, *summary.solos.at])
    rows = whole.columns("hostname", "suite", "baseline", "start_time", "end_time", "observed_s", launch=LAUNCH)
    begin, end = (pl.col(name).str.to_datetime(strict=False, time_zone="UTC") for name in ("start_time", "end_time"))
    lasted_s = (end - begin).dt.total_microseconds() / 1e6
    launches = rows.with_columns(lasted_s=lasted_s).group_by(_LAUNCH).agg(pl.col("lasted_s", "observed_s").max())
    known = launches.filter(pl.col("lasted_s") > 0).select(pl.col("observed_s").fill_null(0), "lasted_s").sum()
    observed, lasted = known.row(0)
    return (observed / lasted, lasted) if 0 < observed <= lasted else None


def observed_words(summary: Summary) -> str:
    """Return `of 9 min of launches 52 % lay inside observations`; nothing where that is not known."""
    if (observed := observed_share(summary)) is None:
        return ""
    share, seconds = observed
    return f"of {duration_words(seconds)} of launches {100 * share:.0f} % lay inside observations"
