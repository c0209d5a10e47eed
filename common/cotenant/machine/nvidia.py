"""NVIDIA devices through NVML, which neither makes a context nor imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cotenant.machine.accelerators import Accelerator, pci_node
from cotenant.machine.nvml import asked, handles, session, text
from cotenant.machine.visibility import select


def nvidia_accelerators(root: Path, environ: Mapping[str, str], nvml: Any = None) -> tuple[Accelerator, ...]:
    """Return what the caller may use in CUDA's order; none without driver or library. `nvml`: a stand-in."""
    with session(root, nvml) as nvml:
        if nvml is None:
            return ()
        try:
            return _visible(_devices(root, nvml), environ.get("CUDA_VISIBLE_DEVICES"))
        except nvml.NVMLError:
            return ()


# A device as CUDA counts it, and what can be used of it: itself, or its partitions.
_Device = tuple[Accelerator, tuple[Accelerator, ...]]


def _visible(devices: list[_Device], value: str | None) -> tuple[Accelerator, ...]:
    if value is None:
        return tuple(part for _, parts in devices for part in parts)
    if value.strip().startswith("MIG-"):
        every = [part for _, parts in devices for part in parts]
        return tuple(every[position] for position in select(value, [part.uuid for part in every]))
    chosen = select(value, [device.uuid for device, _ in devices])
    return tuple(part for position in chosen for part in devices[position][1])


def _devices(root: Path, nvml: Any) -> list[_Device]:
    driver = text(nvml.nvmlSystemGetDriverVersion())
    devices: list[_Device] = []
    for index, (pci, handle) in enumerate(handles(nvml)):
        device = _accelerator(nvml, handle, index, pci, pci_node(root, pci), driver)
        devices.append((device, _partitions(nvml, handle, device)))
    return devices


def _accelerator(nvml: Any, handle: Any, index: int, pci: str, node: int, driver: str) -> Accelerator:
    return Accelerator(
        index=index,
        vendor="nvidia",
        name=asked(nvml, lambda: text(nvml.nvmlDeviceGetName(handle)), "NVIDIA device"),
        uuid=asked(nvml, lambda: text(nvml.nvmlDeviceGetUUID(handle)), ""),
        pci=pci,
        node=node,
        # A device that shares the host's memory does not answer.
        memory_bytes=asked(nvml, lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).total), 0),
        driver=driver,
    )


def _partitions(nvml: Any, handle: Any, device: Accelerator) -> tuple[Accelerator, ...]:
    """Return the device itself, or its MIG partitions where it is cut up: then it cannot be used whole."""
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError:
        current = 0
    if not current:
        return (device,)
    parts: list[Accelerator] = []
    for number in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
        except nvml.NVMLError:
            continue
        parts.append(_accelerator(nvml, part, device.index, device.pci, device.node, device.driver))
    return tuple(parts)
