"""A against B: a verdict from an interval and a margin, and the number of launches an unclear one would need."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cotenant.stats.kept import ends_around, repeats_needed
from cotenant.stats.launches import COMPARISON_LAUNCHES, logarithms, standard_error
from cotenant.stats.quantiles import t_975
from cotenant.stats.verdict import LEAST_MARGIN, Verdict, verdict_of

ALPHA = 0.05
MOST_LAUNCHES = 1000


@dataclass(frozen=True, slots=True)
class Comparison:
    """B over A: the ratio of rates, its 95 % Welch interval, and the verdict at a margin.

    `p_slower` is the chance of such a ratio if B is not slower than the margin allows, `p_beyond` (two-sided) if it is
    neither slower nor faster than that: a claim about this job alone needs a p below 0.05. `p_rank` is the p of Mann
    and Whitney's exact test of no difference, None if so few launches could not reach 0.05 or two rates are equal.
    `launches_needed` on each side would settle an UNCLEAR verdict at this spread; None if it is settled, or a thousand
    would not do.
    """

    ratio: float
    interval: tuple[float, float] | None
    verdict: Verdict
    margin: float
    n: tuple[int, int]
    p_slower: float | None
    p_beyond: float | None
    p_rank: float | None
    launches_needed: int | None


def margin_of(noise: float | None) -> float:
    """Return the margin: 2 %, or twice the noise of an A/A run (`pooled_noise`) if that is more."""
    return LEAST_MARGIN if noise is None else max(LEAST_MARGIN, 2 * noise)


def pooled_noise(sides: Iterable[Sequence[float]]) -> float | None:
    """Return the standard deviation of launches' logarithms around the mean of their side, over all sides together.

    Each of `sides` is the rates of equal launches: of one job in A, or in B. None if no side has two.
    """
    logs = [logarithms(rates) for rates in sides if len(rates) > 1]
    freedom = sum(len(side) - 1 for side in logs)
    return math.sqrt(sum(float(side.var(ddof=1)) * (len(side) - 1) for side in logs) / freedom) if freedom else None


def compare(a: Sequence[float], b: Sequence[float], margin: float = LEAST_MARGIN) -> Comparison:
    """Compare the launches' rates of A and B, in items per second. Raises ValueError if one has none.

    Fewer than five launches on a side are UNCLEAR in any case. Welch's interval: Welch (1947).
    """
    log_a, log_b = logarithms(a), logarithms(b)
    logs = log_a.tolist(), log_b.tolist()
    n, difference = (len(log_a), len(log_b)), float(log_b.mean() - log_a.mean())
    border = math.log1p(margin)
    ratio = math.exp(difference)
    if min(n) < 2:
        return Comparison(ratio, None, Verdict.UNCLEAR, margin, n, None, None, None, COMPARISON_LAUNCHES)
    error, freedom = standard_error(*logs)
    half = t_975(freedom) * error
    verdict, needed = Verdict.UNCLEAR, None
    if min(n) >= COMPARISON_LAUNCHES:
        verdict = verdict_of(difference - half, difference + half, margin)
    if verdict is Verdict.UNCLEAR:
        spread = math.sqrt(log_a.var(ddof=1) + log_b.var(ddof=1))
        room, least = abs(border - abs(difference)), max(COMPARISON_LAUNCHES, min(n) + 1)
        needed = repeats_needed(spread, room, least, MOST_LAUNCHES, sides=2)
    return Comparison(
        ratio=ratio,
        interval=ends_around(difference, half),
        verdict=verdict,
        margin=margin,
        n=n,
        p_slower=_p_slower(difference, error, freedom, border),
        p_beyond=min(1.0, 2 * _p_slower(-abs(difference), error, freedom, border)),
        p_rank=_p_rank(*logs),
        launches_needed=needed,
    )


def _p_slower(difference: float, error: float, freedom: float, border: float) -> float:
    if not error:
        return 0.0 if difference < -border else 1.0
    from scipy import special  # takes a fifth of a second to import

    return float(special.stdtr(freedom, (difference + border) / error))


def _p_rank(a: Sequence[float], b: Sequence[float]) -> float | None:
    if 2 / math.comb(len(a) + len(b), len(a)) > ALPHA or len({*a, *b}) < len(a) + len(b):
        return None
    from scipy.stats import mannwhitneyu  # takes a second to import, and few comparisons need it

    return float(mannwhitneyu(a, b, method="exact").pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p values in the given order (Holm, 1979). Raises ValueError for one outside [0, 1]."""
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError(f"p values {list(p_values)}")
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, most = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        most = max(most, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = most
    return adjusted
