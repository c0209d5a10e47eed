"""Kinds of core, and the names of processors, as /proc and /sys of each architecture have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from cotenant.isolation.plan import plan
from cotenant.machine.models import model_name
from cotenant.machine.topology import discover
from machine.fakehost import processors, write

CPU = "sys/devices/system/cpu"


def arm(*parts: str) -> str:
    """The /proc/cpuinfo of ARM processors, each `implementer part`."""
    blocks = []
    for number, part in enumerate(parts):
        implementer, code = part.split()
        blocks.append(
            f"processor\t: {number}\nCPU implementer\t: {implementer}\nCPU part\t: {code}\nCPU revision\t: 1\n"
        )
    return "\n".join(blocks)


def kinds_of(root: Path, total: int, files: Mapping[str, object]) -> list[str]:
    write(processors(root, [(number,) for number in range(total)]), files)
    return [processor.kind for processor in discover(root, environ={}).processors]


def clocks(*of_each: float) -> dict[str, object]:
    return {f"{CPU}/cpu{n}/cpufreq/cpuinfo_max_freq": int(ghz * 1e6) for n, ghz in enumerate(of_each)}


def test_kinds_of_arm_cores_follow_the_part_not_the_capacity(tmp_path: Path) -> None:
    """DGX Spark: two kinds of ten, whose capacities have five values."""
    parts, capacities = ["0x41 0xd87"] * 5 + ["0x41 0xd85"] * 5, [718, 731, 718, 731, 718, 997, 1017, 1024, 1017, 1024]
    bins = {f"{CPU}/cpu{n}/cpu_capacity": capacity for n, capacity in enumerate(capacities * 2)}
    kinds = kinds_of(tmp_path, 20, {"proc/cpuinfo": arm(*parts * 2), **bins, "proc/meminfo": "MemTotal: 8388608 kB"})
    assert kinds == (["Cortex-A725"] * 5 + ["Cortex-X925"] * 5) * 2
    found = discover(tmp_path, environ={})
    made = plan(found, 2)
    assert (made.unused_processors, made.findings) == ((), ())
    assert [sum(kinds[n] == "Cortex-X925" for n in part) for part in made.parts] == [5, 5]
    assert found.model_name == "Cortex-A725 + Cortex-X925"


@pytest.mark.parametrize(
    ("files", "kinds"),
    [
        (clocks(5.1, 5.1, 3.3, 3.3), ["5.1 GHz", "5.1 GHz", "3.3 GHz", "3.3 GHz"]),  # Zen 5 and Zen 5c
        (clocks(5.88, 5.73, 5.2, 5.05), [""] * 4),  # favoured cores, as any Ryzen has
        (clocks(4.8, 4.5), [""] * 2),
        ({f"{CPU}/cpu{n}/cache/index0/size": f"{32 + 16 * n}K" for n in (0, 1)}, ["L1 32K", "L1 48K"]),
        (
            {f"{CPU}/cpu{n}/cpu_capacity": size for n, size in enumerate((1024, 1010, 446, 440))},
            ["capacity 1024"] * 2 + ["capacity 446"] * 2,
        ),
        ({"proc/cpuinfo": arm("0x41 0xd0c", "0x41 0xd0c"), **clocks(3.0, 2.0)}, [""] * 2),
    ],
)
def test_kinds_where_the_kernel_counts_none_apart(
    files: dict[str, object], kinds: Sequence[str], tmp_path: Path
) -> None:
    assert kinds_of(tmp_path, len(kinds), files) == kinds


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        (arm("0x48 0xd01"), "Kunpeng-920"),
        (arm("0x41 0xd4f", "0x41 0xd4f"), "Neoverse-V2"),
        (arm("0x41 0xfff"), "ARM part 0xfff"),
        (arm("0x99 0x001"), "implementer 0x99 part 0x001"),
        ("model name\t: ARMv7 Processor rev 0 (v7l)\n" + arm("0x41 0xc09"), "Cortex-A9"),
        ("vendor_id : IBM/S390\nprocessor 1: version = FF,  machine = 2817", "IBM Z, machine type 2817"),
        ("system type\t: generic-loongson-machine\n\nModel Name\t: Loongson-3A5000-HV", "Loongson-3A5000-HV"),
        ("processor\t: 0\nhart\t: 1\nisa\t: rv64imafdc\nuarch\t: sifive,u74-mc", "sifive,u74-mc"),
        ("processor\t: 0\nhart\t: 0\nisa\t: rv64imafdcv", "Milk-V Pioneer"),
        ("processor\t: 0\ncpu\t\t: POWER9\nmachine\t\t: PowerNV 8335", "POWER9"),
        ("model\t\t: 79\nmodel name\t: Xeon E5-2698 v4", "Xeon E5-2698 v4"),
    ],
)
def test_names_of_processors(cpuinfo: str, name: str, tmp_path: Path) -> None:
    write(tmp_path, {"proc/cpuinfo": cpuinfo, "proc/device-tree/model": "Milk-V Pioneer\0"})
    assert model_name(tmp_path) == name
