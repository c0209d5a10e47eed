"""The meters of one launch as one meter, which paces and measures itself: looking must not disturb the launch."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from cotenant.isolation.backend import LiveSlice
from cotenant.isolation.slice import Slice
from cotenant.machine.topology import Machine
from cotenant.meters.devices import DeviceLoad, DeviceSource
from cotenant.meters.foreign import ForeignLoad
from cotenant.meters.host import MemoryLeft, PackageEnergy, SliceMemory
from cotenant.meters.sampler import Look, Sampler, SampleSpread, TimeSeries
from cotenant.meters.sources import amd_source, nvidia_source

LIBRARIES = {
    "nvidia": "NVIDIA's driver and its library: pip install nvidia-ml-py",
    "amd": "the amdsmi of the installed ROCm: pip install /opt/rocm/share/amd_smi",
    "intel": "devices of NVIDIA or AMD: of Intel's no library is asked",
}
WHOLE = "a launch that owns the processor packages whole: a job of the group `all`, or --users 1"


@contextlib.contextmanager
def meters_of(
    machine: Machine,
    slices: Sequence[Slice],
    root: Path = Path("/"),
    nvml: Any = None,
    smi: Any = None,
) -> Iterator[Meters]:
    """Yield the meters of a launch with these slices; sessions with the devices' libraries last as long as the context.

    `nvml`, `smi`: stand-ins for pynvml and amdsmi.
    """
    tenants = [planned.tenant for planned in slices]
    samplers: list[Sampler] = [ForeignLoad(machine.processor_total), MemoryLeft(root), SliceMemory(tenants)]
    absent: dict[str, str] = {}
    # One slice with every online processor: then no other program's work is in the packages' energy.
    if len(slices) == 1 and len(slices[0].processors) == machine.processor_total:
        samplers.append(PackageEnergy(root))
    else:
        absent["packages"] = WHOLE
    with contextlib.ExitStack() as stack:
        for vendor in sorted({device.vendor for device in machine.accelerators}):
            source: DeviceSource | str = ""
            if vendor == "nvidia":
                source = stack.enter_context(nvidia_source(machine.nvidia_places, root, nvml)) or ""
            elif vendor == "amd":
                source = stack.enter_context(amd_source(machine.accelerators, smi))
            if isinstance(source, str):
                absent["devices"] = LIBRARIES[vendor] + (f" (here {source})" if source else "")
            else:
                # Tenants on a device's MIG instances are on the device, too.
                on_devices = ({device.index for device in planned.accelerators} for planned in slices)
                samplers.append(DeviceLoad(source, sharers=Counter(chain.from_iterable(on_devices))))
        yield Meters(samplers, absent)


LEAST_INTERVAL_NS = 500_000_000
"""The least time between two looks, except before the last."""
MOST_SHARE = 0.005
"""Share of one processor, half of the runner's allowance. If a pass costs more than 2.5 ms, passes become rarer."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """Nanoseconds that pass, and nanoseconds that this thread works; tests have their own."""

    wall_ns: Callable[[], int] = time.perf_counter_ns
    processor_ns: Callable[[], int] = time.thread_time_ns


class Meters:
    """All samplers: call `start` before GO, `sample` often, and `result` at the last DONE.

    `sampling` in the result holds the cost of the passes: their number, the processor time and the wall time of one;
    `series` their samples, one after the other.
    """

    def __init__(self, samplers: Iterable[Sampler], absent: dict[str, str] | None = None, clocks: Clocks | None = None):
        """`absent`: quantities without a sampler, and how to enable it."""
        self._samplers = tuple(samplers)
        self._absent = absent or {}
        self._clocks = clocks or Clocks()
        self._processor, self._wall = SampleSpread(), SampleSpread()
        self._series = TimeSeries()
        self._start_ns = self._due_ns = 0

    def start(self, slices: Sequence[LiveSlice]) -> None:
        """Take the first snapshot: before t0, so that its cost falls on no tenant."""
        for sampler in self._samplers:
            sampler.start(slices)
        self._start_ns = self._clocks.wall_ns()
        self._due_ns = self._start_ns + LEAST_INTERVAL_NS

    def sample(self) -> None:
        """Look once, unless the last look was too recent for its cost."""
        if self._clocks.wall_ns() >= self._due_ns:
            self._look()

    def result(self, t0_ns: int) -> dict[str, Any]:
        """Look for the last time; return every sampler's result by its name, the passes' own cost and the absent
        quantities.

        `t0_ns`: the start of the series' seconds, by `Clocks.wall_ns`.
        Ending a reading may be expensive (finding busy processes): it is done after the last DONE, and is not part of
        `sampling`.
        """
        self._look()
        results = {sampler.name: sampler.result() for sampler in self._samplers}
        absent = self._absent | {name: how for sampler in self._samplers for name, how in sampler.absent().items()}
        return {
            **{name: seen for name, seen in results.items() if seen},
            "sampling": {
                "window_s": (self._clocks.wall_ns() - self._start_ns) / 1e9,
                "processor_ns": self._processor.result(),
                "wall_ns": self._wall.result(),
            },
            "series": self._series.result(t0_ns),
            "absent": absent,
        }

    def _look(self) -> None:
        wall_ns, processor_ns = self._clocks.wall_ns(), self._clocks.processor_ns()
        seen: Look = {}
        for sampler in self._samplers:
            seen |= sampler.sample()
        self._series.add(wall_ns, seen)
        used_ns = self._clocks.processor_ns() - processor_ns
        self._processor.add(used_ns)
        self._wall.add(self._clocks.wall_ns() - wall_ns)
        self._due_ns = wall_ns + max(LEAST_INTERVAL_NS, round(used_ns / MOST_SHARE))
