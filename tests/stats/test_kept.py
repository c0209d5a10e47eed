"""What is kept by blocks: of invented blocks exactly, and of a simulated machine with known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from cotenant.stats.kept import BlockSum, Kept, joint, kept, over_rounds, repeats_needed, t_975, warmed_up

LEAVE_OUT_S, MEASURED_S = 0.15, 0.2


def blocks(*rates: float) -> list[BlockSum]:
    """Blocks of these rates by turns: of all, alone, of all ..."""
    return [BlockSum(index, index % 2 == 1, rate * 0.2, 0.2) for index, rate in enumerate(rates)]


def test_a_turn_alone_is_compared_with_the_blocks_beside_it() -> None:
    made = kept(blocks(90, 100, 90, 200, 180))
    assert made.value == pytest.approx(math.sqrt(0.9 * math.sqrt(90 * 180) / 200))
    assert (made.interval, made.n) == (None, 2)
    # A drift that all blocks have drops out.
    drifting = kept([BlockSum(at, at % 2 == 1, (100 if at % 2 else 90) * 0.99**at, 1.0) for at in range(21)])
    assert drifting.value == pytest.approx(0.9)


def test_what_has_no_block_beside_it_is_compared_with_nothing() -> None:
    assert kept([]) is None
    assert kept(blocks(90)) is None
    assert kept([BlockSum(1, True, 20, 0.2), BlockSum(4, False, 20, 0.2)]) is None
    # The block in between was void: those further away are no neighbours.
    assert kept([BlockSum(0, False, 10, 0.2), BlockSum(1, True, 20, 0.2)]) == Kept(pytest.approx(0.5), None, 1)


def test_a_correlation_widens_the_interval_only_where_rounds_are_many() -> None:
    def width(rounds: int) -> float:
        rates = [rate for at in range(rounds) for rate in (90, 100 * math.exp(0.05 * (-1) ** (at // 4)))]
        made = kept(blocks(*rates, 90))
        return math.log(made.interval[1] / made.interval[0]) * math.sqrt(rounds)

    assert width(16) > 1.4 * width(14)


def test_the_t_of_the_interval_is_what_scipy_says() -> None:
    for freedom in (*range(1, 40), 115, 500):
        assert t_975(freedom) == pytest.approx(special.stdtrit(freedom, 0.975), rel=1e-9)


@pytest.mark.parametrize("sides", [1, 2])
def test_repeats_are_the_first_that_bring_the_interval_below_the_room(sides: int) -> None:
    def one_by_one(spread: float, room: float) -> int | None:
        halves = ((n, special.stdtrit(sides * (n - 1), 0.975) * spread / math.sqrt(n)) for n in range(3, 301))
        return next((n for n, half in halves if half < room), None)

    rooms = np.geomspace(0.01, 30, 60).tolist()
    found = [repeats_needed(0.1, room, 3, 300, sides) for room in rooms]
    assert found == [one_by_one(0.1, room) for room in rooms]
    assert (found[0], found[-1]) == (None, 3)
    assert repeats_needed(0.1, 0.0, 3, 300) is None


def test_the_interval_of_few_rounds_is_students() -> None:
    rounds = [0.1, 0.3, 0.25, 0.2, 0.4]
    center, half = over_rounds(rounds)
    assert half is not None
    assert (center - half, center + half) == pytest.approx(
        stats.t.interval(0.95, 4, np.mean(rounds), stats.sem(rounds))
    )
    assert over_rounds(rounds[:2]) == (pytest.approx(0.2), None)


def test_a_share_is_turned_over_and_multiplied_with_its_interval() -> None:
    share = Kept(0.8, (0.5, 1.25), 9)
    assert share.inverse() == Kept(1.25, (0.8, 2.0), 9)
    assert share.times(2) == Kept(1.6, (1.0, 2.5), 9)
    once = Kept(0.8, None, 1, "launches")
    assert (once.inverse(), once.times(0.5)) == (Kept(1.25, None, 1, "launches"), Kept(0.4, None, 1, "launches"))


def test_a_share_is_unsure_where_its_interval_holds_all_or_there_is_none() -> None:
    made = [Kept(0.8, None, 1), Kept(0.8, (0.5, 1.25), 9), Kept(0.8, (0.7, 0.9), 9), Kept(1.2, (1.1, 1.3), 9)]
    assert [share.is_unsure for share in made] == [True, True, False, False]
    assert [Kept(1, None, 1, over).within for over in ("rounds", "observations", "launches", "jobs")] == [
        *[True, True, False, False]
    ]


def test_tenants_of_the_same_launches_have_a_mean_as_unsure_as_each_of_them() -> None:
    parts = [Kept(0.4, (0.2, 0.8), 9), Kept(0.9, (0.8, 1.8), 7)]
    assert joint(parts) == Kept(pytest.approx(0.6), (pytest.approx(0.4), pytest.approx(1.2)), 7)
    assert joint([*parts, Kept(0.6, None, 1)]) == Kept(pytest.approx(0.6), None, 1)
    assert joint([]) is None


def test_a_round_is_warm_up_while_it_is_slower_than_all_behind_it() -> None:
    rounds: dict[int, list[float]] = {0: [9, 9, 1], 1: [5], 2: [3], 3: [4], 4: [3], 5: [3], 6: [3], 7: [3]}
    assert warmed_up(rounds) == 2
    assert warmed_up({**rounds, 7: [6, 6, 1]}) == 1, "the second was not the slowest"
    assert warmed_up({number: [float(8 - number)] for number in range(8)}) == 2, "a quarter of them at the most"
    assert warmed_up({3: [2.0], 5: [1.0]}) == 3, "two rounds have none to lose"
    assert warmed_up({}) == 0


def launch(
    chance: np.random.Generator,
    rounds: int,
    true: float,
    correlation: float,
    step_s: float,
    disturbed: str,
    cold: float = 0.0,
    by_times: bool = True,
) -> Kept | None:
    """Two tenants by turns on a machine whose speed wanders by 5 % between blocks, and drifts, bursts or switches.

    Beside the other a step takes `cold` longer in the first round; where it is not told `by_times` that counts.
    """
    times: dict[int, list[float]] = {}
    awake = [turn for _ in range(rounds) for alone in chance.permutation(2) for turn in (None, alone)] + [None]
    noise, passed_s, made = 0.0, 0.0, []
    for index, turn in enumerate(awake):
        noise = correlation * noise + math.sqrt(1 - correlation**2) * chance.normal() * 0.05
        left_out_s = LEAVE_OUT_S + step_s
        length_s = left_out_s + max(MEASURED_S, 10 * step_s)
        speed = math.exp(noise) * (1.0 if turn == 0 else true)
        speed *= math.exp(-0.01 * passed_s) if disturbed == "drift" else 1.0
        speed *= 0.7 if disturbed == "bursts" and chance.random() < 0.1 else 1.0
        speed *= 0.93 if disturbed == "clocks" and chance.random() < 0.5 else 1.0
        number = min(index // 4, rounds - 1)
        speed /= 1 + cold if number == 0 and turn is None else 1
        if turn != 1:
            steps = max(1, round(0.02 / step_s))
            took_s = steps * step_s / speed * np.exp(chance.normal(0, 0.01, 400))
            ends_s = chance.random() * took_s[0] + np.cumsum(took_s)
            inside = (ends_s - took_s >= left_out_s) & (ends_s <= length_s)
            if inside.any():
                made.append(BlockSum(index, turn == 0, steps * int(inside.sum()), float(took_s[inside].sum())))
            if turn is None:
                times.setdefault(number, []).extend(took_s[inside].tolist())
        passed_s += length_s
    first = warmed_up(times) if by_times else 0
    return kept([block for block in made if min(block.index // 4, rounds - 1) >= first])


def check(
    launches: int,
    rounds: int,
    correlation: float,
    step_s: float,
    disturbed: str,
    cold: float = 0.0,
    by_times: bool = True,
) -> tuple[float, float]:
    """Return the interval's coverage and the bias of the value, of so many launches that keep 0.9."""
    chance = np.random.default_rng(rounds)
    made = [launch(chance, rounds, 0.9, correlation, step_s, disturbed, cold, by_times) for _ in range(launches)]
    known = [(one.value, one.interval) for one in made if one is not None and one.interval is not None]
    assert len(known) == launches
    covered = sum(low <= 0.9 <= high for _, (low, high) in known) / launches
    return covered, float(np.mean([math.log(value / 0.9) for value, _ in known]))


def test_the_interval_covers_what_it_says_on_a_simulated_machine() -> None:
    covered, bias = check(200, 12, 0.5, 0.01, "drift")
    assert 0.90 <= covered <= 0.985  # of 200: two standard errors are 3 %
    assert abs(bias) < 0.005


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [9, 13, 21])
@pytest.mark.parametrize("correlation", [0.0, 0.7])
@pytest.mark.parametrize("cold", [0.0, 0.03, 0.1, 0.5])
def test_a_warm_up_that_ends_by_its_times_biases_nothing(rounds: int, correlation: float, cold: float) -> None:
    """Where the first round always counts, half as slow a one is 4 % of nine rounds."""
    covered, bias = check(1000, rounds, correlation, 0.01, "", cold)
    _, always = check(1000, rounds, correlation, 0.01, "", cold, by_times=False)
    print(
        f"rounds {rounds} correlation {correlation} cold {cold}: covers {covered:.3f}, bias {bias:+.4f} ({always:+.4f})"
    )
    assert 0.89 <= covered <= 0.98
    assert abs(bias) < 0.005
    assert abs(bias) <= abs(always) + 0.001


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [8, 12, 20])
@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.7])
@pytest.mark.parametrize(("step_s", "disturbed"), [(0.001, "drift"), (0.04, "bursts"), (0.01, "clocks"), (0.04, "")])
def test_the_interval_covers_what_it_says(rounds: int, correlation: float, step_s: float, disturbed: str) -> None:
    covered, bias = check(1000, rounds, correlation, step_s, disturbed)
    assert 0.89 <= covered <= 0.98  # 90 to 97 %, and the error of a thousand launches
    assert abs(bias) < 0.005
