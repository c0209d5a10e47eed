"""Load, clocks, heat, power and users of accelerators, from any vendor's library."""

from __future__ import annotations

import functools
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import psutil

from cotenant.isolation.backend import LiveSlice
from cotenant.machine.nvidia import DeviceProcess
from cotenant.meters.sampler import Look, SampleSpread

ENERGY_WINDOW_S = 10.0
"""A device's energy counter moves in steps of up to 0.1 s: over 10 s that is one percent."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One device's present readings; None if it has none. `energy_j` counts since its driver was loaded."""

    index: int
    load_percent: float | None = None
    memory_load_percent: float | None = None
    memory_used_bytes: float | None = None
    clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    energy_j: float | None = None
    slowed_by: tuple[str, ...] | None = None
    processes: tuple[DeviceProcess, ...] = ()
    mps_clients: int | None = None


QUANTITIES = (
    "load_percent",
    "memory_load_percent",
    "memory_used_bytes",
    "clock_mhz",
    "memory_clock_mhz",
    "temperature_c",
    "power_w",
)


class DeviceSource(Protocol):
    """A library that knows one vendor's devices."""

    def read(self) -> dict[str, Reading]:
        """Return a reading of each device by its uuid; never raises."""


@dataclass(slots=True)
class _Device:
    index: int
    sharers: int
    energy_from: tuple[float, float] | None
    """Joules, and the time of their reading in seconds."""
    spreads: dict[str, SampleSpread] = field(default_factory=lambda: {name: SampleSpread() for name in QUANTITIES})
    samples: int = 0
    idle_samples: int = 0
    slowed: Counter[str] = field(default_factory=Counter)
    tells_slow: bool = False
    energy_to: tuple[float, float] | None = None
    foreign: dict[int, DeviceProcess] = field(default_factory=dict)
    unseen: int = 0
    hidden: int = 0
    nameless: set[int] = field(default_factory=set)
    """Processes without a name in the last look."""
    mps_clients: int | None = None

    def take(self, reading: Reading, at_s: float, is_foreign: Callable[[int], bool]) -> None:
        self.samples += 1
        # An idle device is part of the mean: a tenant that starves it must show.
        self.idle_samples += reading.load_percent == 0
        for name, spread in self.spreads.items():
            if (value := getattr(reading, name)) is not None:
                spread.add(value)
        self.tells_slow = self.tells_slow or reading.slowed_by is not None
        self.slowed.update(reading.slowed_by or ())
        if reading.energy_j is not None:
            self.energy_to = reading.energy_j, at_s
        self.foreign |= {user.pid: user for user in reading.processes if user.name and is_foreign(user.pid)}
        nameless = {user.pid for user in reading.processes if not user.name}
        self.unseen = max(self.unseen, len(nameless))
        # If one of ours has a name, PIDs are of our namespace; a process without one in two looks did not just end.
        if any(user.name and not is_foreign(user.pid) for user in reading.processes):
            self.hidden = max(self.hidden, len(nameless & self.nameless))
        self.nameless = nameless
        if reading.mps_clients is not None:
            self.mps_clients = max(self.mps_clients or 0, reading.mps_clients)

    def result(self) -> dict[str, Any]:
        return {
            "index": self.index,
            "sharers": self.sharers,
            "mps_clients": self.mps_clients,
            "samples": self.samples,
            "idle_samples": self.idle_samples,
            **{name: spread.result() for name, spread in self.spreads.items()},
            "slowed_samples": dict(sorted(self.slowed.items())) if self.tells_slow else None,
            **self._energy(),
            "foreign_processes": [asdict(self.foreign[pid]) for pid in sorted(self.foreign)],
            "unseen_processes": self.unseen,
            "hidden_processes": self.hidden,
        }

    def _energy(self) -> dict[str, Any]:
        used_j: float | None = None
        window_s: float | None = None
        lacks = "an energy counter of the device"
        if self.energy_from is not None and self.energy_to is not None:
            used_j, window_s = (to - since for to, since in zip(self.energy_to, self.energy_from, strict=True))
            lacks = "a counter that was not set back" if used_j < 0 else ""
            if window_s < ENERGY_WINDOW_S:
                lacks = f"a window of {ENERGY_WINDOW_S:g} s, which more observations (--repeat, --number) make"
        return {"energy_j": None if lacks else used_j, "energy_window_s": window_s, "energy_lacks": lacks}


def stranger(pid: int) -> bool:
    """Return whether a process is none of ours: neither this one nor below it.

    Orphans of tenants stay below us, because we are their subreaper (isolation/processes.py).
    """
    try:
        return os.getpid() not in (pid, *(parent.pid for parent in psutil.Process(pid).parents()))
    except psutil.Error:
        return True


class DeviceLoad:
    """Samples every device of the launch; samples are keyed by a device's uuid, so that tenants find theirs."""

    name = "devices"

    def __init__(
        self,
        source: DeviceSource,
        is_foreign: Callable[[int], bool] = stranger,
        clock_s: Callable[[], float] = time.perf_counter,
        sharers: Mapping[int, int] | None = None,
    ) -> None:
        """Take `sharers`, the number of tenants on each device by its index: nothing divides its energy among them."""
        self._source = source
        self._sharers = sharers or {}
        self._is_foreign = functools.cache(is_foreign)
        self._clock_s = clock_s
        self._devices: dict[str, _Device] = {}

    def start(self, slices: Sequence[LiveSlice]) -> None:
        # Before GO tenants wait, and devices idle: only counters of this reading are kept.
        self._devices = {}
        for uuid, reading in self._source.read().items():
            since = None if reading.energy_j is None else (reading.energy_j, self._clock_s())
            self._devices[uuid] = _Device(reading.index, self._sharers.get(reading.index, 0), since)

    def sample(self) -> Look:
        seen: Look = {}
        for uuid, reading in self._source.read().items():
            if uuid in self._devices:
                self._devices[uuid].take(reading, self._clock_s(), self._is_foreign)
                values = ((name, getattr(reading, name)) for name in QUANTITIES)
                seen |= {(self.name, uuid, name): value for name, value in values if value is not None}
        return seen

    def result(self) -> dict[str, Any]:
        return {uuid: device.result() for uuid, device in self._devices.items()}

    def absent(self) -> dict[str, str]:
        devices = self._devices.values()
        unknown = [name for name in QUANTITIES if not any(device.spreads[name].n for device in devices)]
        if not any(device.tells_slow for device in devices):
            unknown.append("slowed_samples")
        return {f"devices.{name}": "a device and a driver that tell it" for name in unknown} if devices else {}
