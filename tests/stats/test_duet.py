"""Duets on invented machines: how often a verdict is false, and how small a difference it finds."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest

from cotenant.stats.duet import (
    BETWEEN_PROCESSES,
    MOST_S,
    DuetOverLaunches,
    DuetRatio,
    Sides,
    ratio_of,
    ratio_over_launches,
)
from cotenant.stats.kept import BlockSum, block_sums
from cotenant.stats.verdict import Verdict

OBSERVATIONS = 20
"""In each block."""
ROUND_S = 1.5
"""Length of a round when steps take some milliseconds: a minute has 40 rounds."""


def block_of(index: int, items: float, seconds: float) -> BlockSum:
    return BlockSum(index, False, items, seconds, (items / seconds,))


def observed(index: int, rates: np.ndarray) -> list[BlockSum]:
    return block_sums((index, False, 10.0, round(1e10 / rate)) for rate in rates)


def sides_of(blocks: Iterable[BlockSum]) -> tuple[list[BlockSum], list[BlockSum]]:
    """Return the blocks of A and those of B, which runs in the two in the middle of each round."""
    sides: tuple[list[BlockSum], list[BlockSum]] = ([], [])
    for block in blocks:
        sides[block.index % 4 in (1, 2)].append(block)
    return sides


def ratio_in(slices: Sides, rounds: int, round_s: float = MOST_S) -> DuetRatio:
    """With MOST_S as a round's length the search for a settling length, which is slow, has nothing to try."""
    return ratio_of(slices, {index: index // 4 for index in range(4 * rounds)}, round_s)


def simulated(chance: np.random.Generator, slower: float, rounds: int = 40, slices: int = 2) -> DuetRatio:
    """Return the ratio of a duet in which B is `slower` by a share, with every disturbance that was seen on real hosts.

    A neighbour takes up to a third for seconds, and leaves again; clocks drift; bursts double the time of a block now
    and then; blocks differ by 5 %, half of whose variance is common to both slices; the host stops one observation of
    ten for a while; and two processes of one program differ by their places in memory.
    """
    blocks = 4 * rounds
    seconds = np.arange(blocks) * ROUND_S / 4
    swing = 0.3 * (np.sin(2 * math.pi * (seconds / chance.uniform(2, 20) + chance.random())) > 0.3)
    common = swing + 0.1 * seconds / seconds[-1] + np.log(2) * (chance.random(blocks) < 0.02)
    common += chance.normal(0, 0.035, blocks)
    made: list[tuple[list[BlockSum], list[BlockSum]]] = []
    for place in range(slices):
        own = common + chance.normal(0, 0.035, blocks)
        quicker = math.exp(chance.normal(0, BETWEEN_PROCESSES))
        sides: tuple[list[BlockSum], list[BlockSum]] = ([], [])
        for index in range(blocks):
            is_b = (index % 4 in (1, 2)) ^ (place % 2 == 1)
            rate = 1000 * math.exp(-own[index]) * ((1 - slower) * quicker if is_b else 1)
            stops = chance.exponential(0.5, OBSERVATIONS) * (chance.random(OBSERVATIONS) < 0.1)
            sides[is_b].extend(observed(index, rate * np.exp(chance.normal(0, 0.02, OBSERVATIONS) - stops)))
        made.append(sides)
    return ratio_in(made, rounds)


EQUAL = {Verdict.SAME, Verdict.UNCLEAR}
# A loss as large as the margin must not be called a difference.
CASES = [
    (0.1, {Verdict.SLOWER}, 0.99),
    (0.0198, EQUAL, 0.95),
    pytest.param(0.0, EQUAL, 0.95, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("runs", [20, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("slower", "said", "least"), [*CASES, pytest.param(0.05, {Verdict.SLOWER}, 0.5, marks=pytest.mark.slow)]
)
def test_one_launch_has_a_verdict_that_holds(slower: float, said: set[Verdict], least: float, runs: int) -> None:
    chance = np.random.default_rng(1)
    found = [simulated(chance, slower).verdict for _ in range(runs)]
    assert sum(verdict in said for verdict in found) >= math.floor(least * runs)


@pytest.mark.slow
def test_the_interval_holds_the_true_ratio() -> None:
    chance = np.random.default_rng(4)
    intervals = [simulated(chance, 0.05).interval for _ in range(400)]
    held = sum(ends is not None and ends[0] <= 0.95 <= ends[1] for ends in intervals)
    assert 360 <= held <= 394


def duet(ratios: list[float]) -> Sides:
    """Return a slice's blocks: A at 100 items/s in every round, B at `ratios` times that."""
    factors = [factor for ratio in ratios for factor in (1, ratio, ratio, 1)]
    return [sides_of(block_of(index, 20.0 * factor, 0.2) for index, factor in enumerate(factors))]


def found(ratios: list[float], slices: Sides | None = None, round_s: float = ROUND_S) -> DuetRatio:
    return ratio_in(slices or duet(ratios), len(ratios), round_s)


def test_a_verdict_needs_the_whole_interval_of_the_ratio() -> None:
    slower = found([0.9, 0.91, 0.89, 0.9])
    assert slower.value == pytest.approx((0.9 * 0.91 * 0.89 * 0.9) ** 0.25, rel=0.005)
    assert (slower.rounds, slower.verdict, slower.settled_s) == (4, Verdict.SLOWER, None)
    assert found([1.1, 1.11, 1.09, 1.1]).verdict is Verdict.FASTER
    equal = [1.0, 1.001, 0.999, 1.0]
    assert found(equal, 3 * [*duet(equal)]).verdict is Verdict.SAME
    # Of one slice there is a single pair of processes, which differ by more than the margin.
    assert found(equal).verdict is Verdict.UNCLEAR
    assert found([0.9, 0.99, 0.85, 0.95]).verdict is Verdict.UNCLEAR


def test_an_unclear_duet_says_which_length_would_settle_it() -> None:
    ratios = [0.9, 1.04, 0.86, 1.0] * 3
    unclear = found(ratios)
    assert unclear.verdict is Verdict.UNCLEAR
    times = math.ceil(unclear.settled_s / (ROUND_S * len(ratios)))
    assert times > 1
    # About so long: a fifth of sixty rounds is not quite that of twelve.
    assert found(ratios * (times + 1)).verdict is Verdict.SLOWER
    # No launch of up to an hour settles a difference that equals the margin.
    assert found([0.97, 0.99, 0.975, 0.9863], round_s=20.0).settled_s is None


def test_a_round_without_blocks_of_both_counts_nowhere() -> None:
    (a, b) = duet([0.9, 0.9, 0.5, 0.9])[0]
    assert found([0.9] * 4, [(a, [block for block in b if block.index // 4 != 2])]).rounds == 3
    assert ratio_of([(a, [])], dict.fromkeys(range(16), 0), ROUND_S) is None
    assert found([0.9, 0.9]).interval is None


def test_drift_drops_out_and_slices_count_equally() -> None:
    falling = sides_of(block_of(index, 20.0 * (1 - 0.01 * index), 0.2) for index in range(16))
    assert found([1.0] * 4, [falling]).value == pytest.approx(1, abs=1e-9)
    two = [*duet([0.9] * 4), *duet([1.0] * 4)]
    assert found([1.0] * 4, two).value == pytest.approx(math.sqrt(0.9))


@pytest.mark.parametrize(("pause", "said"), [(4.0, {Verdict.SLOWER}), (0.4, {Verdict.SLOWER, Verdict.UNCLEAR})])
def test_pauses_in_one_of_ten_observations_count(pause: float, said: set[Verdict]) -> None:
    """B is slower by 29 %, or by 4 %, in all its items over all its time."""
    chance, times = np.random.default_rng(2), np.ones(OBSERVATIONS)
    times[::10] += pause
    for _ in range(20):
        noise = chance.normal(0, 0.02, (160, OBSERVATIONS))
        rates = [1000 * np.exp(of) / (times if index % 4 in (1, 2) else 1) for index, of in enumerate(noise)]
        ratio = ratio_in([sides_of(observed(index, of)[0] for index, of in enumerate(rates))], 40)
        assert ratio.verdict in said
        assert ratio.interval[0] <= 1 / times.mean() * 1.01


def test_a_pause_that_few_rounds_have_counts_whole() -> None:
    """B writes something for a second in one round of ten: 4 % that a trimmed mean alone would not see."""
    chance = np.random.default_rng(2)
    for _ in range(50):
        logs = chance.normal(0, 0.01, 40) - 0.4 * (np.arange(40) % 10 == chance.integers(10))
        ratio = found(np.exp(logs).tolist())
        assert ratio.verdict is not Verdict.SAME
        assert ratio.interval[0] <= math.exp(logs.mean()) <= ratio.interval[1]


def test_a_few_rounds_of_a_neighbour_do_not_widen_the_interval() -> None:
    chance = np.random.default_rng(3)
    logs = math.log(0.94) + chance.normal(0, 0.02, 40)
    logs[[4, 13]] += 0.4
    logs[[22, 31]] -= 0.4
    assert found(np.exp(logs).tolist()).verdict is Verdict.SLOWER


@pytest.mark.parametrize("runs", [20, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("slower", "said", "least"), [*CASES, pytest.param(0.05, {Verdict.SLOWER}, 0.9, marks=pytest.mark.slow)]
)
def test_eight_short_launches_have_one(slower: float, said: set[Verdict], least: float, runs: int) -> None:
    chance = np.random.default_rng(1)
    launches = [[simulated(chance, slower, rounds=4).estimates for _ in range(8)] for _ in range(runs)]
    verdicts = [ratio_over_launches(of).verdict for of in launches]
    assert sum(verdict in said for verdict in verdicts) >= math.floor(least * runs)


@pytest.mark.parametrize("spread", [0.01, 0.1])
def test_eight_launches_know_how_processes_differ(spread: float) -> None:
    drawn = np.exp(np.random.default_rng(1).normal(0, spread, (1000, 8)))
    verdicts = [ratio_over_launches([(ratio, ratio) for ratio in ratios]).verdict for ratios in drawn.tolist()]
    assert sum(verdict in EQUAL for verdict in verdicts) >= 950


def over(*ratios: float) -> DuetOverLaunches:
    return ratio_over_launches([(ratio, ratio) for ratio in ratios])


def test_two_launches_have_no_interval_but_more_may_settle_it() -> None:
    two, ratios = over(0.9, 0.91), (0.94, 0.95, 0.98)
    assert (two.interval, two.verdict, two.settled) == (None, Verdict.UNCLEAR, None)
    unclear = over(*ratios)
    assert unclear.verdict is Verdict.UNCLEAR
    assert over(*ratios * (unclear.settled // 3 + 1)).verdict is Verdict.SLOWER
    assert over(0.9, 1.1, 1.0).settled is None


def test_over_launches_the_interval_contains_the_mean() -> None:
    """B pauses, which its fast observations do not show: by chance as far as the means tell, or clearly."""
    hidden = ratio_over_launches([(1.0, 0.9), (1.001, 1.03), (0.999, 0.94)])
    assert hidden.verdict is Verdict.UNCLEAR
    assert hidden.value == pytest.approx(1.0, abs=1e-3)
    assert hidden.interval[0] <= (0.9 * 1.03 * 0.94) ** (1 / 3)
    clear = ratio_over_launches([(1.0, 0.9), (1.001, 0.901), (0.999, 0.899)])
    assert (clear.verdict, clear.value) == (Verdict.SLOWER, pytest.approx(0.9, abs=1e-3))


def test_a_half_busy_host_barely_moves_the_robust_ratio() -> None:
    """It takes a third of both sides' rates for two to six blocks, and leaves them alone for as long."""
    chance, robust, mean = np.random.default_rng(5), [], []
    for _ in range(30):
        spans = [chance.integers(2, 7) for _ in range(40)]
        busy = np.repeat(np.arange(40) % 2, spans)[:40]
        noise = np.exp(chance.normal(0, 0.01, (40, OBSERVATIONS)))
        levels = [1000 * (0.95 if index % 4 in (1, 2) else 1) * (1 - busy[index] / 3) for index in range(40)]
        ratio = ratio_in([sides_of(observed(index, levels[index] * noise[index])[0] for index in range(40))], 10)
        robust.append(math.log(ratio.estimates[0] / 0.95))
        mean.append(math.log(ratio.estimates[1] / 0.95))
    assert max(map(abs, robust)) < 0.02
    assert np.std(mean) > 0.03
