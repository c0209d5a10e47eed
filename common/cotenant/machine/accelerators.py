"""Describes accelerators, their peak rates, and the variables that show a tenant only its own ones."""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cotenant.procfs import read_int

Vendor = Literal["nvidia", "amd", "intel"]

VISIBILITY = {
    "nvidia": ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"),
    "amd": ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"),
    "intel": ("ZE_AFFINITY_MASK", "ZE_FLAT_DEVICE_HIERARCHY"),
}
"""Variables to take out of an inherited environment before `visible_variables` goes in: an inherited
`HIP_VISIBLE_DEVICES=3` would hide the one device that `ROCR_VISIBLE_DEVICES` leaves."""

HIDE_ALL = ("", "-1", "NoDevFiles")
"""Values of CUDA_VISIBLE_DEVICES that hide every device on purpose."""

_PEAKS = Path(__file__).with_name("peaks.csv")
_PART = re.compile(r"\bMIG\b|-\d+[ABCQV]\b")
_NO_VARIANT = r"(?! ?(?:Ti|SUPER|D|Laptop|Mobile|Max-Q)\b)"


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One device that the caller may use; `index` is its number on this host, as the vendor's tools count.

    Partitions of one NVIDIA device (MIG) are accelerators of their own, with the device's index and PCI id.
    """

    index: int
    vendor: Vendor
    name: str
    uuid: str
    pci: str
    node: int
    """Its NUMA node, -1 if the host does not say."""
    memory_bytes: int
    """Memory that programs can have, without the driver's own; 0 if the driver does not say."""
    driver: str

    @property
    def is_partition(self) -> bool:
        """Return whether this is a part of a device (MIG), not a whole one."""
        return self.uuid.startswith("MIG-")


def visible_variables(accelerators: Sequence[Accelerator]) -> dict[str, str]:
    """Return the environment that shows one slice's accelerators only; nothing for a slice without one."""
    variables: dict[str, str] = {}
    for vendor, (shown, *_) in VISIBILITY.items():
        devices = [device for device in accelerators if device.vendor == vendor]
        if devices:
            variables[shown] = ",".join((vendor == "nvidia" and device.uuid) or str(device.index) for device in devices)
    if "CUDA_VISIBLE_DEVICES" in variables:
        variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    if "ZE_AFFINITY_MASK" in variables:
        # By default numbers count tiles: the second card of two-tile cards would be the first card's other half.
        variables["ZE_FLAT_DEVICE_HIERARCHY"] = "COMPOSITE"
    return variables


def visible_positions(value: str, uuids: Sequence[str]) -> tuple[int, ...]:
    """Return the positions that a visible-devices variable chooses, in the value's own order, by CUDA's rules.

    Entries are positions, or (beginning with a letter) UUIDs or prefixes of one that fit one device only. The
    first invalid entry ends the list, a repeated one voids it; an empty value and -1 choose nothing.
    https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
    """
    entries = [entry.strip() for entry in value.split(",")]
    by_uuid = entries[0][:1].isalpha()
    positions: list[int] = []
    for entry in entries:
        position = _by_uuid(entry, uuids) if by_uuid else _by_number(entry, len(uuids))
        if position is None:
            break
        if position in positions:
            return ()
        positions.append(position)
    return tuple(positions)


def _by_number(entry: str, total: int) -> int | None:
    # The entry is read as by strtol: `1gpu` is 1.
    number = re.match(r"\+?([0-9]+)", entry)
    position = int(number[1]) if number else -1
    return position if 0 <= position < total else None


def _by_uuid(entry: str, uuids: Sequence[str]) -> int | None:
    fitting = [position for position, uuid in enumerate(uuids) if entry and uuid.startswith(entry)]
    return fitting[0] if len(fitting) == 1 else None


def pci_node(root: Path, pci: str) -> int:
    """Return the NUMA node of a PCI device (`0000:3b:00.0`), -1 if it is unknown."""
    node = read_int(root / "sys/bus/pci/devices" / pci / "numa_node")
    return -1 if node is None else node


@dataclass(frozen=True, slots=True)
class Peak:
    """Dense products in one precision, in TFLOP/s, as the maker states it (the table `peaks.csv` beside this file).

    `pattern` is whole words of the names that the driver gives.
    """

    pattern: str
    precision: str
    tflops: float
    source: str


@functools.cache
def peaks() -> tuple[Peak, ...]:
    """Return the table, in its own order."""
    with _PEAKS.open(newline="", encoding="utf-8") as file:
        return tuple(
            Peak(row["pattern"], row["precision"], float(row["tflops"]), row["source"]) for row in csv.DictReader(file)
        )


def is_part(device: str) -> bool:
    """Return whether a name, or a pattern of names, is of a part of a device (MIG, vGPU), not of a whole one."""
    return _PART.search(device) is not None


def peak_of(device: str, precision: str) -> Peak | None:
    """Return the peak of a device by its name; None for an unknown one, and for a part of one (MIG, vGPU).

    Of several patterns that fit, the longest counts (`H200 NVL` is no `H200`), then the fastest: a driver may give
    two devices that it cannot tell apart the same name.
    """
    if is_part(device):
        return None
    fitting = [peak for peak in peaks() if peak.precision == precision and _fits(peak.pattern, device)]
    return max(fitting, key=lambda peak: (len(peak.pattern), peak.tflops), default=None)


def _fits(pattern: str, device: str) -> bool:
    # `A10` is in the name of an A100, too, and an `RTX 3090 Ti` is another device.
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(pattern)}(?![A-Za-z0-9]){_NO_VARIANT}", device) is not None
