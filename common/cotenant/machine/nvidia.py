"""NVIDIA's devices and their state through NVML, which neither makes a context nor imports torch."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cotenant.machine.accelerators import HIDE_ALL, Accelerator, pci_node, visible_positions
from cotenant.machine.wheels import has_nvidia_nodes
from cotenant.procfs import numbered, read_text

# Without one of these there is no driver, and the import of pynvml (30 ms) is saved. dxg is WSL's.
_SIGNS = ("dev/nvidiactl", "proc/driver/nvidia/version", "dev/dxg")
# Values of nvml.h, which stand-ins and old bindings need not name.
_UNCORRECTED, _SINCE_REBOOT = 1, 0
_COMPUTE_MODES = {0: "default", 1: "exclusive", 2: "prohibited", 3: "exclusive"}
_SLOWDOWNS = {0x8: "hardware", 0x20: "heat", 0x40: "heat", 0x80: "power brake"}
_POWER_POLICY, _THERMAL_POLICY = 0, 1
_POLICY_FIELDS = {_POWER_POLICY: 74, _THERMAL_POLICY: 75}
_SM_CLOCK = 1
_REASONS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
"""The successor, and the call that CUDA 14 removes."""
_MPS_CONTROL = "nvidia-cuda-mps"
"""The kernel keeps 15 characters of `nvidia-cuda-mps-control`."""
_MEMORY_WITH_RESERVED = 0x2000028
"""nvmlMemory_v2 of nvml.h: with the part of driver and firmware, which the total includes and CUDA does not give."""
MPS_PROCESSES = "nvmlDeviceGetMPSComputeRunningProcesses"
_PROCESSES = (
    "nvmlDeviceGetComputeRunningProcesses",
    MPS_PROCESSES,
    "nvmlDeviceGetGraphicsRunningProcesses",
)

_CORES_OF_64 = dict.fromkeys(((6, 0), (7, 0), (7, 2), (7, 5), (8, 0)), 64)
"""Compute capabilities with 64 fp32 cores in a multiprocessor; all others since Maxwell have 128 (NVIDIA, CUDA C++
Programming Guide, "Compute Capabilities")."""

Told = Callable[..., Any]
"""Asks a device: a function of NVML and further arguments in, the answer out; `unknown` (None) if it has none."""

_Device = tuple[Accelerator, tuple[Accelerator, ...]]
"""A device as CUDA counts it, and its usable parts: itself, or its partitions."""


@dataclass(frozen=True, slots=True)
class DeviceProcess:
    """A process that has a context on a device; `name` is "" if it lives in another PID namespace."""

    pid: int
    name: str
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class DeviceState:
    """A device's state as it affects a measurement: users, modes, limits, errors; None if it does not tell."""

    index: int
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
    """The time for which a device's clocks were held down since its driver was loaded."""

    index: int
    power_ns: int | None
    thermal_ns: int | None


def has_driver(root: Path) -> bool:
    """Return whether there is any sign of NVIDIA's driver on the host below `root`."""
    return any((root / sign).exists() for sign in _SIGNS) or has_nvidia_nodes(root)


def silence(root: Path, environ: Mapping[str, str], nvml: Any = None) -> str:
    """Return in words why no device answers although there is a driver; "" without one.

    It is "", too, if CUDA_VISIBLE_DEVICES hides all on purpose. `nvml`: a stand-in for pynvml.
    """
    if not has_driver(root) or environ.get("CUDA_VISIBLE_DEVICES") in HIDE_ALL:
        return ""
    nvml = _library(root) if nvml is None else nvml
    if nvml is None:
        return "Python lacks nvidia-ml-py"
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return f"its driver answers '{str(error).rstrip('.')}'"
    nvml.nvmlShutdown()
    return "its driver shows this process no device"


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


def _library(root: Path) -> Any:
    if not has_driver(root):
        return None
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def ask(nvml: Any, unknown: Any, function: str, *arguments: Any) -> Any:
    """Return NVML's answer, or `unknown` if the device, its driver or the library does not give one."""
    # For a function missing in the driver's library the bindings raise one of three errors.
    mismatch = getattr(nvml, "NVMLLibraryMismatchError", nvml.NVMLError)
    try:
        return getattr(nvml, function)(*arguments)
    except (nvml.NVMLError, mismatch, AttributeError):
        return unknown


def _told(nvml: Any, handle: Any, function: str, *arguments: Any, unknown: Any = None) -> Any:
    return ask(nvml, unknown, function, handle, *arguments)


def first_told(told: Told, functions: Collection[str], *arguments: Any) -> Any:
    """Return the first answer of these functions: of a call that NVML will lose, or of its successor."""
    answers = (told(function, *arguments) for function in functions)
    return next((answer for answer in answers if answer is not None), None)


def clock_reasons(told: Told) -> Any:
    """Return NVML's bits for the reasons why a device's clocks are held down now."""
    return first_told(told, _REASONS)


def switched(mode: Any) -> bool | None:
    """Return whether a mode of NVML is on, None if the device has none."""
    return None if mode is None else bool(mode)


def devices_told(nvml: Any) -> list[tuple[int, str, Told]]:
    """Return index, PCI id and answers of each device, in the order of PCI ids; none without a library."""
    devices: list[tuple[str, Told]] = []
    for position in range(ask(nvml, 0, "nvmlDeviceGetCount") if nvml is not None else 0):
        handle = ask(nvml, None, "nvmlDeviceGetHandleByIndex", position)
        told = functools.partial(_told, nvml, handle)
        place = told("nvmlDeviceGetPciInfo")
        # A device that does not answer is lost, or not ours by a device rule: CUDA does not count it either.
        if handle is not None and place is not None:
            devices.append((_pci(place.busId), told))
    devices.sort(key=lambda device: device[0])
    return [(index, pci, told) for index, (pci, told) in enumerate(devices)]


def _pci(bus_id: str) -> str:
    """Return NVML's `00000000:3B:00.0` as sysfs writes it, `0000:3b:00.0`."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def nvidia_accelerators(root: Path, environ: Mapping[str, str], nvml: Any = None) -> tuple[Accelerator, ...]:
    """Return the devices the caller may use, in CUDA's order; none without driver or library. `nvml`: a stand-in."""
    with session(root, nvml) as nvml:
        driver = ask(nvml, None, "nvmlSystemGetDriverVersion") if nvml is not None else None
        if driver is None:
            return ()
        devices: list[_Device] = []
        speeds: dict[int, int] = {}
        for index, pci, told in devices_told(nvml):
            device = _accelerator(told, index, pci, pci_node(root, pci), driver)
            devices.append((device, _partitions(nvml, told, device)))
            cores = told("nvmlDeviceGetNumGpuCores", unknown=0)
            speeds[index] = cores * told("nvmlDeviceGetMaxClockInfo", _SM_CLOCK, unknown=0)
        value = environ.get("CUDA_VISIBLE_DEVICES")
        if value is not None and environ.get("CUDA_DEVICE_ORDER", "FASTEST_FIRST") == "FASTEST_FIRST":
            # CUDA's default order; equally fast devices are ordered by their PCI id.
            devices.sort(key=lambda pair: -speeds[pair[0].index])
        return _visible(devices, value)


def _visible(devices: list[_Device], value: str | None) -> tuple[Accelerator, ...]:
    every = tuple(part for _, parts in devices for part in parts)
    if value is None:
        return every
    if value.strip().startswith("MIG-"):
        return tuple(every[position] for position in visible_positions(value, [part.uuid for part in every]))
    positions = visible_positions(value, [device.uuid for device, _ in devices])
    return tuple(part for position in positions for part in devices[position][1])


def _accelerator(told: Told, index: int, pci: str, node: int, driver: str) -> Accelerator:
    memory = told("nvmlDeviceGetMemoryInfo", _MEMORY_WITH_RESERVED)
    if memory is None:  # Drivers before 510 have the older form.
        memory = told("nvmlDeviceGetMemoryInfo")
    return Accelerator(
        index=index,
        vendor="nvidia",
        name=told("nvmlDeviceGetName", unknown="NVIDIA device"),
        uuid=told("nvmlDeviceGetUUID", unknown=""),
        pci=pci,
        node=node,
        # A device that shares the host's memory does not answer.
        memory_bytes=0 if memory is None else int(memory.total - getattr(memory, "reserved", 0)),
        driver=driver,
    )


def _partitions(nvml: Any, told: Told, device: Accelerator) -> tuple[Accelerator, ...]:
    """Return the device itself, or its MIG partitions if it is divided: then it cannot be used whole."""
    current, _ = told("nvmlDeviceGetMigMode", unknown=(0, 0))
    if not current:
        return (device,)
    numbers = range(told("nvmlDeviceGetMaxMigDeviceCount", unknown=0))
    parts = (told("nvmlDeviceGetMigDeviceHandleByIndex", number) for number in numbers)
    return tuple(
        _accelerator(functools.partial(_told, nvml, part), device.index, device.pci, device.node, device.driver)
        for part in parts
        if part is not None
    )


def device_states(pci: Collection[str], root: Path = Path("/"), nvml: Any = None) -> tuple[DeviceState, ...]:
    """Return the state of the NVIDIA devices with these PCI ids; none without driver or library."""
    with session(root, nvml) as nvml:
        return tuple(_state(told, root, index) for index, place, told in devices_told(nvml) if place in pci)


def identified(uuid: str, version: tuple[int, int]) -> tuple[str, int | None]:
    """Return the driver's name of the device that CUDA calls `uuid`, and its number of multiprocessors.

    Under MIG CUDA gives the instance's uuid: the instance is the device then. All of its multiprocessors count, even if
    MPS leaves a process fewer; None if unknown. `version` is its compute capability.
    """
    whole, instance = f"GPU-{uuid}", f"MIG-{uuid}"
    with session(Path("/")) as nvml:
        if nvml is None:
            return whole, None
        if (handle := ask(nvml, None, "nvmlDeviceGetHandleByUUID", whole)) is not None:
            cores: int = ask(nvml, 0, "nvmlDeviceGetNumGpuCores", handle)
            return whole, cores // _CORES_OF_64.get(version, 128) or None
        if (handle := ask(nvml, None, "nvmlDeviceGetHandleByUUID", instance)) is not None:
            attributes = ask(nvml, None, "nvmlDeviceGetAttributes", handle)
            return instance, None if attributes is None else int(attributes.multiprocessorCount)
        return whole, None


def slowed(pci: Collection[str], root: Path = Path("/"), nvml: Any = None) -> tuple[Slowed, ...]:
    """Return how long each of the NVIDIA devices with these PCI ids was held down."""
    with session(root, nvml) as nvml:
        return tuple(
            Slowed(index, _violated_ns(told, _POWER_POLICY), _violated_ns(told, _THERMAL_POLICY))
            for index, place, told in devices_told(nvml)
            if place in pci
        )


def _state(told: Told, root: Path, index: int) -> DeviceState:
    mig, mig_pending = told("nvmlDeviceGetMigMode", unknown=(0, 0))
    ecc, _ = told("nvmlDeviceGetEccMode", unknown=(None, None))
    # Bad rows (since Ampere) or pages (before) that wait for a reset to be taken out of use.
    rows = told("nvmlDeviceGetRemappedRows", unknown=(0, 0, 0, 0))
    pages = told("nvmlDeviceGetRetiredPagesPendingStatus")
    return DeviceState(
        index=index,
        processes=processes_on(told, root),
        mps=mps_daemon(root, os.environ) or bool(told(MPS_PROCESSES)),
        mig=bool(mig),
        mig_pending=mig != mig_pending,
        persistent=switched(told("nvmlDeviceGetPersistenceMode")),
        ecc=switched(ecc),
        uncorrected_errors=told("nvmlDeviceGetTotalEccErrors", _UNCORRECTED, _SINCE_REBOOT),
        repair_pending=bool(rows[2] or pages),
        compute_mode=_COMPUTE_MODES.get(told("nvmlDeviceGetComputeMode")),
        power_limit_w=watts(told("nvmlDeviceGetPowerManagementLimit")),
        power_default_w=watts(told("nvmlDeviceGetPowerManagementDefaultLimit")),
        slowed_by=slowdowns(clock_reasons(told) or 0),
    )


def mps_daemon(root: Path, environ: Mapping[str, str]) -> bool:
    """Return whether a tenant would become an MPS client: the control process lives, with its pipe where clients look.

    NVML shows neither before the first client.
    """
    if not (root / mps_pipes(environ).relative_to("/") / "control").exists():
        return False
    return any(read_text(root / f"proc/{pid}/comm") == _MPS_CONTROL for pid in numbered(root / "proc"))


def mps_pipes(environ: Mapping[str, str]) -> Path:
    """Return the directory in which clients of MPS look for its daemon."""
    return Path("/", environ.get("CUDA_MPS_PIPE_DIRECTORY") or "tmp/nvidia-mps")


def slowdowns(reasons: int) -> tuple[str, ...]:
    """Return in words why clocks are held down, from NVML's bits; an active power limit is no fault, and left out."""
    return tuple(sorted({word for bit, word in _SLOWDOWNS.items() if reasons & bit}))


def processes_on(told: Told, root: Path) -> tuple[DeviceProcess, ...]:
    """Return the processes with a context on a device, clients of MPS and of graphics included, each once."""
    users: dict[int, DeviceProcess] = {}
    for function in _PROCESSES:
        for process in told(function, unknown=[]):
            name = read_text(root / f"proc/{process.pid}/comm")
            users.setdefault(process.pid, DeviceProcess(process.pid, name, process.usedGpuMemory))
    return tuple(users[pid] for pid in sorted(users))


def _violated_ns(told: Told, policy: int) -> int | None:
    if (status := told("nvmlDeviceGetViolationStatus", policy)) is not None:
        return int(status.violationTime)
    # CUDA 14 removes that call; the field counts the same nanoseconds.
    values = told("nvmlDeviceGetFieldValues", [_POLICY_FIELDS[policy]], unknown=())
    return next((int(field.value.ullVal) for field in values if field.nvmlReturn == 0), None)


def watts(milliwatts: int | None) -> float | None:
    """Return NVML's milliwatts as watts, None without them."""
    return None if milliwatts is None else milliwatts / 1000
