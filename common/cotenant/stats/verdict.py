"""Verdicts on B over A, from an interval and a margin. Standard library only: the runner asks for them."""

from __future__ import annotations

import enum
import math

LEAST_MARGIN = 0.02


class Verdict(enum.StrEnum):
    """The verdict of an interval against the margin; INVALID is for sides that could not be compared at all."""

    FASTER = "FASTER"
    SLOWER = "SLOWER"
    SAME = "SAME"
    UNCLEAR = "UNCLEAR"
    INVALID = "INVALID"


def verdict_of(low: float, high: float, margin: float) -> Verdict:
    """Return the verdict if the logarithm of B's rate over A's lies between `low` and `high`."""
    border = math.log1p(margin)
    if low > border:
        return Verdict.FASTER
    if high < -border:
        return Verdict.SLOWER
    if -border < low and high < border:
        return Verdict.SAME
    return Verdict.UNCLEAR
