"""Series of samples over time: every value where it belongs, and never more points than fit."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.meters.host import LACKS, SliceMemory
from cotenant.meters.sampler import MOST_POINTS, TimeSeries
from meters.seen import CountedSlice
from meters.test_pacing import over

S = 1_000_000_000


def test_values_stand_at_their_places_and_times() -> None:
    series = TimeSeries()
    series.add(12 * S, {("host", "free"): 7, ("devices", "GPU-0", "power_w"): 0.123456})
    series.add(13 * S, {("host", "free"): 8})
    series.add(15 * S, {("host", "free"): 9, ("devices", "GPU-1", "power_w"): 3})
    assert series.result(t0_ns=11 * S) == {
        "every_s": 1.5,
        "at_s": [1.0, 2.0, 4.0],
        "host": {"free": [7, 8, 9]},
        "devices": {"GPU-0": {"power_w": [0.1235, None, None]}, "GPU-1": {"power_w": [None, None, 3]}},
    }


def test_two_samples_within_a_millisecond_keep_two_times() -> None:
    series = TimeSeries()
    assert series.result(0) == {"every_s": None, "at_s": []}
    series.add(S, {("host", "free"): 7})
    assert series.result(0) == {"every_s": None, "at_s": [1.0], "host": {"free": [7]}}
    series.add(S + 20_000, {("host", "free"): 8})
    assert series.result(0)["at_s"] == [1.0, 1.00002]


@given(st.integers(1, 6 * MOST_POINTS))
def test_a_series_has_few_evenly_spaced_sampled_points(looks: int) -> None:
    series = TimeSeries()
    for index in range(looks):
        series.add(index * S, {("host", "index"): index})
    told = series.result(0)
    assert told["at_s"] == told["host"]["index"]  # each point is that sample's value
    assert min(looks, MOST_POINTS // 2) <= len(told["at_s"]) <= MOST_POINTS
    steps = {late - early for early, late in zip(told["at_s"], told["at_s"][1:], strict=False)}
    assert len(steps) <= 1
    assert steps <= {told["every_s"]}
    step = told["every_s"] or 1
    assert told["at_s"][0] == 0
    assert looks - told["at_s"][-1] <= step  # nothing is cut off at the end


def test_the_meters_keep_every_look_from_t0_on() -> None:
    _, slow, result = over(5, cost_ns=1000)
    series = result["series"]
    assert series["host"]["slow"] == [float(n + 1) for n in range(len(slow.looks))]
    assert series["at_s"] == pytest.approx([one / 1e9 for one in slow.looks], abs=1e-3)


def test_memory_of_slices_by_their_tenants() -> None:
    slices = [CountedSlice(used_bytes=5), CountedSlice(used_bytes=None)]
    meter = SliceMemory([3, 4])
    meter.start(slices)
    assert meter.sample() == {("tenants", "3", "memory_used_bytes"): 5}
    slices[0].used_bytes = 7
    meter.sample()
    assert meter.result() == {"3": {"memory_used_bytes": {"n": 2, "min": 5, "mean": 6, "max": 7}}}
    assert meter.absent() == {}
    assert json.loads(json.dumps(meter.result())) == meter.result()
    meter = SliceMemory([0])
    meter.start(slices[1:])
    assert (meter.sample(), meter.result(), meter.absent()) == ({}, {}, {"tenants": LACKS})
