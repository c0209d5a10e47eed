"""The search for a batch size on known curves: how far it stays below the best rate, and how many launches it takes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from statistics import fmean

import pytest

from cotenant.questions.sizes import FRESH, Search, Trial

Rate = Callable[[int], float]
STARTS = (1, 8, 128, 512)
LAUNCHES = 18
"""From a batch of one to the largest: doublings, half steps."""


def saturating(half: int) -> Rate:
    return lambda size: 1e4 * size / (size + half)


CURVES: dict[str, tuple[Rate, float]] = {
    "rises to its memory": (saturating(200), 0.05),
    "saturates": (saturating(16), 0.03),
    "is flat": (saturating(0), 0.0),
    "falls off a cache": (lambda size: saturating(8)(size) * (0.85 if size > 256 else 1), 0.06),
    "declines": (lambda size: saturating(8)(size) / (1 + size / 256), 0.03),
}
"""Each with the largest loss allowed to a search when launches differ by 0.3 %: it climbs while a step gains 1 %."""


def searched(own: int, rate: Rate, noise: float = 0.0, seed: int = 0, most: float = math.inf) -> Search:
    chance, search = random.Random(seed), Search(own)
    for size in search.sizes():
        fits = size <= most
        search.take(Trial(size, rate(size) * math.exp(chance.gauss(0, noise)) if fits else None, fits=fits))
    return search


def regret(search: Search, rate: Rate, most: int = 4096) -> float:
    return 1 - rate(search.best) / max(rate(size) for size in range(1, most + 1))


@pytest.mark.parametrize("name", CURVES)
def test_a_search_ends_near_the_best_rate(name: str) -> None:
    rate, allowed = CURVES[name]
    for own in STARTS:
        search = searched(own, rate, 0.003, own)
        assert len(search.trials) <= LAUNCHES + 2 * FRESH
        assert regret(search, rate) <= allowed, (own, search.trials)


def test_sizes_are_doubled_or_halved_and_then_by_half_steps() -> None:
    peak: Rate = lambda size: 1e4 - abs(size - 48)  # noqa: E731
    for own, sizes in ((16, [16, 32, 64, 48]), (128, [128, 256, 64, 32, 96, 48]), (48, [48, 96, 24, 72, 36])):
        flat = searched(own, lambda size: peak(size) ** 9)
        assert [trial.size for trial in flat.trials][: len(sizes)] == sizes


def test_only_fresh_launches_by_turns_measure_the_gain() -> None:
    search = Search(8)
    for size in search.sizes():
        search.take(Trial(size, saturating(16)(size)))
        assert search.best == 8 or search.gain is not None, "what was not launched again is not taken"
    assert [trial.size for trial in search.trials[-2 * FRESH :]] == [8, search.leader] * FRESH
    assert search.best == search.leader != 8
    assert search.gain is not None
    assert search.gain.ratio == pytest.approx(saturating(16)(search.leader) / saturating(16)(8))


@pytest.mark.parametrize("draws", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_on_a_flat_curve_no_gain_is_reported(draws: int) -> None:
    """The best of several noisy launches seems faster; of fresh ones one gain in forty is above 1 by chance."""
    for noise in (0.03, 0.1):
        searches = [searched(64, lambda size: 1e4, noise, seed) for seed in range(draws)]
        assert sum(search.best != 64 for search in searches) <= max(1, 0.05 * draws)
        seen = [search.gain.ratio for search in searches if search.gain is not None]
        assert fmean(seen) == pytest.approx(1, abs=0.08)


@pytest.mark.parametrize("most", [1, 5, 100, 700])
def test_what_does_not_fit_is_not_taken(most: int) -> None:
    for own in STARTS:
        search = searched(own, saturating(64), 0.003, own, most)
        assert search.best <= most
        assert regret(search, saturating(64), most) <= 0.25, (own, search.best)
    lost = searched(64, saturating(64), most=0)
    assert [trial.size for trial in lost.trials] == [64, 32, 16, 8, 4, 2, 1]
    assert lost.rate(lost.best) is None


def test_a_size_that_fits_only_sometimes_is_not_taken() -> None:
    search, fits = Search(8), True
    for size in search.sizes():
        fits = fits and not (search.gain is None and len(search.trials) and size == search.leader != 8)
        search.take(Trial(size, saturating(16)(size) if fits or size == 8 else None, fits=fits or size == 8))
    assert search.best == 8
    assert search.gain is None


def test_an_invalid_launch_is_made_again() -> None:
    search, whole = Search(8), searched(8, saturating(16))
    for size in search.sizes():
        valid = len(search.trials) != len(whole.trials) - 1
        search.take(Trial(size, saturating(16)(size) if valid else None))
    assert len(search.trials) == len(whole.trials) + 2
    assert search.best == whole.best != 8


def test_equal_results_lead_to_equal_sizes() -> None:
    """So an interrupted search can continue with the results that it had."""
    whole, again = searched(128, saturating(16), 0.01, seed=3), Search(128)
    for size, trial in zip(again.sizes(), whole.trials, strict=True):
        assert size == trial.size
        again.take(trial)
    assert again.best == whole.best
