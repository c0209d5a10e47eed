"""Was a limit kept? A tenant's part of its promise, whether there was more, and when that settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from cotenant.stats.kept import Kept

BAND = 0.05
"""Within so much of a limit, or of a final rate, a tenant is at it."""
BUSY_PERCENT = 95.0
"""A device that is loaded so much of the time has no more to give."""
WINDOW = 3
"""Observations in the running median by which a rate is said to have settled: one alone may be anybody's fault."""

Verdict = Literal["kept", "exceeded", "missed", "not reached", "unclear"]


@dataclass(frozen=True, slots=True)
class LimitAccuracy:
    """`accuracy` is a tenant's part over its entitlement: 1 where the limit was kept to the letter.

    `kept`: it is 1 within BAND, its whole interval too. `exceeded`: it got more, as a cap is none or nobody else
    wanted it. `missed`: it got less although the device had no more to give. `not reached`: it got less, and the device
    idled: its load never came up to the limit, as that of a job that waits for each step, so that nothing is known of
    it. `unclear`: its interval lies partly within BAND, or it has none, so that more launches have to tell.
    """

    accuracy: Kept
    verdict: Verdict


def limit_accuracy(progress: Kept, entitlement: float, load_percent: float | None = None) -> LimitAccuracy:
    """Return the accuracy of a limit from the part of the whole that a tenant got; `load_percent` is its device's.

    Where nobody knows the load, less than the limit is `not reached`: that it was withheld would have to be shown.
    Raises ValueError for an entitlement to nothing.
    """
    if not 0 < entitlement <= 1:
        raise ValueError(f"an entitlement to {entitlement} of a device")
    accuracy = progress.times(1 / entitlement)
    return LimitAccuracy(accuracy, _verdict(accuracy, load_percent))


def _verdict(accuracy: Kept, load_percent: float | None) -> Verdict:
    if accuracy.interval is None:
        return "unclear"
    low, high = accuracy.interval
    if low >= 1 - BAND and high <= 1 + BAND:
        return "kept"
    if low <= 1 + BAND and high >= 1 - BAND:
        return "unclear"
    if low > 1:
        return "exceeded"
    return "missed" if load_percent is not None and load_percent >= BUSY_PERCENT else "not reached"


def settled_s(ends_s: Sequence[float], rates: Sequence[float]) -> float | None:
    """Return when a rate had settled: from then on its running median stays within BAND of that of its last half.

    `ends_s` are the ends of observations in seconds after the first began, `rates` theirs. 0 where it never was
    outside; None of too few observations, and where it was outside at the end.
    """
    if len(rates) < 2 * WINDOW:
        return None
    final = median(rates[len(rates) // 2 :])
    running = [median(rates[at : at + WINDOW]) for at in range(len(rates) - WINDOW + 1)]
    outside = [at for at, rate in enumerate(running) if abs(rate - final) > BAND * final]
    if not outside:
        return 0.0
    # A window is outside where two of its three are: the last of it may be in again.
    return None if outside[-1] == len(running) - 1 else ends_s[outside[-1] + WINDOW // 2]
