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
    words = {"--level": f"{HALF} {FULL}", "--number": 1_000_000, "--repeat": 12, "--skip": 0, "--cuda": ""}
    job = entry(resource, ROOT / f"tasks/pressure/{resource}/pytorch/run.sh", words)
    records = real.suite(f"pressure-{resource}", ["--jobs", real.jobs(resource, [job]), "--users", 1, "--budget", "3s"])
    assert wrong(records) == []
    rates: dict[int, list[float]] = {}
    for level, seen in zip(records[0]["observed"]["levels"], records[0]["observations"], strict=False):
        rates.setdefault(level, []).append(seen["items"] * 1e9 / (seen["end_ns"] - seen["start_ns"]))
    half, full = (median(rates[level]) for level in (HALF, FULL))
    record_property("achieved", {HALF: half, FULL: full})
    assert half / full == pytest.approx(0.5, abs=0.1)
