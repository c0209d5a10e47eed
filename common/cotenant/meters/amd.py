"""AMD devices through ROCm's amdsmi, only where that can be imported: it is no dependency."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cotenant.machine.accelerators import Accelerator
from cotenant.machine.device_state import DeviceProcess
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


class AmdSource:
    """Devices by the uuid that the kernel's driver gives them, found by their PCI id."""

    def __init__(self, smi: Any, accelerators: Sequence[Accelerator]) -> None:
        self._smi = smi
        self._held: dict[int, dict[str, int]] = {}
        known = {one.pci: one for one in accelerators if one.vendor == "amd"}
        handles: list[Any] = self._asked(smi.amdsmi_get_processor_handles) or []
        places = [self._asked(partial(smi.amdsmi_get_gpu_device_bdf, handle)) for handle in handles]
        self._devices = [
            (known[place], handle) for place, handle in zip(places, handles, strict=True) if place in known
        ]

    def read(self) -> dict[str, Reading]:
        return {device.uuid or device.pci: self._reading(device.index, handle) for device, handle in self._devices}

    def _reading(self, index: int, handle: Any) -> Reading:
        smi = self._smi
        load = self._asked(lambda: smi.amdsmi_get_gpu_activity(handle)) or {}
        power = self._asked(lambda: smi.amdsmi_get_power_info(handle)) or {}
        energy = self._asked(lambda: smi.amdsmi_get_energy_count(handle)) or {}
        heat = (smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureMetric.CURRENT)
        ticks, tick_uj = _number(energy, "energy_accumulator", "power"), _number(energy, "counter_resolution")
        return Reading(
            index=index,
            load_percent=_number(load, "gfx_activity"),
            memory_load_percent=_number(load, "umc_activity"),
            memory_used_bytes=self._asked(lambda: smi.amdsmi_get_gpu_memory_usage(handle, smi.AmdSmiMemoryType.VRAM)),
            clock_mhz=self._clock(handle, smi.AmdSmiClkType.GFX),
            memory_clock_mhz=self._clock(handle, smi.AmdSmiClkType.MEM),
            temperature_c=self._asked(lambda: smi.amdsmi_get_temp_metric(handle, *heat)),
            power_w=_number(power, "current_socket_power", "average_socket_power"),
            energy_j=None if ticks is None or tick_uj is None else ticks * tick_uj / 1e6,
            slowed_by=self._slowed_by(index, handle),
            processes=tuple(
                DeviceProcess(one["pid"], one["name"], one.get("mem"))
                for one in self._asked(lambda: smi.amdsmi_get_gpu_process_list(handle)) or []
            ),
        )

    def _slowed_by(self, index: int, handle: Any) -> tuple[str, ...] | None:
        """Return why its clocks are held down now, or were since the last look; None where it tells neither.

        amdsmi_get_violation_status would look twice, and sleep a tenth of a second between.
        """
        question = getattr(self._smi, "amdsmi_get_gpu_metrics_info", None)
        said = {} if question is None else self._asked(lambda: question(handle)) or {}
        bits = _count(said, "indep_throttle_status")
        held = {name: count for name in _HELD_SO_LONG if (count := _count(said, name)) is not None}
        before = self._held.get(index, held)
        self._held[index] = before | held
        if bits is None and not held:
            return None
        now = {word for word, mask in _HELD_NOW.items() if (bits or 0) & mask}
        since = {_HELD_SO_LONG[name] for name, count in held.items() if count > before.get(name, count)}
        return tuple(sorted(now | since))

    def _clock(self, handle: Any, kind: Any) -> float | None:
        said = self._asked(lambda: self._smi.amdsmi_get_clock_info(handle, kind)) or {}
        return _number(said, "clk", "cur_clk")

    def _asked(self, question: Callable[[], Any]) -> Any:
        """Return the answer, None where the device, its driver or the library does not give one."""
        try:
            return question()
        except self._smi.AmdSmiException:
            return None


@contextlib.contextmanager
def amd_source(accelerators: Sequence[Accelerator], smi: Any = None) -> Iterator[AmdSource | None]:
    """Yield a source of these devices, None without the library or its driver. `smi`: a stand-in for amdsmi."""
    smi = _library() if smi is None else smi
    if smi is not None:
        try:
            smi.amdsmi_init()
        except smi.AmdSmiException:
            smi = None
    try:
        yield None if smi is None else AmdSource(smi, accelerators)
    finally:
        if smi is not None:
            with contextlib.suppress(smi.AmdSmiException):
                smi.amdsmi_shut_down()


def _number(said: Mapping[str, Any], *names: str) -> float | None:
    """Return the first of these that is a number: versions name things differently, and say `N/A` for none."""
    values = (said.get(name) for name in names)
    return next((value for value in values if isinstance(value, (int, float))), None)


def _count(said: Mapping[str, Any], name: str) -> int | None:
    value = said.get(name)
    return value if type(value) is int and value not in _UNTOLD else None


def _library() -> Any:
    try:
        return importlib.import_module("amdsmi")
    except (ImportError, KeyError, OSError):
        # Without ROCm its own import fails of a missing variable, or of its shared object.
        return None
