"""The type of a description: apart from its making, so that records can be typed without numpy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Description:
    """Of `n` rates in items per second, and of the seconds they took.

    `interval` is the exact order-statistic 95 % interval of the median, absent below six observations.
    `robust_spread` is 1.4826 MAD / median, `iqr` the distance of the quartiles.
    """

    n: int
    median: float
    interval: tuple[float, float] | None
    robust_spread: float
    iqr: float
    best: float
    p95_s: float
    mean: float
    sd: float
    min: float
    max: float
