"""Numbers for people: four significant digits, a letter for thousands and more."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

ABSENT = "-"
TOO_SMALL = "too few runs"
ONCE = "measured once"
SHOWN_TENANTS = 4
_SCALES = ((999.95e9, 1e12, "T"), (999.95e6, 1e9, "G"), (999.95e3, 1e6, "M"), (9999.5, 1e3, "k"), (0.0, 1.0, ""))


def rate(value: float) -> str:
    """Return `1.694M`, or a dash for a value that is no positive number, never a zero."""
    return _scaled(value)


def rates(values: Sequence[float], between: str) -> str:
    """Return the rates of a launch's tenants; for many only their number, the slowest and the fastest."""
    if len(values) > SHOWN_TENANTS:
        return f"{len(values)} users: {interval(min(values), max(values))}"
    return between.join(map(rate, values)) or ABSENT


def interval(low: float, high: float) -> str:
    """Return `1.660-1.714M`: both ends at the scale of the upper one."""
    return _scaled(low, high)


def at_one_scale(values: Sequence[float]) -> tuple[list[str], str]:
    """Return values at the scale of the greatest, and the letter of that scale: `18.20` and `17.80`, `k`.

    A value that is no positive number is a dash.
    """
    greatest = max(values, default=0.0)
    scale, letter = next(((scale, letter) for least, scale, letter in _SCALES if greatest >= least), (1.0, ""))
    return [f"{value / scale:#.4g}".rstrip(".") if _is_shown(value) else ABSENT for value in values], letter


def _is_shown(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _scaled(*values: float) -> str:
    """Return values at one scale; a dash if one of them is no positive number."""
    if not all(map(_is_shown, values)):
        return ABSENT
    texts, letter = at_one_scale(values)
    return "-".join(texts) + letter


def span(ends: tuple[float, float] | None, show: Callable[[float, float], str] = interval, once: bool = False) -> str:
    """Return an interval; without one, say that there is one launch if it was measured `once`, else too few."""
    return show(*ends) if ends is not None else ONCE if once else TOO_SMALL


def extent(values: Sequence[float], show: Callable[[float], str] = "{:.0f}".format) -> str:
    """Return the least and the greatest of values: `10 to 12`, or `12` if the two look alike."""
    return " to ".join(dict.fromkeys(map(show, (min(values), max(values)))))


def ratio(value: float) -> str:
    """Return a ratio with three decimals, or for large and small ones with three digits in all."""
    return f"{value:.3f}" if 0.0995 <= value < 9.9995 else f"{value:.3g}"


def ratio_interval(low: float, high: float) -> str:
    """Return `0.889-0.913`."""
    return f"{ratio(low)}-{ratio(high)}"


def plain(value: float | None) -> str:
    """Return six significant digits, or a dash."""
    return ABSENT if value is None else f"{value:,.6g}"


def borne(value: float, relative_error: float | None) -> str:
    """Return a mean with the digits that its standard error leaves certain, and one more: `7,355` for 0.9 %.

    If the error is unknown, as for a single measurement, the mean has three digits.
    """
    if not value:
        return "0"
    digits = 3 if not relative_error else 1 - math.floor(math.log10(relative_error))
    decimals = max(2, min(digits, 6)) - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


def percent(share: float) -> str:
    """Return `1.2 %`."""
    return f"{100 * share:.1f} %" if math.isfinite(share) else ABSENT


def at_most(share: float) -> str:
    """Return three digits, rounded down: a value below a limit must not read as the limit."""
    return f"{math.floor(1000 * share) / 1000:.3f}" if math.isfinite(share) else ABSENT


def together_percent(overlap: float) -> str:
    """Return `100 %`, or `99.9 %`, rounded down: a value below 100 % must not read as 100 %."""
    return "100 %" if overlap == 1 else f"{math.floor(1000 * overlap) / 10:.1f} %"
