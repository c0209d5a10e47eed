"""The names of processors, as each architecture's `/proc/cpuinfo` has them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cotenant.procfs import fields, read_text, to_int

_IMPLEMENTERS = {
    0x41: "ARM",
    0x42: "Broadcom",
    0x43: "Cavium",
    0x46: "Fujitsu",
    0x48: "HiSilicon",
    0x4E: "NVIDIA",
    0x50: "APM",
    0x51: "Qualcomm",
    0x53: "Samsung",
    0x61: "Apple",
    0x6D: "Microsoft",
    0x70: "Phytium",
    0xC0: "Ampere",
}
_PARTS = {
    0x41: (
        "c05 Cortex-A5, c07 Cortex-A7, c08 Cortex-A8, c09 Cortex-A9, c0d Cortex-A17, c0e Cortex-A17, c0f Cortex-A15, "
        "d03 Cortex-A53, d04 Cortex-A35, d05 Cortex-A55, d07 Cortex-A57, d08 Cortex-A72, d09 Cortex-A73, "
        "d0a Cortex-A75, d0b Cortex-A76, d0c Neoverse-N1, d0d Cortex-A77, d0e Cortex-A76AE, d40 Neoverse-V1, "
        "d41 Cortex-A78, d42 Cortex-A78AE, d44 Cortex-X1, d46 Cortex-A510, d47 Cortex-A710, d48 Cortex-X2, "
        "d49 Neoverse-N2, d4a Neoverse-E1, d4b Cortex-A78C, d4c Cortex-X1C, d4d Cortex-A715, d4e Cortex-X3, "
        "d4f Neoverse-V2, d80 Cortex-A520, d81 Cortex-A720, d82 Cortex-X4, d83 Neoverse-V3AE, d84 Neoverse-V3, "
        "d85 Cortex-X925, d87 Cortex-A725, d8e Neoverse-N3"
    ),
    0x42: "516 ThunderX2",
    0x43: "0a1 ThunderX-88XX, 0af ThunderX2-99xx, 0b8 ThunderX3-T110",
    0x46: "001 A64FX",
    0x48: "d01 Kunpeng-920, d02 Kunpeng-920B",
    0x4E: "003 Denver-2, 004 Carmel",
    0x50: "000 X-Gene",
    0x51: "001 Oryon, c00 Falkor",
    0x61: "022 Icestorm-M1, 023 Firestorm-M1, 032 Blizzard-M2, 033 Avalanche-M2",
    0x6D: "d49 Azure-Cobalt-100",
    0x70: "660 FTC660, 661 FTC661, 662 FTC662, 663 FTC663, 664 FTC664, 862 FTC862",
    0xC0: "ac3 Ampere-1, ac4 Ampere-1a",
}
"""Part numbers and names of each implementer of ARM (MIDR_EL1), as `lscpu` of util-linux has them."""
_ARM = "CPU part"


def model_name(root: Path = Path("/")) -> str:
    """Return the model of the first processor; on an ARM host all of its kinds of core."""
    # To make the rest of the file, an x86 kernel samples the clock of each further processor.
    text = read_text(root / "proc/cpuinfo", limit_bytes=8192)
    values = fields(text, ":")
    if names := list(dict.fromkeys(part_names(root).values())):
        return " + ".join(names)
    machine = re.search(r"^processor \d+:.*\bmachine = (\w+)", text, re.MULTILINE)
    if machine:
        return f"IBM Z, machine type {machine[1]}"
    words = ("model name", "Model Name", "cpu model", "cpu", "uarch", "Model", "Hardware")
    found = (values[word] for word in words if values.get(word))
    return next(found, read_text(root / "proc/device-tree/model") or os.uname().machine)


def part_names(root: Path) -> dict[int, str]:
    """Return the name of each processor's core on an ARM host, nothing on others."""
    if _ARM not in read_text(root / "proc/cpuinfo", limit_bytes=8192):
        return {}
    names = {}
    for number, block in enumerate(read_text(root / "proc/cpuinfo").split("\n\n")):
        values = fields(block, ":")
        if _ARM in values:
            said = to_int(values.get("processor", ""))
            names[number if said is None else said] = _part_name(values.get("CPU implementer", ""), values[_ARM])
    return names


def _part_name(implementer: str, part: str) -> str:
    try:
        maker, number = int(implementer, 16), int(part, 16)
    except ValueError:
        return f"ARM part {part}"
    names = dict(entry.split(" ") for entry in _PARTS.get(maker, "").split(", ") if entry)
    return names.get(f"{number:03x}") or f"{_IMPLEMENTERS.get(maker, f'implementer {implementer}')} part {part}"
