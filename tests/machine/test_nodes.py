"""NUMA nodes as kernels and drivers show them, from the smallest trees of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotenant.isolation.plan import plan, plan_whole
from cotenant.machine.space import host_memory
from cotenant.machine.topology import NumaNode, discover
from machine.fakehost import node, processors, write

GIB_KB = 1 << 20


def test_memory_of_a_device_is_no_ram(tmp_path: Path) -> None:
    """GH200: the kernel counts the device's memory, which is a node without processors that the driver names."""
    processors(tmp_path, [(0,), (1,)])
    node(tmp_path, 0, "0-1", 8 * GIB_KB)
    node(tmp_path, 1, "", 96 * GIB_KB)
    node(tmp_path, 2, "", 4 * GIB_KB)  # of memory behind CXL
    status = "proc/driver/nvidia/gpus/0009:01:00.0/numa_status"
    write(tmp_path, {"proc/meminfo": f"MemTotal: {108 * GIB_KB} kB\nMemAvailable: {100 * GIB_KB} kB"})
    assert len(discover(tmp_path, environ={}).nodes) == 3
    write(tmp_path, {status: "Node:\t\t1\nStatus:\t\tonline"})
    found = discover(tmp_path, environ={})
    assert found.nodes == (NumaNode(0, 8 << 30), NumaNode(2, 4 << 30))
    assert found.memory_bytes == 12 << 30
    assert {piece.nodes for piece in plan(found, 2, mems="all").slices} == {(0, 2)}
    assert plan_whole(found).slices[0].nodes == (0, 2)
    free_of_the_device = 1 << 10
    assert host_memory(tmp_path).available_bytes == (100 << 30) - free_of_the_device


def test_a_node_with_processors_is_ram_whatever_a_driver_says(tmp_path: Path) -> None:
    processors(tmp_path, [(0,)])
    node(tmp_path, 0, "0", 8 * GIB_KB)
    write(tmp_path, {"proc/driver/nvidia/gpus/0000:01:00.0/numa_status": "Node: 0"})
    assert discover(tmp_path, environ={}).memory_bytes == 8 << 30


def test_overlapping_nodes_give_the_memory_of_all_of_them(tmp_path: Path) -> None:
    """numa=fake=2 on a host of two processors."""
    processors(tmp_path, [(0,), (1,)])
    for number in (0, 1):
        node(tmp_path, number, "0-1", 8 * GIB_KB)
    found = discover(tmp_path, environ={})
    assert {processor.node for processor in found.processors} == {0}
    made = plan(found, 2, reserve_bytes=0)
    assert [(piece.nodes, piece.memory_bytes >> 30) for piece in made.slices] == [((0, 1), 8)] * 2
    assert made.findings == ()


@pytest.mark.parametrize(
    ("distances", "nodes"),
    [("21 10 31", (0,)), ("31 10 21", (2,)), ("21 10 21", (0, 2))],
)
def test_processors_without_memory_use_the_nearest(distances: str, nodes: tuple[int, ...], tmp_path: Path) -> None:
    processors(tmp_path, [(0,), (1,), (2,)])
    for number, size in enumerate((4, 0, 4)):
        node(tmp_path, number, str(number), size * GIB_KB)
    write(tmp_path, {"sys/devices/system/node/node1/distance": distances})
    found = discover(tmp_path, affinity={1}, environ={})
    assert found.processors[0].node == 1
    assert plan(found, 1).slices[0].nodes == nodes


def test_lists_may_end_in_a_zero_byte(tmp_path: Path) -> None:
    processors(tmp_path, [(0,), (1,)])
    write(tmp_path, {"sys/devices/system/cpu/online": "0-1\n\0", "sys/devices/system/node/node0/cpulist": "0-1\0"})
    (tmp_path / "sys/devices/system/cpu/cpu1").rename(tmp_path / "sys/devices/system/cpu/other")
    assert [processor.id for processor in discover(tmp_path, environ={}).processors] == [0, 1]
