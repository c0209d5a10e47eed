"""Verdicts on limits of a device, by known shares, and the time at which a rate settles."""

from __future__ import annotations

import numpy as np
import pytest

from cotenant.stats.kept import Kept
from cotenant.stats.limits import limit_accuracy, settled_s


def test_a_limit_that_no_load_came_up_to_is_named_so() -> None:
    little, much = Kept(0.1, (0.09, 0.11), 5), Kept(0.5, (0.45, 0.55), 5)
    verdicts = [limit_accuracy(little, 0.25, load).verdict for load in (30.0, 95.0, None)]
    assert verdicts == ["not reached", "missed", "not reached"]
    assert limit_accuracy(much, 0.25, 30.0).verdict == "exceeded"
    for value, ends in [(0.2, (0.1, 0.4)), (0.25, (0.2, 0.3)), (0.27, (0.26, 0.28)), (0.23, (0.22, 0.24))]:
        assert limit_accuracy(Kept(value, ends, 3), 0.25, 99.0).verdict == "unclear", "what holds 1 shows nothing kept"
    assert limit_accuracy(Kept(0.25, (0.245, 0.255), 3), 0.25, 99.0).verdict == "kept"
    alone = limit_accuracy(Kept(0.24, None, 1), 0.25)
    assert (alone.accuracy.value, alone.accuracy.interval, alone.verdict) == (pytest.approx(0.96), None, "unclear")
    for entitlement in (0.0, 1.5):
        with pytest.raises(ValueError, match="an entitlement"):
            limit_accuracy(little, entitlement)


def test_a_rate_has_settled_once_it_stays_where_it_ends() -> None:
    ends_s = [float(second) for second in range(1, 21)]
    steady, slow = [10.0] * 20, [5.0] * 6 + [10.0] * 14
    assert settled_s(ends_s, steady) == 0.0
    assert settled_s(ends_s, slow) == 6.0
    # One stray observation does not unsettle a rate; a rate that is off until the end has not settled.
    assert settled_s(ends_s, [*steady[:12], 2.0, *steady[13:]]) == 0.0
    assert settled_s(ends_s, [*steady[:17], 5.0, 5.0, 5.0]) is None
    assert settled_s(ends_s[:5], steady[:5]) is None
    rising = 100 * (1 - np.exp(-np.arange(100) / 10))
    assert settled_s([float(second) for second in range(1, 101)], rising.tolist()) == pytest.approx(30, abs=2)
