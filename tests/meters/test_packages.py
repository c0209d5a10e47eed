"""Energy of processor packages, and memory that is left."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotenant.meters.host import READABLE, MemoryLeft, PackageEnergy
from machine.fakehost import write

ZONES = "sys/class/powercap"


def zone(root: Path, number: int, name: str, energy_uj: object) -> None:
    place = f"{ZONES}/intel-rapl:{number}"
    write(root, {f"{place}/name": name, f"{place}/max_energy_range_uj": 1000, f"{place}/energy_uj": energy_uj})


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 999), st.lists(st.integers(0, 999), min_size=1, max_size=8))
def test_a_counter_that_begins_anew_loses_nothing(first: int, steps: list[int]) -> None:
    with tempfile.TemporaryDirectory() as place:
        root, total = Path(place), first
        zone(root, 0, "package-0", total)
        meter = PackageEnergy(root)
        meter.start([])
        for step in steps:
            total += step
            zone(root, 0, "package-0", total % 1000)
            meter.sample()
        assert meter.result() == {"package-0": {"energy_j": pytest.approx(sum(steps) / 1e6)}}


def test_packages_only_and_each_for_itself(tmp_path: Path) -> None:
    zone(tmp_path, 0, "package-0", 10)
    zone(tmp_path, 1, "package-1", 20)
    zone(tmp_path, 2, "psys", 30)
    write(tmp_path, {f"{ZONES}/intel-rapl:0:0/name": "core", f"{ZONES}/intel-rapl/enabled": 1})
    meter = PackageEnergy(tmp_path)
    meter.start([])
    zone(tmp_path, 1, "package-1", 120)
    meter.sample()
    assert meter.result() == {"package-0": {"energy_j": 0.0}, "package-1": {"energy_j": 0.0001}}
    assert meter.absent() == {}


def test_counters_that_cannot_be_read(tmp_path: Path) -> None:
    for files in ({}, {f"{ZONES}/intel-rapl:0/name": "package-0", f"{ZONES}/intel-rapl:0/max_energy_range_uj": 9}):
        meter = PackageEnergy(write(tmp_path, dict(files)))
        meter.start([])
        meter.sample()
        assert meter.result() == {}
        assert meter.absent() == {"packages": READABLE}


def test_a_counter_that_becomes_unreadable_keeps_its_energy(tmp_path: Path) -> None:
    zone(tmp_path, 0, "package-0", 10)
    meter = PackageEnergy(tmp_path)
    meter.start([])
    zone(tmp_path, 0, "package-0", 60)
    meter.sample()
    zone(tmp_path, 0, "package-0", "no")
    meter.sample()
    assert meter.result() == {"package-0": {"energy_j": 0.00005}}


def test_memory_that_is_left(tmp_path: Path) -> None:
    meter = MemoryLeft(tmp_path)
    meter.start([])
    meter.sample()
    assert meter.result() == {}
    assert meter.absent() == {"memory": "/proc/meminfo, which this host hides"}
    for available in (8, 2):
        said = f"MemTotal: 9 kB\nMemAvailable: {available} kB\nSwapTotal: 3 kB\nSwapFree: 1 kB"
        write(tmp_path, {"proc/meminfo": said})
        meter.sample()
    assert meter.result() == {
        "available_bytes": {"n": 2, "min": 2048, "mean": 5120, "max": 8192},
        "swap_free_bytes": {"n": 2, "min": 1024, "mean": 1024, "max": 1024},
    }
    assert meter.absent() == {}
