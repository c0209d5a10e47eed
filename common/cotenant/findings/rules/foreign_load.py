"""Processors that worked for others while tenants were timed: spinning threads slow a tenant many times over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

MOST_OF_ALL, MOST_OF_ONE = 0.01, 0.1
LEAST_WINDOW_S = 1.0
"""The kernel counts in ticks of 10 ms: of less than a second, three of them on the wrong side would speak."""


def check(record: Record) -> Finding | None:
    foreign, sampling = record.meters.get("foreign"), record.meters.get("sampling")
    if not foreign or not sampling or sampling["window_s"] < LEAST_WINDOW_S:
        return None
    busy, total = foreign["processors"], foreign["host_processors"]
    if busy <= tolerated(total):
        return None
    named = [f"{one['name']} (pid {one['pid']}, {100 * one['share']:.0f} %)" for one in foreign["busiest"]]
    names = f": {', '.join(named)}" if named else ""
    return Finding(
        "foreign_load",
        "warning",
        f"While tenants were timed other work kept {kept(busy, total)} of {total} processors busy{names}.",
        "End it, or wait for it, and run the job again: what it used was missing to the tenants.",
    )


def tolerated(processors: int) -> float:
    """Return how many processors others may keep busy: a tenth of one, as any system does, or 1 % of a large machine.

    `doctor` asks by the same measure beforehand.
    """
    return max(MOST_OF_ONE, MOST_OF_ALL * processors)


def kept(busy: float, processors: int) -> str:
    """Return `1.2`, or `120`. More threads may want to run than there are processors to keep busy."""
    busy = min(busy, processors)
    return f"{busy:.2g}" if busy < 10 else f"{busy:.0f}"
