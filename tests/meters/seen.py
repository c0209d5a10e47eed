"""Devices that exist nowhere, and slices that only count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from cotenant.isolation.backend import Counters
from cotenant.meters.devices import Reading
from machine.fakehost import ANSWERS, Board, FakeNvml, known, unsupported


@dataclass
class CountedSlice:
    """A slice whose processor time and memory a test sets; None: it does not count."""

    processor_ns: int | None = 0
    used_bytes: int | None = 0

    def counters(self) -> Counters:
        return Counters(processor_ns=self.processor_ns)

    def memory_used_bytes(self) -> int | None:
        return self.used_bytes


class Script:
    """A source that says one prepared reading of `GPU-0` after the other."""

    def __init__(self, readings: Iterable[Reading]) -> None:
        self._readings = iter(readings)

    def read(self) -> dict[str, Reading]:
        return {"GPU-0": next(self._readings)}


@dataclass
class MeteredBoard(Board):
    """A board that tells its load, in NVML's units; None is a reading that it does not support."""

    load: tuple[int, int] | None = (87, 41)
    clocks: tuple[int, int] | None = (1755, 2619)
    temperature: int | None = 61
    power_mw: int | None = 512_250
    energy_mj: int | None = 9_000_000
    used: int = 3 << 30


METERED: dict[str, Callable[..., Any]] = {
    "UtilizationRates": lambda board: SimpleNamespace(gpu=known(board.load)[0], memory=board.load[1]),
    "ClockInfo": lambda board, kind: known(board.clocks)[{1: 0, 2: 1}[kind]],
    "TemperatureV": lambda board, sensor: known(board.temperature) if sensor == 0 else unsupported(),
    "PowerUsage": lambda board: known(board.power_mw),
    "TotalEnergyConsumption": lambda board: known(board.energy_mj),
    "MemoryInfo": lambda board: SimpleNamespace(total=known(board.memory), used=board.used),
}


@dataclass
class MeteredNvml(FakeNvml):
    """pynvml's readings for such boards."""

    answers: Mapping[str, Callable[..., Any]] = field(default_factory=lambda: ANSWERS | METERED)


class SmiError(Exception):
    pass


class FakeSmi:
    """The functions of amdsmi that are asked, for one invented device; one that is not in `says` raises its exception.

    An exception in `says` is raised. A version of the library that `lacks` a function has no such name.
    """

    AmdSmiTemperatureType = SimpleNamespace(HOTSPOT="hotspot")
    AmdSmiTemperatureMetric = SimpleNamespace(CURRENT="current")
    AmdSmiMemoryType = SimpleNamespace(VRAM="vram")
    AmdSmiClkType = SimpleNamespace(GFX="gfx", MEM="mem")

    def __init__(self, says: dict[str, Any], starts: bool = True, lacks: str = "") -> None:
        self.says, self.starts, self.lacks, self.calls = says, starts, lacks, list[str]()

    def amdsmi_init(self) -> None:
        self.calls.append("init")
        if not self.starts:
            raise SmiError

    def amdsmi_shut_down(self) -> None:
        self.calls.append("shut down")

    def amdsmi_get_processor_handles(self) -> list[str]:
        return ["one"]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("amdsmi_get_") or name == self.lacks:
            raise AttributeError(name)

        def answer(_handle: str, *kinds: str) -> Any:
            key = " ".join((name.removeprefix("amdsmi_get_"), *kinds))
            if key not in self.says:
                raise SmiError
            if isinstance(said := self.says[key], Exception):
                raise said
            return said

        return answer
