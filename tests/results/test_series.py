"""What was seen over time, read back: all of it where it makes sense, none of it where it does not."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.meters.series import Series as Kept
from cotenant.results.series import DRAWN, Series, series_of
from results.test_details import json_values

S = 1_000_000_000
FOREIGN: list[Any] = [[], [1.0], [1, 2, 3, 4], ["a", "b", "c"], [-1, -2, -3], [1e300] * 3, [None] * 3, "abc", 7, None]


def told(**changes: Any) -> dict[str, Any]:
    """The fields of a record with three looks at two devices, two slices and the host."""
    kept = Kept()
    for second in (1, 2, 3):
        device = {("devices", f"GPU-{n}", "power_w"): 100.0 * n + second for n in range(2)}
        slices = {("tenants", str(n), "memory_used_bytes"): n + second for n in range(2)}
        kept.add(second * S, device | slices | {("host", "available_bytes"): 9})
    series = kept.told(0) | changes
    devices = {"GPU-0": {"index": 4}, "GPU-1": {"index": 5}}
    return json.loads(json.dumps({"meters": {"series": series, "devices": devices}}))


def by_name(found: tuple[Series, ...]) -> dict[tuple[str, str, str], list[float]]:
    return {(one.kind, one.of, one.quantity): list(one.values) for one in found}


def test_what_meters_kept_is_read_back() -> None:
    found = series_of(told())
    assert by_name(found) == {
        ("device", "4", "power_w"): [1, 2, 3],
        ("device", "5", "power_w"): [101, 102, 103],
        ("tenant", "0", "memory_used_bytes"): [1, 2, 3],
        ("tenant", "1", "memory_used_bytes"): [2, 3, 4],
        ("host", "host", "available_bytes"): [9, 9, 9],
    }
    assert all(list(one.at_s) == [1, 2, 3] for one in found)


def test_what_a_look_did_not_see_is_no_number() -> None:
    found = series_of(told(host={"available_bytes": [1, None, 2]}))
    (host,) = [one for one in found if one.kind == "host"]
    assert np.isnan(host.values).tolist() == [False, True, False]


@pytest.mark.parametrize("values", FOREIGN, ids=repr)
def test_a_damaged_series_costs_itself_only(values: Any) -> None:
    assert {one.kind for one in series_of(told(host={"available_bytes": values}))} == {"device", "tenant"}


@pytest.mark.parametrize("times", [*FOREIGN[:4], *FOREIGN[5:], [2, 1, 3], [3, 2, 1], [1, None, 2]], ids=repr)
def test_without_its_times_nothing_is_a_series(times: Any) -> None:
    assert series_of(told(at_s=times)) == ()


def test_of_looks_at_one_time_the_last_counts() -> None:
    found = series_of(told(at_s=[1, 1, 2]))
    assert by_name(found)["device", "5", "power_w"] == [102, 103]
    assert all(list(one.at_s) == [1, 2] for one in found)


def test_a_device_that_nobody_describes_has_none() -> None:
    fields = told()
    del fields["meters"]["devices"]["GPU-1"]
    assert {one.of for one in series_of(fields) if one.kind == "device"} == {"4"}


@given(st.dictionaries(st.sampled_from(("at_s", "host", "devices", "tenants", "every_s")), json_values))
def test_any_part_may_be_anything(changes: dict[str, Any]) -> None:
    for one in series_of(told(**changes)):
        assert one.quantity in DRAWN[one.kind]
        assert len(one.values) == len(one.at_s) > 0
        assert np.nanmin(one.values) >= 0
