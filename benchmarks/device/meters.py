"""The runner's device meters: every quantity is there, a look is cheap, and energy is what power adds up to."""

from __future__ import annotations

import itertools
import time
from statistics import median
from typing import Any

from device.part import Given

QUANTITIES = (
    "load_percent",
    "memory_load_percent",
    "memory_used_bytes",
    "clock_mhz",
    "memory_clock_mhz",
    "temperature_c",
    "power_w",
    "energy_j",
    "slowed_by",
)
LOOKS = 30
LOOK_MS = 20.0
"""A look once a second then costs two hundredths of one processor at most."""
ENERGY_WITHIN = 0.05
"""Power is a mean over up to a second, and its sensor is good for some percent."""
WINDOW_S = 10.0
LOADED_PERCENT = 50.0


def run(given: Given) -> None:
    given.need_device()
    import torch

    from cotenant.machine.topology import discover
    from cotenant.meters.sources import amd_source, nvidia_source

    devices = discover().accelerators
    with nvidia_source([device.pci for device in devices]) if given.kind == "cuda" else amd_source(devices) as source:
        if source is None or isinstance(source, str):
            given.check("source", False, f"There is no source of device readings: {source or 'no NVML'}.")
            return
        load = Load(torch)
        load.until(time.monotonic() + 2)
        with given.looking_at("quantities"):
            quantities(given, source)
        with given.looking_at("cost of a look"):
            look(given, source)
        with given.looking_at("energy against power"):
            energy(given, source, load)


class Load:
    """Products that keep the device busy and the host almost idle."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
        self._out = torch.empty_like(self._a)

    def until(self, moment_s: float) -> None:
        """Be busy until then, by the monotonic clock."""
        while time.monotonic() < moment_s:
            for _ in range(5):
                self._torch.matmul(self._a, self._a, out=self._out)
            self._torch.cuda.synchronize()


def quantities(given: Given, source: Any) -> None:
    readings = source.read()
    for uuid, reading in readings.items():
        for name in QUANTITIES:
            given.row("quantities", device=uuid, quantity=name, value=getattr(reading, name, None))
        given.row("quantities", device=uuid, quantity="processes", value=len(reading.processes))
    first = next(iter(readings.values()), None)
    missing = [name for name in QUANTITIES if getattr(first, name, None) is None]
    given.check(
        "quantities",
        not missing,
        f"The device does not tell {', '.join(missing)}." if missing else f"{len(readings)} devices tell everything.",
    )
    if first is not None and first.load_percent is not None:
        loaded = any(reading.load_percent >= LOADED_PERCENT for reading in readings.values())
        given.check("load is seen", loaded, f"Under products without end the load is {first.load_percent:.0f} %.")


def look(given: Given, source: Any) -> None:
    times_ms = []
    for _ in range(LOOKS):
        begin = time.perf_counter()
        source.read()
        times_ms.append((time.perf_counter() - begin) * 1e3)
    given.row("cost of a look", first_ms=times_ms[0], median_ms=median(times_ms), worst_ms=max(times_ms), looks=LOOKS)
    given.check("cost of a look", median(times_ms) <= LOOK_MS, f"{median(times_ms):.2f} ms (at most {LOOK_MS:g}).")


def energy(given: Given, source: Any, load: Load) -> None:
    """Hold the counter of joules against power over a window of steady load."""
    load.until(time.monotonic() + 1.5)  # Power is a mean over the last second.
    samples: list[tuple[float, float | None, float | None]] = []
    end = time.monotonic() + WINDOW_S
    while True:
        reading = next(iter(source.read().values()))
        samples.append((time.monotonic(), reading.power_w, reading.energy_j))
        if samples[-1][0] >= end:
            break
        load.until(min(end, time.monotonic() + 0.1))
    found = energy_beside_power(samples)
    if found is None:
        given.check("energy against power", False, "The device does not tell power and energy.")
        return
    counted_j, integrated_j, seconds = found
    given.row("energy against power", seconds=seconds, counted_j=counted_j, integrated_j=integrated_j)
    off = counted_j / integrated_j - 1
    given.check(
        "energy against power",
        abs(off) <= ENERGY_WITHIN,
        f"Its counter says {counted_j:.0f} J and its power {integrated_j:.0f} J over {seconds:.1f} s, {off:+.1%}.",
    )


def energy_beside_power(samples: list[tuple[float, float | None, float | None]]) -> tuple[float, float, float] | None:
    """Return joules by the counter and by power between looks (time, watts, joules), and the seconds.

    The counter moves in steps: its window is from its first move to its last, and power is added up over the same.
    """
    known = [(at, power, energy) for at, power, energy in samples if power is not None and energy is not None]
    moves = [index for index in range(1, len(known)) if known[index][2] != known[index - 1][2]]
    if len(moves) < 2:
        return None
    window = known[moves[0] : moves[-1] + 1]
    integrated = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(window))
    if integrated <= 0:
        return None
    return window[-1][2] - window[0][2], integrated, window[-1][0] - window[0][0]
