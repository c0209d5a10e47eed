"""STP, ANTT, fairness and tax of a mix: laws that hold for all rates, and numbers by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.interference import MixMeasures, Rates, energy_over_alone, mix_measures, ratio
from cotenant.stats.launches import across_launches

RATES = st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(1e-3, 1e6)), min_size=1, max_size=8)


def measured(together: Mapping[str, Rates], alone: Mapping[str, Rates], slices: float) -> MixMeasures | None:
    shares = {who: ratio(rates, alone.get(who, {})) for who, rates in together.items()}
    progress = {who: share for who, share in shares.items() if share is not None}
    return mix_measures(progress, together, alone, slices)


def of_one(progress: Sequence[float], alone: Sequence[float], slices: float = 1.0) -> MixMeasures:
    rates = {str(at): {0: part * rate} for at, (part, rate) in enumerate(zip(progress, alone, strict=True))}
    return measured(rates, {str(at): {0: rate} for at, rate in enumerate(alone)}, slices)


@given(RATES, st.floats(1.0, 8.0))
def test_the_measures_are_those_of_their_definitions_whatever_the_units(
    tenants: list[tuple[float, float]], slices: float
) -> None:
    """Rates of different jobs differ by orders of magnitude, and no measure depends on that."""
    progress, alone = zip(*tenants, strict=True)
    found, unit = of_one(progress, alone, slices), of_one(progress, [1.0] * len(alone), slices)
    assert found.stp.value == pytest.approx(sum(progress))
    assert found.antt.value == pytest.approx(sum(1 / part for part in progress) / len(progress))
    assert found.fairness.value == pytest.approx(min(progress) / max(progress))
    assert found.tax.value == pytest.approx(1 - sum(progress) / slices)
    assert found.worst_slowdown.value == pytest.approx(1 / min(progress))
    assert progress[int(found.worst)] == pytest.approx(min(progress))
    assert (unit.stp.value, unit.antt.value) == pytest.approx((found.stp.value, found.antt.value))
    # The harmonic mean of the shares is no greater than the arithmetic one.
    assert found.antt.value >= len(progress) / found.stp.value - 1e-9
    assert 1 / found.worst_slowdown.value <= found.stp.value / len(progress) + 1e-9
    assert found.stp.interval is None


def test_what_is_known_by_hand() -> None:
    turns, free = of_one([0.25] * 4, [1, 10, 100, 1000]), of_one([1.0] * 4, [1, 10, 100, 1000])
    assert (turns.stp.value, turns.antt.value, turns.fairness.value, turns.tax.value) == pytest.approx((1, 4, 1, 0))
    assert (free.stp.value, free.antt.value, free.tax.value) == pytest.approx((4, 1, -3))
    starved = of_one([0.9, 0.9, 0.1], [5, 5, 5])
    assert (starved.worst, starved.worst_slowdown.value) == ("2", pytest.approx(10))
    assert starved.fairness.value == pytest.approx(1 / 9)


def test_only_uids_in_which_every_tenant_has_both_rates_count() -> None:
    together = {"0": {0: 5.0, 1: 5.0, 2: 7.0}, "1": {0: 8.0, 2: 8.0}}
    alone = {"0": {0: 10.0, 1: 10.0, 2: 10.0}, "1": {0: 10.0, 1: 10.0, 3: 10.0}}
    found = measured(together, alone, 2)
    assert (found.stp.n, found.stp.value) == (1, pytest.approx(1.3))
    assert measured(together, {"0": alone["0"]}, 2) is None
    assert measured({}, {}, 2) is None
    with pytest.raises(ValueError, match="rates"):
        measured({"0": {0: 0.0}}, {"0": {0: 1.0}}, 1)


def test_energy_is_over_that_of_the_same_items_one_after_another() -> None:
    together = {"0": {0: 50.0, 1: 40.0}, "1": {0: 5.0, 2: 5.0}}
    alone_j = {"0": {0: 2.0}, "1": {0: 20.0}}
    measure = energy_over_alone({0: 300.0, 1: 300.0}, together, alone_j)
    assert (measure.value, measure.interval, measure.n) == (pytest.approx(300 / (50 * 2 + 5 * 20)), None, 1)
    assert energy_over_alone({1: 300.0}, together, alone_j) is None
    assert energy_over_alone({0: 300.0}, together, {"0": {0: 2.0}}) is None


def test_the_machines_state_cancels_and_intervals_are_those_of_each_launchs_measure() -> None:
    """The machine's state differs by 5 % from uid to uid, and changes the rates together and alone by one factor."""
    draw, states = np.random.default_rng(1), np.exp(np.random.default_rng(2).normal(0, 0.05, 5))
    parts = np.exp(draw.normal(0, 0.01, (2, 5))) * np.array([[0.8], [0.5]])
    alone = {str(at): dict(enumerate((rate * states).tolist())) for at, rate in enumerate((120.0, 3.0))}
    beside = {who: {uid: rate * parts[int(who), uid] for uid, rate in of.items()} for who, of in alone.items()}
    found = measured(beside, alone, 2)
    for measure, of_uids in ((found.stp, parts.sum(axis=0)), (found.antt, (1 / parts).mean(axis=0))):
        expected = across_launches(of_uids.tolist())
        assert (measure.value, measure.interval) == (pytest.approx(expected.rate), pytest.approx(expected.interval))
    assert found.tax.interval == pytest.approx(tuple(1 - end / 2 for end in found.stp.interval[::-1]))
