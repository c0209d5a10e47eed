"""Shows a kept share, a value with its interval and n, in tables, in programs' rows and in sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from cotenant.report import numbers
from cotenant.report.alone import STEP_TIMES
from cotenant.report.grid import Cell, Column, Measurement, T, Value, Words, measured_columns
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


def explained(texts: Mapping[str, bool]) -> list[Words]:
    """Return one line with those of the texts that are needed."""
    return [((" ".join(text for text, needed in texts.items() if needed), "dim"),)]


def around(kept: Kept, show: Callable[[float, float], str] = numbers.ratio_interval) -> str:
    """Return the interval, or why there is none."""
    if kept.interval is not None:
        return show(*kept.interval)
    return numbers.ONCE if kept.n == 1 else numbers.TOO_SMALL


def counted(n: int, over: str) -> str:
    """Return an n in words: `3 launches`, `1 round`."""
    return many(n, ONE[over])


def shown(kept: Kept) -> str:
    """Return `1.71 (1.65-1.78)`; without an interval the value alone."""
    return numbers.ratio(kept.value) + ("" if kept.interval is None else f" ({around(kept)})")


def percents(kept: Kept) -> str:
    """Return `97 % (95 to 99 %)`, or `(95 to 99 % within one launch)`."""
    if kept.interval is None:
        return f"{100 * kept.value:.0f} %"
    ends = " to ".join(f"{100 * end:.0f}" for end in kept.interval)
    return f"{100 * kept.value:.0f} % ({ends} %{' within one launch' if kept.within else ''})"


def shaded(kept: Kept) -> Cell:
    """Return the cell of a matrix, darker the less is kept."""
    heat = round(100 * min(1.0, max(0.0, (1 - kept.value) / (1 - DARKEST))))
    return Cell(numbers.ratio(kept.value), heat=heat, note="" if kept.interval is None else f"({around(kept)})")


def kept_fields(name: str) -> tuple[str, ...]:
    """Return the fields under which programs read a kept share."""
    return tuple(f"{name}{part}" for part in ("", "_low", "_high", "_n", "_over"))


def kept_values(kept: Kept, name: str) -> dict[str, Value]:
    """Return the values of these fields."""
    values = (kept.value, *(kept.interval or (None, None)), kept.n, kept.over)
    return dict(zip(kept_fields(name), values, strict=True))


def kept_columns(
    heading: str, of: Callable[[T], Kept | None], name: str, optional: bool = False
) -> Sequence[Column[T]]:
    """Return the columns of value, interval and n."""

    def cell(part: int, item: T) -> Cell:
        if (kept := of(item)) is None:
            return Cell()
        values, n = kept_values(kept, name), counted(kept.n, kept.over)
        return (Cell(numbers.ratio(kept.value), values), Cell(around(kept)), Cell(n))[part]

    headings = (heading, "95 % interval", "n")
    return [Column(title, partial(cell, part), optional=optional) for part, title in enumerate(headings)]


def rate_fields(name: str) -> tuple[str, ...]:
    """Return the fields under which programs read a rate over launches."""
    return tuple(f"{name}{part}" for part in ("", "_low", "_high", "_launches"))


def rates_over_launches(
    heading: str, of: Callable[[T], AcrossLaunches | None], name: str, optional: bool = False
) -> Sequence[Column[T]]:
    """Return the columns of rate, interval and n."""

    def rate(item: T) -> Measurement | None:
        across = of(item)
        if across is None:
            return None
        return Measurement(across.rate, across.interval, str(across.n), (across.n,), once=across.n == 1)

    return measured_columns(heading, rate, rate_fields(name), optional=optional)


def baseline_cell(kind: str) -> Cell:
    """Return how tenants ran alone; for people a word only if it was not the usual way."""
    return Cell(kind if kind != "whole" else "", {"baseline": kind})


def _steps(prefix: str, times: Any) -> Cell:
    if times is None:
        return Cell()
    return Cell(str(times), {f"{prefix}step_{name}": time_ns for name, time_ns in asdict(times).items()})


STEPS: Sequence[Column[Any]] = (
    Column(STEPS_HEADING, lambda item: _steps("", item.steps), optional=True),
    Column("of a step alone", lambda item: _steps("alone_", item.steps_alone), optional=True),
)
"""The columns of an item's `steps` and `steps_alone`, as `4.1, 6.0, 9.8 ms`."""
