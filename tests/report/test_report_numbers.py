"""Numbers in a table: four digits, one scale for an interval, never a zero for a missing number."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.report.numbers import at_most, borne, interval, percent, rate, ratio

SCALES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def test_rates_and_intervals() -> None:
    rates = {1_694_321.0: "1.694M", 0.48: "0.4800", 1.24: "1.240", 54.44: "54.44", 415.0: "415.0", 1200.0: "1200"}
    rates |= {9999.4: "9999", 9999.6: "10.00k", 23750.0: "23.75k", 999_949.0: "999.9k", 999_951.0: "1.000M"}
    rates |= {2.5e10: "25.00G", 2.5e13: "25.00T", 0.001234: "0.001234"}
    rates |= {math.nan: "-", math.inf: "-", -math.inf: "-", 0.0: "-", -1.0: "-"}
    assert {value: rate(value) for value in rates} == rates
    # Both ends at one scale.
    intervals = {(1.66e6, 1.714e6): "1.660-1.714M", (998_000.0, 1_002_000.0): "0.9980-1.002M"}
    intervals |= {(7649.4, 7726.4): "7649-7726", (9990.0, 10_010.0): "9.990-10.01k", (0.4723, 0.4901): "0.4723-0.4901"}
    intervals |= {(12.0, 1.694e6): "1.200e-05-1.694M", (math.nan, 5.0): "-", (5.0, math.inf): "-", (0.0, 5.0): "-"}
    assert {ends: interval(*ends) for ends in intervals} == intervals


@given(st.floats(1e-3, 1e15))
def test_a_rate_reads_as_what_it_is(value: float) -> None:
    text = rate(value)
    digits, scale = (text[:-1], SCALES[text[-1]]) if text[-1] in SCALES else (text, 1.0)
    assert float(digits) * scale == pytest.approx(value, rel=0.5001e-3)
    assert len(text) <= 8 or value < 0.01 or value >= 1e15


def test_shares_and_ratios() -> None:
    assert (percent(0.0123), at_most(0.98999), at_most(1.0)) == ("1.2 %", "0.989", "1.000")
    assert percent(math.nan) == at_most(math.nan) == "-"
    ratios = {1.0: "1.000", 0.93251: "0.933", 0.0123: "0.0123", 103.51: "104", 12.34: "12.3"}
    assert {value: ratio(value) for value in ratios} == ratios


def test_a_mean_has_the_digits_that_its_error_bears() -> None:
    shown = {(7354.85, 0.0092): "7,355", (7354.85, 0.2): "7,400"}
    shown |= {(0.98064, 0.0004): "0.98064", (0.98064, None): "0.981"}
    shown |= {(123456.7, 0.00001): "123,457", (2.0, 0.0): "2.00", (0.0, 0.1): "0", (0.00123456, 0.01): "0.00123"}
    for (mean, error), text in shown.items():
        assert borne(mean, error) == text
