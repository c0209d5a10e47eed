"""AMD devices through ROCm's amdsmi, only where that can be imported: it is no dependency."""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cotenant.machine.accelerators import Accelerator
from cotenant.machine.nvidia import DeviceProcess
from cotenant.meters.devices import Reading

# Groups of the bits that amdgpu gives every device alike: SMU_THROTTLER_* in its amdgpu_smu.h.
_HELD_NOW = {"power limit": 0xFFFF_FFFF, "heat": 0xFF_FFFF << 32, "hardware": 0xFF << 56}
# Counters of gpu_metrics since version 1.6, on devices that do not tell those bits.
_HELD_SO_LONG = {
    "ppt_residency_acc": "power limit",
    "prochot_residency_acc": "heat",
    "socket_thm_residency_acc": "heat",
    "vr_thm_residency_acc": "heat",
    "hbm_thm_residency_acc": "heat",
}
_UNTOLD = (0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF)
"""What older versions of the library say for `N/A`."""
_NO_NUMBER = (0xFFFF, *_UNTOLD)
"""The same of what is no set of bits and no count: loads, clocks, heat and power are words of 16 bits as well."""


class AmdSource:
    """Devices by the uuid that the kernel's driver gives them, found by their PCI id."""

    def __init__(self, smi: Any, accelerators: Sequence[Accelerator]) -> None:
        self._smi = smi
        self._held: dict[int, dict[str, int]] = {}
        known = {one.pci: one for one in accelerators if one.vendor == "amd"}
        handles: list[Any] = _asked(lambda: list(smi.amdsmi_get_processor_handles())) or []
        places = [_asked(lambda one: smi.amdsmi_get_gpu_device_bdf(one), handle) for handle in handles]
        self._devices = [
            (known[place], handle) for place, handle in zip(places, handles, strict=True) if place in known
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
        ticks, tick_uj = _number(energy, "energy_accumulator", "power"), _number(energy, "counter_resolution")
        return Reading(
            index=index,
            load_percent=_percent(load, "gfx_activity"),
            memory_load_percent=_percent(load, "umc_activity"),
            memory_used_bytes=_told(_asked(lambda: smi.amdsmi_get_gpu_memory_usage(handle, smi.AmdSmiMemoryType.VRAM))),
            clock_mhz=_number(core, "clk", "cur_clk"),
            memory_clock_mhz=_number(memory, "clk", "cur_clk"),
            temperature_c=_told(_asked(lambda: smi.amdsmi_get_temp_metric(handle, *_hotspot(smi)))),
            power_w=_number(power, "current_socket_power", "average_socket_power"),
            energy_j=None if ticks is None or tick_uj is None else ticks * tick_uj / 1e6,
            slowed_by=self._slowed_by(index, handle),
            processes=_asked(lambda: tuple(map(_process, smi.amdsmi_get_gpu_process_list(handle)))) or (),
        )

    def _slowed_by(self, index: int, handle: Any) -> tuple[str, ...] | None:
        """Return why its clocks are held down now, or were since the last look; None where it tells neither.

        amdsmi_get_violation_status would look twice, and sleep a tenth of a second between.
        """
        said = _mapping(lambda: self._smi.amdsmi_get_gpu_metrics_info(handle))
        bits = _count(said, "indep_throttle_status")
        held = {name: count for name in _HELD_SO_LONG if (count := _count(said, name)) is not None}
        before = self._held.get(index, held)
        self._held[index] = before | held
        if bits is None and not held:
            return None
        now = {word for word, mask in _HELD_NOW.items() if (bits or 0) & mask}
        since = {_HELD_SO_LONG[name] for name, count in held.items() if count > before.get(name, count)}
        return tuple(sorted(now | since))


@contextlib.contextmanager
def amd_source(accelerators: Sequence[Accelerator], smi: Any = None) -> Iterator[AmdSource | str]:
    """Yield a source of these devices, or why the library or its driver is none here. `smi`: a stand-in for amdsmi."""
    found: AmdSource | str
    with contextlib.ExitStack() as at_end:
        # A library of another ROCm fails in ways of its own: a missing variable, shared object or symbol.
        try:
            smi = importlib.import_module("amdsmi") if smi is None else smi
            smi.amdsmi_init()
            at_end.callback(_asked, smi.amdsmi_shut_down)
            found = AmdSource(smi, accelerators)
        except Exception as error:
            found = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
        yield found


def _asked(question: Callable[..., Any], *of: Any) -> Any:
    """Return the answer, None where the device, its driver or this version of the library does not give one."""
    try:
        return question(*of)
    except Exception:
        return None


def _mapping(question: Callable[[], Any]) -> Mapping[str, Any]:
    said = _asked(question)
    return said if isinstance(said, Mapping) else {}


def _number(said: Mapping[str, Any], *names: str) -> float | None:
    """Return the first of these that is a number: versions name things differently, and say `N/A` for none."""
    return next((value for name in names if (value := _told(said.get(name))) is not None), None)


def _told(value: Any) -> float | None:
    is_number = type(value) in (int, float) and math.isfinite(value) and value not in _NO_NUMBER
    return value if is_number else None


def _percent(said: Mapping[str, Any], name: str) -> float | None:
    value = _number(said, name)
    return value if value is not None and 0 <= value <= 100 else None


def _hotspot(smi: Any) -> tuple[Any, Any]:
    return smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureMetric.CURRENT


def _process(one: Mapping[str, Any]) -> DeviceProcess:
    """Return a process; the library says `N/A` for a name that this user may not read."""
    name = str(one["name"])
    return DeviceProcess(int(one["pid"]), "" if name == "N/A" else name, _count(one, "mem"))


def _count(said: Mapping[str, Any], name: str) -> int | None:
    value = said.get(name)
    return value if type(value) is int and value not in _UNTOLD else None
