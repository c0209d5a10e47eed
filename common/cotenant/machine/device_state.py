"""The state of accelerators that bears on a measurement: who uses them, their modes, limits and errors.

NVIDIA's only, through NVML; of other vendors' devices nothing is known here.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cotenant.machine.nvml import asked, handles, session, text
from cotenant.procfs import read_text

# Values of nvml.h, which stand-ins and old bindings need not name.
_UNCORRECTED, _SINCE_REBOOT = 1, 0
_COMPUTE_MODES = {0: "default", 1: "exclusive", 2: "prohibited", 3: "exclusive"}
_SLOWDOWNS = {0x8: "hardware", 0x20: "heat", 0x40: "heat", 0x80: "power brake"}
_POWER_POLICY, _THERMAL_POLICY = 0, 1


@dataclass(frozen=True, slots=True)
class DeviceProcess:
    """A process that has a context on a device; `name` is "" where it lives in another PID namespace."""

    pid: int
    name: str
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class DeviceState:
    """One device; None is what it does not tell."""

    index: int
    pci: str
    name: str
    processes: tuple[DeviceProcess, ...]
    mps: bool
    mig: bool
    mig_pending: bool
    persistent: bool | None
    ecc: bool | None
    uncorrected_errors: int | None
    repair_pending: bool
    compute_mode: str | None
    power_limit_w: float | None
    power_default_w: float | None
    slowed_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Slowed:
    """For how long a device's clocks were held down since its driver was loaded."""

    index: int
    power_ns: int | None
    thermal_ns: int | None


def device_states(pci: Collection[str], root: Path = Path("/"), nvml: Any = None) -> tuple[DeviceState, ...]:
    """Return the state of the NVIDIA devices with these PCI ids; none without driver or library."""
    with session(root, nvml) as nvml:
        return tuple(_state(nvml, root, *device) for device in chosen(nvml, pci))


def slowed(pci: Collection[str], root: Path = Path("/"), nvml: Any = None) -> tuple[Slowed, ...]:
    """Return how long each of the NVIDIA devices with these PCI ids was held down."""
    with session(root, nvml) as nvml:
        return tuple(
            Slowed(index, _violated(nvml, handle, _POWER_POLICY), _violated(nvml, handle, _THERMAL_POLICY))
            for index, _, handle in chosen(nvml, pci)
        )


def chosen(nvml: Any, pci: Collection[str]) -> list[tuple[int, str, Any]]:
    """Return index, PCI id and handle of the devices with these PCI ids, counted among all as CUDA does."""
    if nvml is None:
        return []
    found: list[tuple[str, Any]] = asked(nvml, lambda: handles(nvml), [])
    return [(index, place, handle) for index, (place, handle) in enumerate(found) if place in pci]


def _state(nvml: Any, root: Path, index: int, pci: str, handle: Any) -> DeviceState:
    mig, mig_pending = asked(nvml, lambda: nvml.nvmlDeviceGetMigMode(handle), (0, 0))
    ecc = asked(nvml, lambda: nvml.nvmlDeviceGetEccMode(handle)[0], None)
    persistent = asked(nvml, lambda: nvml.nvmlDeviceGetPersistenceMode(handle), None)
    mode = asked(nvml, lambda: nvml.nvmlDeviceGetComputeMode(handle), None)
    reasons = asked(nvml, lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle), 0)
    errors = asked(nvml, lambda: nvml.nvmlDeviceGetTotalEccErrors(handle, _UNCORRECTED, _SINCE_REBOOT), None)
    return DeviceState(
        index=index,
        pci=pci,
        name=asked(nvml, lambda: text(nvml.nvmlDeviceGetName(handle)), "NVIDIA device"),
        processes=processes_on(nvml, root, handle),
        mps=bool(asked(nvml, lambda: nvml.nvmlDeviceGetMPSComputeRunningProcesses(handle), [])),
        mig=bool(mig),
        mig_pending=mig != mig_pending,
        persistent=None if persistent is None else bool(persistent),
        ecc=None if ecc is None else bool(ecc),
        uncorrected_errors=errors,
        repair_pending=_repair_pending(nvml, handle),
        compute_mode=_COMPUTE_MODES.get(mode) if mode is not None else None,
        power_limit_w=_watts(asked(nvml, lambda: nvml.nvmlDeviceGetPowerManagementLimit(handle), None)),
        power_default_w=_watts(asked(nvml, lambda: nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle), None)),
        slowed_by=slowdowns(reasons),
    )


def slowdowns(reasons: int) -> tuple[str, ...]:
    """Return in words why clocks are held down, from NVML's bits; a power limit at work is no fault, and left out."""
    return tuple(sorted({word for bit, word in _SLOWDOWNS.items() if reasons & bit}))


def processes_on(nvml: Any, root: Path, handle: Any) -> tuple[DeviceProcess, ...]:
    """Return who has a context on a device, clients of MPS and of graphics included, each process once."""
    questions = (
        nvml.nvmlDeviceGetComputeRunningProcesses,
        nvml.nvmlDeviceGetMPSComputeRunningProcesses,
        nvml.nvmlDeviceGetGraphicsRunningProcesses,
    )
    found: dict[int, DeviceProcess] = {}
    for question in questions:
        running: list[Any] = asked(nvml, partial(question, handle), [])
        for one in running:
            name = read_text(root / f"proc/{one.pid}/comm")
            found.setdefault(one.pid, DeviceProcess(one.pid, name, one.usedGpuMemory))
    return tuple(found[pid] for pid in sorted(found))


def _repair_pending(nvml: Any, handle: Any) -> bool:
    """Do bad rows (since Ampere) or pages (before) wait for a reset to be taken out of use?"""
    rows = asked(nvml, lambda: nvml.nvmlDeviceGetRemappedRows(handle), (0, 0, 0, 0))
    pages = asked(nvml, lambda: nvml.nvmlDeviceGetRetiredPagesPendingStatus(handle), 0)
    return bool(rows[2] or pages)


def _violated(nvml: Any, handle: Any, policy: int) -> int | None:
    return asked(nvml, lambda: int(nvml.nvmlDeviceGetViolationStatus(handle, policy).violationTime), None)


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000
