"""Which observations stand far off, and of which of them the input is the cause."""

from __future__ import annotations

import pytest

from cotenant.stats.steadiness import Spikes, spikes

STEADY = [1.0 + index % 5 / 100 for index in range(20)]
WAITS = [0.1] * 20


def with_one(value: float, wait: float) -> Spikes:
    return spikes([*STEADY, value], [*WAITS, wait])


@pytest.mark.parametrize(
    ("value", "wait", "found"),
    [
        (3.0, 0.1, Spikes((), (20,))),
        (3.0, 2.0, Spikes((20,), ())),
        (3.0, 1.2, Spikes((20,), ())),
        (3.0, 1.0, Spikes((), (20,))),
        (0.2, 0.0, Spikes((), (20,))),
        (1.1, 0.2, Spikes((), ())),
    ],
    ids=["work", "input", "mostly input", "mostly work", "too fast", "near"],
)
def test_a_spike_belongs_to_what_took_its_time(value: float, wait: float, found: Spikes) -> None:
    assert with_one(value, wait) == found


def test_a_thousandth_is_no_spike_however_steady_the_rest() -> None:
    steady = [1.0 + index % 5 / 1e7 for index in range(20)]
    assert spikes([*steady, 1.009], [0.0] * 21) == Spikes((), ())
    assert spikes([*steady, 1.011], [0.0] * 21) == Spikes((), (20,))


def test_nothing_has_no_spikes() -> None:
    assert spikes([], []) == Spikes((), ())
