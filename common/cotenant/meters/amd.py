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


class AmdSource:
    """Devices by the uuid that the kernel's driver gives them, found by their PCI id."""

    def __init__(self, smi: Any, accelerators: Sequence[Accelerator]) -> None:
        self._smi = smi
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
            processes=tuple(
                DeviceProcess(one["pid"], one["name"], one.get("mem"))
                for one in self._asked(lambda: smi.amdsmi_get_gpu_process_list(handle)) or []
            ),
        )

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


def _library() -> Any:
    try:
        return importlib.import_module("amdsmi")
    except (ImportError, KeyError, OSError):
        # Without ROCm its own import fails of a missing variable, or of its shared object.
        return None
