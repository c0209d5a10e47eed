"""What an accelerator is, and the variables that show a tenant its own ones only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cotenant.procfs import read_int

Vendor = Literal["nvidia", "amd", "intel"]

VISIBILITY = {
    "nvidia": ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"),
    "amd": ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"),
    "intel": ("ZE_AFFINITY_MASK",),
}
"""What to take out of an inherited environment before `visible_variables` goes in: an inherited
`HIP_VISIBLE_DEVICES=3` would hide the one device that `ROCR_VISIBLE_DEVICES` leaves."""


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
    """Its NUMA node, -1 where the host does not say."""
    memory_bytes: int
    """0 where the driver does not say."""
    driver: str

    @property
    def is_partition(self) -> bool:
        """Is this a part of a device (MIG), not a whole one?"""
        return self.uuid.startswith("MIG-")


def visible_variables(accelerators: Sequence[Accelerator]) -> dict[str, str]:
    """Return the environment that shows one slice's accelerators only; nothing for a slice without one."""
    variables: dict[str, str] = {}
    nvidia = [a.uuid or str(a.index) for a in accelerators if a.vendor == "nvidia"]
    amd = [str(a.index) for a in accelerators if a.vendor == "amd"]
    intel = [str(a.index) for a in accelerators if a.vendor == "intel"]
    if nvidia:
        variables |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(nvidia)}
    if amd:
        variables["ROCR_VISIBLE_DEVICES"] = ",".join(amd)
    if intel:
        variables["ZE_AFFINITY_MASK"] = ",".join(intel)
    return variables


def pci_node(root: Path, pci: str) -> int:
    """Return the NUMA node of a PCI device (`0000:3b:00.0`), -1 where it is unknown."""
    node = read_int(root / "sys/bus/pci/devices" / pci / "numa_node")
    return -1 if node is None else node
