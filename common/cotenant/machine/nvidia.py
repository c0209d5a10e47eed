"""NVIDIA devices through NVML, which neither makes a context nor imports torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from cotenant.machine.accelerators import Accelerator, pci_node
from cotenant.machine.visibility import select

_T = TypeVar("_T")

# Without one of these there is no driver, and the import of pynvml (30 ms) is saved. dxg is the one of WSL.
_SIGNS = ("dev/nvidiactl", "proc/driver/nvidia/version", "dev/dxg")


def nvidia_accelerators(root: Path, environ: Mapping[str, str], nvml: Any = None) -> tuple[Accelerator, ...]:
    """Return what the caller may use in CUDA's order; none without driver or library. `nvml`: a stand-in."""
    nvml = _library(root) if nvml is None else nvml
    if nvml is None:
        return ()
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return ()
    try:
        return _visible(_devices(root, nvml), environ.get("CUDA_VISIBLE_DEVICES"))
    except nvml.NVMLError:
        return ()
    finally:
        nvml.nvmlShutdown()


def _library(root: Path) -> Any:
    if not any((root / sign).exists() for sign in _SIGNS):
        return None
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


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
    driver = _text(nvml.nvmlSystemGetDriverVersion())
    handles: list[tuple[str, Any]] = []
    for position in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(position)
            handles.append((_pci(_text(nvml.nvmlDeviceGetPciInfo(handle).busId)), handle))
        except nvml.NVMLError:
            # Lost, or not ours by a device rule: CUDA does not count it either.
            continue
    handles.sort(key=lambda pair: pair[0])
    devices: list[_Device] = []
    for index, (pci, handle) in enumerate(handles):
        device = _accelerator(nvml, handle, index, pci, pci_node(root, pci), driver)
        devices.append((device, _partitions(nvml, handle, device)))
    return devices


def _accelerator(nvml: Any, handle: Any, index: int, pci: str, node: int, driver: str) -> Accelerator:
    return Accelerator(
        index=index,
        vendor="nvidia",
        name=_asked(nvml, lambda: _text(nvml.nvmlDeviceGetName(handle)), "NVIDIA device"),
        uuid=_asked(nvml, lambda: _text(nvml.nvmlDeviceGetUUID(handle)), ""),
        pci=pci,
        node=node,
        # A device that shares the host's memory does not answer.
        memory_bytes=_asked(nvml, lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).total), 0),
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


def _asked(nvml: Any, question: Callable[[], _T], unknown: _T) -> _T:
    try:
        return question()
    except nvml.NVMLError:
        return unknown


def _pci(bus_id: str) -> str:
    """Return NVML's `00000000:3B:00.0` as sysfs writes it, `0000:3b:00.0`."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
