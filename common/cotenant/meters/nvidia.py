"""NVIDIA devices through NVML, in one session for the whole launch: opening one takes longer than many readings."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from cotenant.machine.nvidia import ask, handles, processes_on, session, slowdowns
from cotenant.meters.devices import Reading

# Values of nvml.h, which stand-ins and old bindings need not name.
_CORE_SENSOR, _SM_CLOCK, _MEMORY_CLOCK = 0, 1, 2
_AT_POWER_LIMIT = 0x4


class NvidiaSource:
    """Devices by their own uuid; of one that MIG divides, the whole: its parts tell nothing of this."""

    def __init__(self, nvml: Any, pci: Collection[str], root: Path = Path("/")) -> None:
        self._nvml = nvml
        self._root = root
        self._devices = [
            (ask(nvml, place, "nvmlDeviceGetUUID", handle), index, handle)
            for index, place, handle in handles(nvml)
            if place in pci
        ]

    def read(self) -> dict[str, Reading]:
        return {uuid: self._reading(index, handle) for uuid, index, handle in self._devices}

    def _reading(self, index: int, handle: Any) -> Reading:
        nvml = self._nvml
        load = ask(nvml, None, "nvmlDeviceGetUtilizationRates", handle)
        memory = ask(nvml, None, "nvmlDeviceGetMemoryInfo", handle)
        power_mw = ask(nvml, None, "nvmlDeviceGetPowerUsage", handle)
        energy_mj = ask(nvml, None, "nvmlDeviceGetTotalEnergyConsumption", handle)
        reasons = ask(nvml, None, "nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        return Reading(
            index=index,
            load_percent=None if load is None else load.gpu,
            memory_load_percent=None if load is None else load.memory,
            memory_used_bytes=None if memory is None else memory.used,
            clock_mhz=ask(nvml, None, "nvmlDeviceGetClockInfo", handle, _SM_CLOCK),
            memory_clock_mhz=ask(nvml, None, "nvmlDeviceGetClockInfo", handle, _MEMORY_CLOCK),
            temperature_c=ask(nvml, None, "nvmlDeviceGetTemperature", handle, _CORE_SENSOR),
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
