"""A session with NVIDIA's management library, which neither makes a context nor imports torch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

_T = TypeVar("_T")

# Without one of these there is no driver, and the import of pynvml (30 ms) is saved. dxg is the one of WSL.
_SIGNS = ("dev/nvidiactl", "proc/driver/nvidia/version", "dev/dxg")


def has_driver(root: Path) -> bool:
    """Is there any sign of NVIDIA's driver on the host below `root`?"""
    return any((root / sign).exists() for sign in _SIGNS)


@contextlib.contextmanager
def session(root: Path, nvml: Any = None) -> Iterator[Any]:
    """Yield the started library, or None without driver or library. `nvml`: a stand-in for pynvml."""
    nvml = _library(root) if nvml is None else nvml
    if nvml is not None:
        try:
            nvml.nvmlInit()
        except nvml.NVMLError:
            nvml = None
    try:
        yield nvml
    finally:
        if nvml is not None:
            nvml.nvmlShutdown()


def asked(nvml: Any, question: Callable[[], _T], unknown: _T) -> _T:
    """Return the answer, or `unknown` where the device, its driver or the library does not give one."""
    try:
        return question()
    except nvml.NVMLError:
        return unknown


def handles(nvml: Any) -> list[tuple[str, Any]]:
    """Return the PCI id and the handle of each device, by PCI id as CUDA counts them. Raises nvml.NVMLError."""
    found: list[tuple[str, Any]] = []
    for position in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(position)
            found.append((_pci(text(nvml.nvmlDeviceGetPciInfo(handle).busId)), handle))
        except nvml.NVMLError:
            # Lost, or not ours by a device rule: CUDA does not count it either.
            continue
    return sorted(found, key=lambda pair: pair[0])


def text(value: str | bytes) -> str:
    """Return what NVML says as text: older versions of its bindings say bytes."""
    return value.decode() if isinstance(value, bytes) else value


def _pci(bus_id: str) -> str:
    """Return NVML's `00000000:3B:00.0` as sysfs writes it, `0000:3b:00.0`."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def _library(root: Path) -> Any:
    if not has_driver(root):
        return None
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml
