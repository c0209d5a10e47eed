from __future__ import annotations

import math
import random

import pytest
from scipy import stats

from cotenant.stats.quantiles import binomial_quantile, quantile, t_975, t_below


def test_a_quantile_is_an_order_statistic() -> None:
    values = list(range(1, 101))
    random.Random(1).shuffle(values)
    assert [quantile(values, q).value for q in (0.5, 0.95, 0.99, 1 / 1000)] == [50, 95, 99, 1]
    assert quantile([7.0], 0.99).value == 7.0
    with pytest.raises(ValueError, match="of no values"):
        quantile([], 0.5)


@pytest.mark.parametrize(("q", "least"), [(0.5, 6), (0.95, 72), (0.99, 368)])
def test_few_values_have_no_interval(q: float, least: int) -> None:
    """The largest of n values exceeds the quantile with chance 1 - q^n, which has to be 97.5 % at least."""
    assert least == max(math.ceil(math.log(0.025) / math.log(q)), 6 if q == 0.5 else 0)
    # Low and high values alternate, so that values in a row are not correlated and all of them count.
    values = [value for pair in zip(range(500), range(500, 1000), strict=True) for value in pair]
    assert quantile(values[: least - 1], q).interval is None
    assert quantile(values[:least], q).interval is not None


def test_the_ends_are_ranks_of_the_binomial_distribution() -> None:
    """Of 100 independent values the ranks around the median are 40 and 61 (David and Nagaraja, Order Statistics, 7.1),
    since P(binomial(100, 1/2) < 40) is 1.8 % and P(binomial(100, 1/2) < 41) is 2.8 %."""
    alternating = [value for pair in zip(range(1, 51), range(51, 101), strict=True) for value in pair]
    assert quantile(alternating, 0.5).interval == (40, 61)
    for n in (1, 2, 39, 100, 12345):
        for q in (0.05, 0.5, 0.95, 0.999):
            for probability in (0.025, 0.975):
                assert binomial_quantile(probability, n, q) == stats.binom.ppf(probability, n, q), (n, q)


@pytest.mark.parametrize(("freedom", "t"), [(1, 12.706), (4, 2.776), (30, 2.042), (1e9, 1.960)])
def test_a_fortieth_lies_above_the_t_of_an_interval(freedom: float, t: float) -> None:
    """As in every table of Student's distribution."""
    assert t_975(freedom) == pytest.approx(t, abs=5e-4)
    assert t_below(0.025, freedom) == pytest.approx(-t, abs=5e-4)
