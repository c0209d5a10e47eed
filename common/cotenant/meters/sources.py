"""The libraries that report on devices: NVIDIA's NVML, and ROCm's amdsmi if it can be imported."""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cotenant.machine.accelerators import Accelerator
from cotenant.machine.nvidia import (
    MPS_PROCESSES,
    DeviceProcess,
    Told,
    clock_reasons,
    devices_told,
    first_told,
    processes_on,
    session,
    slowdowns,
    watts,
)
from cotenant.meters.devices import Reading

# Values of nvml.h, which stand-ins and old bindings need not name.
_CORE_SENSOR, _SM_CLOCK, _MEMORY_CLOCK = 0, 1, 2
_AT_POWER_LIMIT = 0x4
_TEMPERATURE = ("nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature")
"""The successor, and the call that CUDA 14 removes."""


class NvidiaSource:
    """Devices by their own uuid; one divided by MIG is read as a whole, as its parts report nothing of this."""

    def __init__(self, nvml: Any, pci: Collection[str], root: Path = Path("/")) -> None:
        self._root = root
        self._devices = [
            (told("nvmlDeviceGetUUID", unknown=place), index, told)
            for index, place, told in devices_told(nvml)
            if place in pci
        ]

    def read(self) -> dict[str, Reading]:
        return {uuid: self._reading(index, told) for uuid, index, told in self._devices}

    def _reading(self, index: int, told: Told) -> Reading:
        load = told("nvmlDeviceGetUtilizationRates")
        memory = told("nvmlDeviceGetMemoryInfo")
        energy_mj = told("nvmlDeviceGetTotalEnergyConsumption")
        reasons = clock_reasons(told)
        return Reading(
            index=index,
            load_percent=None if load is None else load.gpu,
            memory_load_percent=None if load is None else load.memory,
            memory_used_bytes=None if memory is None else memory.used,
            clock_mhz=told("nvmlDeviceGetClockInfo", _SM_CLOCK),
            memory_clock_mhz=told("nvmlDeviceGetClockInfo", _MEMORY_CLOCK),
            temperature_c=first_told(told, _TEMPERATURE, _CORE_SENSOR),
            power_w=watts(told("nvmlDeviceGetPowerUsage")),
            energy_j=None if energy_mj is None else energy_mj / 1000,
            slowed_by=None if reasons is None else _words(reasons),
            processes=processes_on(told, self._root),
            mps_clients=None if (clients := told(MPS_PROCESSES)) is None else len(clients),
        )


@contextlib.contextmanager
def nvidia_source(pci: Collection[str], root: Path = Path("/"), nvml: Any = None) -> Iterator[NvidiaSource | None]:
    """Yield a source of the devices with these PCI ids, None without driver or library. `nvml`: a stand-in."""
    with session(root, nvml) as started:
        yield None if started is None else NvidiaSource(started, pci, root)


def _words(reasons: int) -> tuple[str, ...]:
    return (*slowdowns(reasons), *(("power limit",) if reasons & _AT_POWER_LIMIT else ()))


# Groups of the bits that amdgpu gives every device alike: SMU_THROTTLER_* in its amdgpu_smu.h.
_HELD_NOW = {"power limit": 0xFFFF_FFFF, "heat": 0xFF_FFFF << 32, "hardware": 0xFF << 56}
# Counters of gpu_metrics since version 1.6, for devices that do not report those bits.
_HELD_SO_LONG = {
    "ppt_residency_acc": "power limit",
    "prochot_residency_acc": "heat",
    "socket_thm_residency_acc": "heat",
    "vr_thm_residency_acc": "heat",
    "hbm_thm_residency_acc": "heat",
}
_NOT_AVAILABLE = (0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF)
"""The value that older versions of the library return for `N/A`."""
_NO_NUMBER = (0xFFFF, *_NOT_AVAILABLE)
"""The same for values that are neither bits nor counts: loads, clocks, heat and power may be words of 16 bits."""


class AmdSource:
    """Devices by the uuid that the kernel's driver gives them, found by their PCI id."""

    def __init__(self, smi: Any, accelerators: Sequence[Accelerator]) -> None:
        self._smi = smi
        self._held: dict[int, dict[str, int]] = {}
        devices = {device.pci: device for device in accelerators if device.vendor == "amd"}
        handles: list[Any] = _ask(lambda: list(smi.amdsmi_get_processor_handles())) or []
        places = [_ask(lambda processor: smi.amdsmi_get_gpu_device_bdf(processor), handle) for handle in handles]
        self._devices = [
            (devices[place], handle) for place, handle in zip(places, handles, strict=True) if place in devices
        ]

    def read(self) -> dict[str, Reading]:
        return {device.uuid or device.pci: self._reading(device.index, handle) for device, handle in self._devices}

    def _reading(self, index: int, handle: Any) -> Reading:
        smi = self._smi
        load = _mapping(lambda: smi.amdsmi_get_gpu_activity(handle))
        power = _mapping(lambda: smi.amdsmi_get_power_info(handle))
        energy = _mapping(lambda: smi.amdsmi_get_energy_count(handle))
        core = _mapping(lambda: smi.amdsmi_get_clock_info(handle, smi.AmdSmiClkType.GFX))
        memory = _mapping(lambda: smi.amdsmi_get_clock_info(handle, smi.AmdSmiClkType.MEM))
        hotspot = _ask(
            lambda: smi.amdsmi_get_temp_metric(
                handle, smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureMetric.CURRENT
            )
        )
        ticks, tick_uj = _number(energy, "energy_accumulator", "power"), _number(energy, "counter_resolution")
        return Reading(
            index=index,
            load_percent=_percent(load, "gfx_activity"),
            memory_load_percent=_percent(load, "umc_activity"),
            memory_used_bytes=_finite(_ask(lambda: smi.amdsmi_get_gpu_memory_usage(handle, smi.AmdSmiMemoryType.VRAM))),
            clock_mhz=_number(core, "clk", "cur_clk"),
            memory_clock_mhz=_number(memory, "clk", "cur_clk"),
            temperature_c=_finite(hotspot),
            power_w=_number(power, "current_socket_power", "average_socket_power"),
            energy_j=None if ticks is None or tick_uj is None else ticks * tick_uj / 1e6,
            slowed_by=self._slowed_by(index, handle),
            processes=_ask(lambda: tuple(map(_process, smi.amdsmi_get_gpu_process_list(handle)))) or (),
        )

    def _slowed_by(self, index: int, handle: Any) -> tuple[str, ...] | None:
        """Return why its clocks are held down now, or were since the last look; None if it reports neither.

        amdsmi_get_violation_status would look twice, and sleep a tenth of a second between.
        """
        answer = _mapping(lambda: self._smi.amdsmi_get_gpu_metrics_info(handle))
        bits = _count(answer, "indep_throttle_status")
        held = {name: count for name in _HELD_SO_LONG if (count := _count(answer, name)) is not None}
        before = self._held.get(index, held)
        self._held[index] = before | held
        if bits is None and not held:
            return None
        now = {word for word, mask in _HELD_NOW.items() if (bits or 0) & mask}
        since = {_HELD_SO_LONG[name] for name, count in held.items() if count > before.get(name, count)}
        return tuple(sorted(now | since))


@contextlib.contextmanager
def amd_source(accelerators: Sequence[Accelerator], smi: Any = None) -> Iterator[AmdSource | str]:
    """Yield a source of these devices, or why the library or its driver fails. `smi`: a stand-in for amdsmi."""
    source: AmdSource | str
    with contextlib.ExitStack() as at_end:
        # A library of another ROCm fails in ways of its own: a missing variable, shared object or symbol.
        try:
            smi = importlib.import_module("amdsmi") if smi is None else smi
            smi.amdsmi_init()
            at_end.callback(_ask, smi.amdsmi_shut_down)
            source = AmdSource(smi, accelerators)
        except Exception as error:
            source = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
        yield source


def _ask(question: Callable[..., Any], *args: Any) -> Any:
    """Return the answer, None if the device, its driver or this version of the library does not give one."""
    try:
        return question(*args)
    except Exception:
        return None


def _mapping(question: Callable[[], Any]) -> Mapping[str, Any]:
    answer = _ask(question)
    return answer if isinstance(answer, Mapping) else {}


def _number(answer: Mapping[str, Any], *names: str) -> float | None:
    """Return the first of these that is a number: versions name things differently, and give `N/A` for none."""
    return next((value for name in names if (value := _finite(answer.get(name))) is not None), None)


def _finite(value: Any) -> float | None:
    is_number = type(value) in (int, float) and math.isfinite(value) and value not in _NO_NUMBER
    return value if is_number else None


def _percent(answer: Mapping[str, Any], name: str) -> float | None:
    value = _number(answer, name)
    return value if value is not None and 0 <= value <= 100 else None


def _process(user: Mapping[str, Any]) -> DeviceProcess:
    """Return a process; the library gives `N/A` for a name that this user may not read."""
    name = str(user["name"])
    return DeviceProcess(int(user["pid"]), "" if name == "N/A" else name, _count(user, "mem"))


def _count(answer: Mapping[str, Any], name: str) -> int | None:
    value = answer.get(name)
    return value if type(value) is int and value not in _NOT_AVAILABLE else None
