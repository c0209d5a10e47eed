"""Neighbours of known pressure on a device: half a level is half of what they achieve."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest

from cotenant.suite.pressure import OF_DEVICES
from device.host import ROOT, Host, entry, wrong

HALF, FULL = 50, 100


@pytest.mark.parametrize("resource", OF_DEVICES)
@pytest.mark.gpu
@pytest.mark.slow
def test_half_a_level_achieves_half(resource: str, real: Host, record_property: Any) -> None:
    script = ROOT / f"tasks/pressure/{resource}/pytorch/run.sh"
    words = {"--number": 1_000_000, "--repeat": 12, "--skip": 0, "--cuda": ""}
    jobs = [entry(f"{resource}_{level}", script, words | {"--level": level}) for level in (HALF, FULL)]
    records = real.suite(f"pressure-{resource}", ["--jobs", real.jobs(resource, jobs), "--users", 1, "--budget", "3s"])
    assert wrong(records) == []
    half, full = (
        median(seen["items"] * 1e9 / (seen["end_ns"] - seen["start_ns"]) for seen in record["observations"])
        for record in records
    )
    record_property("achieved", {HALF: half, FULL: full})
    assert half / full == pytest.approx(0.5, abs=0.1)
