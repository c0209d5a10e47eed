"""Capacity for users: the search for it, the confirmation and the binomial model, on invented machines."""

from __future__ import annotations

import math
import random

import pytest

from cotenant.stats.capacity import Requirement, Standing, estimates_of
from cotenant.stats.crowd_search import CONFIRMED, LEAST_ROUNDS, MOST_ROUNDS, Confirming, CrowdSearch, SteadyCrowd

HALF = Requirement("keep", 0.5)


def values(kept: float, users: int, noise: float = 0.0, seed: random.Random | None = None) -> dict[int, float]:
    chance = seed or random.Random(0)
    return {user: math.log(kept) + chance.gauss(0, noise) for user in range(users)}


def searched(carried: int, most: int, step: int = 1, held: int = 1, requirement: Requirement = HALF) -> CrowdSearch:
    """Run the search on a machine that carries exactly `carried` users."""
    search, chance = CrowdSearch(requirement, most, step, held), random.Random(carried)
    while (users := search.next_users()) is not None:
        share = requirement.least * (1.1 if users <= carried else 0.9)
        search.take(users, values(share, users, 0.01, chance))
    return search


@pytest.mark.parametrize(("carried", "most"), [(1, 8), (2, 2), (5, 16), (11, 12), (12, 12), (31, 64)])
def test_a_search_goes_up_by_doubling_and_then_between(carried: int, most: int) -> None:
    search = searched(carried, most)
    assert (search.held, search.failed) == (carried, None if carried == most else carried + 1)
    tried = list(search.rounds)
    doubled = [users for users in (2, 4, 8, 16, 32, 64) if users <= most][: len(tried)]
    beginning = [users for users in doubled if users < 2 * carried] or doubled[:1]
    assert tried[: len(beginning)] == beginning
    assert len(tried) <= 2 * math.log2(most) + 1
    assert all(len(rounds) >= LEAST_ROUNDS for rounds in search.rounds.values())


def test_with_several_slices_users_increase_in_steps() -> None:
    search = searched(12, 40, step=4, held=0)
    assert (search.held, search.failed) == (12, 16)
    assert all(users % 4 == 0 for users in search.rounds)
    none = searched(0, 8, held=0, requirement=Requirement("rate", 100.0))
    assert (none.held, none.failed, list(none.rounds)) == (0, 1, [1])


def test_users_hold_if_the_lower_limit_of_each_one_does() -> None:
    chance = random.Random(3)
    rows = {2: [values(0.55, 2, 0.02, chance) for _ in range(8)]}
    estimate = estimates_of(rows)[2]
    assert estimate.standing(HALF.log) is Standing.HELD
    assert estimate.interval is not None
    assert estimate.interval[0] < estimate.worst < estimate.interval[1]
    assert sum(estimate.interval) / 2 == pytest.approx(estimate.worst)
    assert estimate.standing(math.log(0.55)) is Standing.UNCLEAR
    assert estimate.standing(math.log(0.6)) is Standing.FAILED
    # The mean of all users does not hide one that starves.
    uneven = [{**row, 1: row[1] - 0.5} for row in rows[2]]
    assert estimates_of({2: uneven})[2].standing(HALF.log) is Standing.FAILED
    assert estimates_of({2: rows[2][:1]})[2].standing(HALF.log) is Standing.UNCLEAR
    # Values are inverse for a time, of which less is better, and are shown as the time again.
    assert Requirement("p95", 0.2).shown(Requirement("p95", 0.2).log) == pytest.approx(0.2)


def test_a_round_in_which_somebody_was_not_seen_does_not_count() -> None:
    search = CrowdSearch(HALF, 4, least=1)
    search.take(2, {0: 0.0})
    assert search.rounds == {}


def test_launches_go_by_turns_and_move_a_wrong_guess() -> None:
    for guess in (3, 5, 6, 8):
        confirming, chance, order = Confirming(HALF, guess, 64, least=1), random.Random(guess), []
        while (users := confirming.next_users()) is not None:
            order.append(users)
            share = 0.5 * 5.5 / users
            confirming.take(users, values(share, users, 0.01, chance))
        assert (confirming.users, confirming.settled) == (5, True)
        assert order[:6] == [guess, guess + 1, guess + 1, guess, guess, guess + 1]
        assert {users: order.count(users) for users in (5, 6)} == {5: CONFIRMED, 6: CONFIRMED}


def test_noisy_user_counts_are_launched_more_often() -> None:
    confirming = Confirming(HALF, 2, 64, least=1)
    for _ in range(8):
        users = confirming.next_users()
        shift = (0.05, -0.05, 0.0)[len(confirming.launches.get(users, ())) % 3]
        confirming.take(users, {user: math.log(0.52 if users == 2 else 0.3) + shift for user in range(users)})
    assert not confirming.settled
    assert len(confirming.launches[2]) > len(confirming.launches[3]) == CONFIRMED
    assert 1 <= confirming.missing_launches() < 20


def test_where_memory_holds_no_more_only_they_are_launched() -> None:
    confirming = Confirming(HALF, 4, 4, least=1)
    for _ in range(CONFIRMED):
        assert confirming.next_users() == 4
        confirming.take(4, values(0.8, 4, 0.01))
    assert (confirming.next_users(), confirming.settled, confirming.has_tried_most) == (None, True, True)
    confirming.limit_to(3)
    assert confirming.next_users() == 3


@pytest.mark.parametrize(("kept", "standing"), [(0.502, Standing.HELD), (0.498, Standing.FAILED)])
def test_after_the_most_rounds_the_estimate_decides(kept: float, standing: Standing) -> None:
    search, low = CrowdSearch(HALF, 4, least=1), math.log(kept)
    for number in range(MOST_ROUNDS):
        assert search.held == 1 or number >= MOST_ROUNDS
        search.take(2, dict.fromkeys(range(2), low + (0.3 if number % 2 else -0.3)))
    assert search.estimate(2).standing(HALF.log) is Standing.UNCLEAR
    assert (search.held, search.failed) == ((2, None) if standing is Standing.HELD else (1, 2))


@pytest.mark.parametrize("counted", [None, 2])
def test_a_steady_crowd_counts_all_users_or_the_first_ones(counted: int | None) -> None:
    crowd = SteadyCrowd(3, 2, counted)
    crowd.take(3, {0: 0.0, 1: 0.0})
    assert len(crowd.rounds) == (0 if counted is None else 1)
    while (users := crowd.next_users()) is not None:
        assert users == 3
        crowd.take(3, values(0.5, 3))
    assert [len(row) for row in crowd.rounds] == [counted or 3] * 2
