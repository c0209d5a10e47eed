"""What the driver tells of a device under load."""

from __future__ import annotations

from typing import Any

import pytest

from cotenant.meters.devices import QUANTITIES
from device.host import Host

LOOK_MS = 20.0
"""A look once a second takes two hundredths of one processor then."""


def test_devices_tell_everything_and_energy_is_what_power_adds_up_to(host: Host, record_property: Any) -> None:
    seen = host.asked("meters", 1 if host.null else 10)
    record_property("meters", seen)
    readings = seen["readings"].values()
    assert readings
    for name in (*QUANTITIES, "energy_j", "slowed_by"):
        assert all(reading[name] is not None for reading in readings), name
    assert any(reading["load_percent"] >= 50 for reading in readings), "under products without end"
    for state in seen["states"]:
        assert state["compute_mode"]
        assert state["power_limit_w"] <= state["power_default_w"] * 1.5
    assert seen["energy"]["counted_j"] == pytest.approx(seen["energy"]["added_j"], rel=0.05)
    assert host.null or seen["look_ms"] <= LOOK_MS
