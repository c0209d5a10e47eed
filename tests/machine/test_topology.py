from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from cotenant.errors import CotenantError
from cotenant.machine.topology import NumaNode, Processor, discover
from cotenant.procfs import parse_list
from machine import fleet
from machine.fakehost import Board, FakeNvml, node, processors, write
from machine.invented import machine, of_cores


def test_another_kernel_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS has neither /proc nor affinities: AttributeError would be the answer."""
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(sysname="Darwin", nodename="book", machine="arm64"))
    monkeypatch.delattr(os, "sched_getaffinity")
    with pytest.raises(CotenantError, match=r"made on Linux, and this is Darwin"):
        discover()


def test_two_sockets_with_siblings(tmp_path: Path) -> None:
    processors(tmp_path, [(0, 4), (1, 5), (2, 6), (3, 7)], packages=(0, 0, 1, 1))
    node(tmp_path, 0, "0-1,4-5", 8 << 20)
    node(tmp_path, 1, "2-3,6-7", 8 << 20)
    files = {
        "proc/meminfo": "MemTotal:       16777216 kB\nMemFree:        1 kB",
        "proc/cpuinfo": "processor\t: 0\nmodel\t\t: 79\nmodel name\t: Xeon E5-2698 v4\n\nprocessor\t: 1",
        "proc/sys/kernel/hostname": "big",
        "proc/self/status": "Name:\tx\nMems_allowed:\t3\nMems_allowed_list:\t0-1",
    }
    write(tmp_path, files)
    expected = replace(machine(2, 2, 2, memory_bytes=16 << 30), hostname="big", model_name="Xeon E5-2698 v4")
    assert discover(tmp_path, environ={}) == expected
    part = replace(expected, processors=(Processor(6, 2, 1, 1), Processor(7, 3, 1, 1)))
    assert discover(tmp_path, affinity={6, 7, 99}, environ={}) == part


def test_nodes_whose_memory_is_denied(tmp_path: Path) -> None:
    processors(tmp_path, [(0,), (1,)])
    node(tmp_path, 0, "0", 4 << 20)
    node(tmp_path, 1, "1", 12 << 20)
    write(tmp_path, {"proc/meminfo": "MemTotal: 16777216 kB", "proc/self/status": "Mems_allowed_list:\t1"})
    found = discover(tmp_path, environ={})
    assert (found.nodes, found.memory_bytes) == ((NumaNode(1, 12 << 30),), 12 << 30)
    assert [processor.node for processor in found.processors] == [0, 1]


def test_a_container_without_topology_files(tmp_path: Path) -> None:
    write(tmp_path, {"proc/meminfo": "MemTotal: 1024 kB"})
    expected, host = of_cores((4,), (5,)), os.uname()
    expected = replace(expected, nodes=(NumaNode(0, 1 << 20),), memory_bytes=1 << 20)
    expected = replace(expected, hostname=host.nodename, model_name=host.machine)
    assert discover(tmp_path, affinity={4, 5}, environ={}) == expected


def test_older_and_poorer_topology_files(tmp_path: Path) -> None:
    cpu = "sys/devices/system/cpu"
    files = {
        f"{cpu}/online": "0-5",
        f"{cpu}/cpu0/topology/thread_siblings_list": "0-1",
        f"{cpu}/cpu2/topology/core_id": 7,
        f"{cpu}/cpu3/topology/core_id": 7,
        f"{cpu}/cpu4/topology/core_id": 7,
        f"{cpu}/cpu4/topology/physical_package_id": 1,
        f"{cpu}/cpu5/topology/core_id": -1,
        f"{cpu}/cpu5/topology/physical_package_id": -1,
        f"{cpu}/cpu5/topology/core_cpus_list": "nonsense",
    }
    write(tmp_path, files)
    packages = [(p.core, p.package) for p in discover(tmp_path, environ={}).processors]
    assert packages == [(0, 0), (0, 0), (2, 0), (2, 0), (4, 1), (5, 0)]


def test_sockets_are_counted_whatever_the_kernel_calls_them(tmp_path: Path) -> None:
    """Power and ARM have ids that leave gaps; some hosts say -1, or repeat an id, and list each socket's processors."""
    cpu = "sys/devices/system/cpu"
    for name, ids, lists, packages in [
        ("gaps", (36, 36, 40, 40), None, [0, 0, 1, 1]),
        ("swapped", (1, 1, 0, 0), None, [1, 1, 0, 0]),
        ("unknown", (-1, -1, -1, -1), ("0,2", "1,3"), [0, 1, 0, 1]),
        ("repeated", (0, 0, 0, 0), ("0-1", "2-3"), [0, 0, 1, 1]),
    ]:
        processors(tmp_path / name, [(number,) for number in range(4)], ids)
        for members in lists or ():
            files = {f"{cpu}/cpu{n}/topology/core_siblings_list": members for n in parse_list(members)}
            write(tmp_path / name, files)
        assert [p.package for p in discover(tmp_path / name, environ={}).processors] == packages, name
        # A caller that may use the last processor only sees its socket by the same number.
        assert discover(tmp_path / name, affinity={3}, environ={}).processors[0].package == packages[3]


def test_cpu_directories_stand_in_for_the_online_list(
    tmp_path: Path,
) -> None:
    for name in ("cpu0", "cpu3", "cpufreq", "cpuidle"):
        (tmp_path / "sys/devices/system/cpu" / name).mkdir(parents=True)
    write(tmp_path, {"proc/cpuinfo": "processor\t: 0\ncpu\t\t: POWER9, altivec supported"})
    found = discover(tmp_path, environ={})
    assert [processor.id for processor in found.processors] == [0, 3]
    assert found.model_name == "POWER9, altivec supported"


def test_kinds_of_core_where_there_are_several(tmp_path: Path) -> None:
    capacities = ["capacity 446"] * 4 + ["capacity 1024"] * 4
    assert [processor.kind for processor in fleet.big_little(tmp_path / "board").processors] == capacities
    laptop = fleet.laptop(tmp_path)
    assert [processor.kind for processor in laptop.processors] == ["core"] * 12 + ["atom"] * 8
    # Who may run on one kind only has a machine of like cores.
    assert {processor.kind for processor in discover(tmp_path, {0, 1, 2, 3}, {}).processors} == {""}


def test_accelerators_of_one_vendor_only(tmp_path: Path) -> None:
    files = {
        "sys/class/drm/card0/device/vendor": "0x8086",
        "sys/class/drm/card0/device/class": "0x030000",
        "sys/class/drm/card0/device/uevent": "DRIVER=xe\nPCI_SLOT_NAME=0000:03:00.0",
    }
    write(tmp_path, files)
    board = Board("GPU-1", "00000000:3B:00.0")
    assert [a.vendor for a in discover(tmp_path, {0}, {}, nvml=FakeNvml([board])).accelerators] == ["nvidia"]
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    assert [a.vendor for a in discover(tmp_path, {0}, hidden, nvml=FakeNvml([board])).accelerators] == ["intel"]


def test_this_host() -> None:
    found = discover()
    assert {processor.id for processor in found.processors} == os.sched_getaffinity(0)
    assert found.processor_total >= len(found.processors)
    assert found.memory_bytes > 1 << 28
    assert found.nodes
    assert all(p.core <= p.id and p.node >= 0 for p in found.processors)
    assert discover() == found
