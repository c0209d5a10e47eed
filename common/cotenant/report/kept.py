"""Shows a kept share, a value with its interval and n, in tables, in programs' rows and in sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cotenant.report import numbers
from cotenant.report.alone import STEP_TIMES
from cotenant.report.view import Cell, Column, Row, Value, Words, measurement, with_ends
from cotenant.stats.kept import Kept
from cotenant.stats.launches import AcrossLaunches
from cotenant.text import many

ONE: Mapping[str, str] = {"rounds": "round", "observations": "observation", "launches": "launch", "jobs": "job"}
OF_N = "n: of rounds (of taking turns) or observations, which are of one launch, another launch may differ."
QUICK = "quick: few observations alone (--baseline whole measures as long alone as beside the others)."
QUICKLY = " (quick baseline)"
BLOCKS = (
    "blocks: alone and beside each other by turns within one launch, the neighbours held still meanwhile; alone is the "
    "rate beside them over what is kept."
)
SINGLE = "Measured once: no interval over launches, and another launch may differ."
STEPS_HEADING = "p50, p95, p99 of a step"
OF_STEPS = f"{STEPS_HEADING}: medians over launches, of jobs that serve."
OF_ENERGY = (
    "energy: joules of the devices, by their own counters, over those of the same items by each user alone, one "
    "after another. Nothing tells the joules of one user of a device apart."
)
DARKEST = 0.5
"""The share at and below which a cell of a matrix has its full shade."""
STEP_FIELDS = (*STEP_TIMES, *(f"alone_{name}" for name in STEP_TIMES))


def legend_of(texts: Mapping[str, bool]) -> list[Words]:
    """Return one line with the needed texts."""
    return [((" ".join(text for text, needed in texts.items() if needed), "dim"),)]


def around(kept: Kept, show: Callable[[float, float], str] = numbers.ratio_interval) -> str:
    """Return the interval, or why there is none."""
    if kept.interval is not None:
        return show(*kept.interval)
    return numbers.ONCE if kept.n == 1 else numbers.TOO_SMALL


def n_text(n: int, over: str) -> str:
    """Return an n in words: `3 launches`, `1 round`."""
    return many(n, ONE[over])


def with_interval(kept: Kept) -> str:
    """Return `1.71 (1.65-1.78)`; without an interval the value alone."""
    return numbers.ratio(kept.value) + ("" if kept.interval is None else f" ({around(kept)})")


def percents(kept: Kept) -> str:
    """Return `97 % (95 to 99 %)`, or `(95 to 99 % within one launch)`."""
    if kept.interval is None:
        return f"{100 * kept.value:.0f} %"
    ends = " to ".join(f"{100 * end:.0f}" for end in kept.interval)
    return f"{100 * kept.value:.0f} % ({ends} %{' within one launch' if kept.within else ''})"


def shaded(kept: Kept) -> Cell:
    """Return the cell of a matrix: the less is kept, the darker."""
    heat = round(100 * min(1.0, max(0.0, (1 - kept.value) / (1 - DARKEST))))
    return Cell(numbers.ratio(kept.value), heat=heat, note="" if kept.interval is None else f"({around(kept)})")


def kept_fields(name: str) -> tuple[str, ...]:
    """Return the fields under which programs read a kept share."""
    return tuple(f"{name}{part}" for part in ("", "_low", "_high", "_n", "_over"))


def kept_meanings(name: str, meaning: str) -> dict[str, str]:
    """Return the `kept_fields` with their meanings."""
    counts = {f"{name}_n": f"the n of {name}", f"{name}_over": "rounds, observations, launches or jobs"}
    return {**with_ends(name, meaning), **counts}


def kept_values(kept: Kept | None, fields: Sequence[str]) -> dict[str, Value]:
    """Return the values of these fields of a kept share; none if it is unknown."""
    if kept is None:
        return {}
    return dict(zip(fields, (kept.value, *(kept.interval or (None, None)), kept.n, kept.over), strict=True))


def kept_of(row: Row, fields: Sequence[str]) -> Kept | None:
    """Return the kept share of a row with these fields; None if it is unknown."""
    value, low, high, n, over = (row[name] for name in fields)
    return None if value is None else Kept(value, None if low is None else (low, high), n, over)


def kept_columns(heading: str, fields: Sequence[str], **more: Any) -> list[Column]:
    """Return the columns of value, interval and n."""
    show, span = numbers.ratio, numbers.ratio_interval
    return measurement(heading, fields, n_text, show, span, lambda n, over: n == 1, **more)


def rate_fields(name: str) -> tuple[str, ...]:
    """Return the fields under which programs read a rate over launches."""
    return tuple(f"{name}{part}" for part in ("", "_low", "_high", "_launches"))


def rate_meanings(name: str, meaning: str) -> dict[str, str]:
    """Return the `rate_fields` with their meanings."""
    return {**with_ends(name, f"items per second {meaning}"), f"{name}_launches": "the launches that it is over"}


def rate_values(rate: AcrossLaunches | None, fields: Sequence[str]) -> dict[str, Value]:
    """Return the values of these fields of a rate; none if it is unknown."""
    return {} if rate is None else dict(zip(fields, (rate.rate, *(rate.interval or (None, None)), rate.n), strict=True))


def rates_over_launches(heading: str, name: str, **more: Any) -> list[Column]:
    """Return the columns of rate, interval and n."""
    return measurement(heading, rate_fields(name), once=lambda n: n == 1, **more)


BASELINE = Column("baseline", show=lambda kind: "" if kind == "whole" else kind, left=True, optional=True)
"""The way in which users ran alone; blank for people if it was the usual way, whole launches."""


def _steps(*times_ns: float) -> str:
    """Return `4.1, 6.0, 9.8 ms`."""
    return f"{', '.join(f'{time_ns / 1e6:.3g}' for time_ns in times_ns)} ms"


STEPS: Sequence[Column] = (
    Column(STEPS_HEADING, STEP_FIELDS[:3], _steps, optional=True),
    Column("of a step alone", STEP_FIELDS[3:], _steps, optional=True),
)
"""The columns of the times of a user's steps, together and alone."""
