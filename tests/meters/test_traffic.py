"""Monitoring groups on a tree of files that stands in for resctrl."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cotenant.isolation import resctrl
from cotenant.isolation.leftovers import clear
from cotenant.isolation.runs import RunName
from cotenant.meters.traffic import LACKS, NO_SLICES, CacheTraffic
from machine.fakehost import write

FEATURES = "sys/fs/resctrl/info/L3_MON/mon_features"
DEAD = "4194303-1-4026531836"


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with two caches, whose directories of groups have their files, and go with them."""
    write(tmp_path, {FEATURES: "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes", "proc/31/task/31/x": "", "procs": 31})
    (tmp_path / "sys/fs/resctrl/mon_groups").mkdir()
    make, remove = Path.mkdir, Path.rmdir

    def mkdir(path: Path, *words: Any, **flags: Any) -> None:
        make(path, *words, **flags)
        if path.parent.name == "mon_groups":
            count(tmp_path, path.name, 0)
            (path / "tasks").touch()

    def rmdir(path: Path) -> None:
        for file in sorted(path.rglob("*"), reverse=True):
            file.unlink() if file.is_file() else remove(file)
        remove(path)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(Path, "rmdir", rmdir)
    return tmp_path


def count(root: Path, group: str, value: int, unknown: str = "") -> None:
    """Have both caches of a group say this."""
    place = f"sys/fs/resctrl/mon_groups/{group}/mon_data"
    files = {f"{place}/mon_L3_{cache:02}/{name}": value for cache in (0, 1) for name in resctrl.COUNTERS}
    write(root, files | ({f"{place}/mon_L3_01/{unknown}": "Unavailable"} if unknown else {}))


def slices(root: Path) -> list[Any]:
    return [cast("Any", SimpleNamespace(entry=SimpleNamespace(procs_files=(root / "procs",))))]


def test_a_slice_is_counted_from_go_to_the_last_done_and_its_group_goes(kernel: Path) -> None:
    groups = kernel / "sys/fs/resctrl/mon_groups"
    write(groups, {f"cotenant.{DEAD}.t0/tasks": "", "theirs/tasks": ""})
    meter, own = CacheTraffic([3], kernel), f"cotenant.{RunName()}.t3"
    meter.start(slices(kernel))
    assert sorted(path.name for path in groups.iterdir()) == sorted([own, "theirs"])
    assert (groups / own / "tasks").read_text() == "31"
    for value in (100, 300):
        count(kernel, own, value)
        assert meter.sample() == {("traffic", "3", "llc_occupancy_bytes"): 2 * value}
    occupancy = {"n": 2, "min": 200, "mean": 400, "max": 600}
    moved = {"memory_traffic_bytes": 600, "local_traffic_bytes": 600}
    assert meter.result() == {"3": moved | {"llc_occupancy_bytes": occupancy}}
    assert [path.name for path in groups.iterdir()] == ["theirs"]
    assert meter.absent() == {}


def test_what_the_hardware_does_not_count_is_left_out(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meter, own = CacheTraffic([0], kernel), f"cotenant.{RunName()}.t0"
    meter.start(slices(kernel))
    count(kernel, own, 5, unknown="mbm_local_bytes")
    assert meter.result() == {"0": {"memory_traffic_bytes": 10}}
    for root in (kernel / "bare", kernel):
        if root == kernel:
            monkeypatch.setattr(resctrl, "make_group", lambda *words: (_ for _ in ()).throw(OSError("No space left")))
        without = CacheTraffic([0], root)
        without.start(slices(kernel))
        assert (without.sample(), without.result(), without.absent()) == ({}, {}, {"traffic": LACKS})
    bound = cast("Any", SimpleNamespace(entry=SimpleNamespace(procs_files=())))
    unsliced = CacheTraffic([0], kernel)
    unsliced.start([bound])
    assert (unsliced.sample(), unsliced.result(), unsliced.absent()) == ({}, {}, {"traffic": NO_SLICES})
    write(kernel / "bare", {"proc/cpuinfo": "flags : fpu cqm_mbm_total cat_l3"})
    assert resctrl.monitoring(kernel / "bare") == resctrl.Monitoring((), True)


def test_the_reaper_takes_groups_with_the_rest(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []
    monkeypatch.setattr(resctrl, "remove_groups", removed.append)
    clear({}, DEAD)
    assert removed == [DEAD]
