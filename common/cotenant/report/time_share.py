"""The share of the launches' time inside their observations: the rest is overhead."""

from __future__ import annotations

from typing import NamedTuple

from cotenant.frames import pl
from cotenant.report.progress import duration_words
from cotenant.report.summary import Summary
from cotenant.results.columns import LAUNCH
from cotenant.results.table import Rows

_OF_LAUNCH = ("hostname", "suite", "mix", "baseline", "start_time")
_SECONDS = ("lasted_s", "loaded_s", "observed_s")


class TimeSpent(NamedTuple):
    """The total seconds of launches: from begin to end, between GO and STOP, and inside observations."""

    lasted_s: float
    loaded_s: float
    observed_s: float


def spent_of(summary: Summary) -> TimeSpent | None:
    """Return the time of all launches in the summary, together and alone; None if it is unknown.

    A launch lasts from its begin to its last tenant's end, its load from GO to the last tenant's end of load. The time
    inside observations, kept or not, is of the tenant that observed longest. All three are unknown if several pairs met
    in a launch: their records share its time.
    """
    whole = Rows(summary.records.table, [*summary.records.at, *summary.solos.at])
    begin, end = (pl.col(name).str.to_datetime(strict=False, time_zone="UTC") for name in ("start_time", "end_time"))
    lasted_s = (end - begin).dt.total_microseconds() / 1e6
    rows = whole.columns(*_OF_LAUNCH, *_SECONDS[1:], launch=LAUNCH, lasted_s=lasted_s)
    launches = rows.group_by(*_OF_LAUNCH, "launch").agg(pl.col(_SECONDS).max())
    several = (pl.col("mix").fill_null("") != "") & (pl.len().over("hostname", "suite", "baseline", "start_time") > 1)
    if launches.select(several.any()).item():
        return None
    spent = TimeSpent(*launches.filter(pl.col("lasted_s") > 0).select(_SECONDS).sum().row(0))
    return spent if 0 < spent.observed_s <= spent.loaded_s <= spent.lasted_s else None


def observed_words(summary: Summary) -> str:
    """Return the share of the launches' time inside observations in words; "" if it is unknown."""
    if (spent := spent_of(summary)) is None:
        return ""
    return (
        f"{100 * spent.observed_s / spent.lasted_s:.0f} % of {duration_words(spent.lasted_s)} was measured "
        f"({100 * spent.observed_s / spent.loaded_s:.0f} % of the time from GO to STOP), the rest was start-up and "
        "checks"
    )
