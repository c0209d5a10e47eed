"""NVIDIA devices through NVML, in one session for the whole launch: opening one takes longer than many readings."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from cotenant.machine.device_state import chosen, processes_on, slowdowns
from cotenant.machine.nvml import asked, session, text
from cotenant.meters.devices import Reading

# Values of nvml.h, which stand-ins and old bindings need not name.
_CORE_SENSOR, _SM_CLOCK, _MEMORY_CLOCK = 0, 1, 2
_AT_POWER_LIMIT = 0x4


class NvidiaSource:
    """Devices by their own uuid; of one that MIG divides, the whole: its parts tell nothing of this."""

    def __init__(self, nvml: Any, pci: Collection[str], root: Path = Path("/")) -> None:
        self._nvml = nvml
        self._root = root
        self._devices = [(self._uuid(handle, place), index, handle) for index, place, handle in chosen(nvml, pci)]

    def read(self) -> dict[str, Reading]:
        return {uuid: self._reading(index, handle) for uuid, index, handle in self._devices}

    def _uuid(self, handle: Any, unknown: str) -> str:
        return asked(self._nvml, lambda: text(self._nvml.nvmlDeviceGetUUID(handle)), unknown)

    def _reading(self, index: int, handle: Any) -> Reading:
        nvml = self._nvml
        load = asked(nvml, lambda: nvml.nvmlDeviceGetUtilizationRates(handle), None)
        power_mw = asked(nvml, lambda: nvml.nvmlDeviceGetPowerUsage(handle), None)
        energy_mj = asked(nvml, lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle), None)
        reasons = asked(nvml, lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle), None)
        return Reading(
            index=index,
            load_percent=None if load is None else load.gpu,
            memory_load_percent=None if load is None else load.memory,
            memory_used_bytes=asked(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used, None),
            clock_mhz=asked(nvml, lambda: nvml.nvmlDeviceGetClockInfo(handle, _SM_CLOCK), None),
            memory_clock_mhz=asked(nvml, lambda: nvml.nvmlDeviceGetClockInfo(handle, _MEMORY_CLOCK), None),
            temperature_c=asked(nvml, lambda: nvml.nvmlDeviceGetTemperature(handle, _CORE_SENSOR), None),
            power_w=None if power_mw is None else power_mw / 1000,
            energy_j=None if energy_mj is None else energy_mj / 1000,
            slowed_by=None if reasons is None else _words(reasons),
            processes=processes_on(nvml, self._root, handle),
        )


@contextlib.contextmanager
def nvidia_source(pci: Collection[str], root: Path = Path("/"), nvml: Any = None) -> Iterator[NvidiaSource | None]:
    """Yield a source of the devices with these PCI ids, None without driver or library. `nvml`: a stand-in."""
    with session(root, nvml) as started:
        yield None if started is None else NvidiaSource(started, pci, root)


def _words(reasons: int) -> tuple[str, ...]:
    return (*slowdowns(reasons), *(("power limit",) if reasons & _AT_POWER_LIMIT else ()))
