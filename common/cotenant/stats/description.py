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
    """Kept observations."""
    median: float
    """Median rate."""
    interval: tuple[float, float] | None
    """Exact 95 % interval of the median; null below six observations."""
    robust_spread: float
    """1.4826 MAD / median."""
    iqr: float
    """Distance of the quartiles."""
    best: float
    """The highest rate."""
    p95_s: float
    """95 % quantile of the time of an observation."""
    mean: float
    """Mean rate."""
    sd: float
    """Standard deviation of the rates (the population's)."""
    min: float
    """The lowest rate."""
    max: float
    """The highest rate."""
