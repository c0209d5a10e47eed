"""Prints what the runner's meters and doctor's facts say of the devices under load (`meters.py SECONDS`): the readings,
what a look costs, and joules by the counter and by power over a window of so many seconds."""

from __future__ import annotations

import itertools
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import torch

from cotenant.machine.nvidia import device_states, slowed
from cotenant.machine.topology import discover
from cotenant.meters.sources import amd_source, nvidia_source

LOOKS = 30


class Load:
    """Products that keep the device busy and the host almost idle."""

    def __init__(self) -> None:
        self._a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
        self._out = torch.empty_like(self._a)

    def until(self, moment_s: float) -> None:
        while time.monotonic() < moment_s:
            for _ in range(5):
                torch.matmul(self._a, self._a, out=self._out)
            torch.cuda.synchronize()


def look_ms(source: Any) -> float:
    begin = time.perf_counter()
    source.read()
    return (time.perf_counter() - begin) * 1e3


def energy_and_power(source: Any, load: Load, seconds: float) -> list[tuple[float, float | None, float | None]]:
    """Return seconds, watts and joules of looks over a window."""
    samples, end = [], time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        reading = next(iter(source.read().values()))
        samples.append((now, reading.power_w, reading.energy_j))
        load.until(min(end, now + 0.1))
    return samples


def joules(samples: list[tuple[float, float | None, float | None]]) -> dict[str, float] | None:
    """Return joules by the counter and by power added up, from the counter's first step to its last; None without."""
    known = [(at, power, energy) for at, power, energy in samples if power is not None and energy is not None]
    steps = [after for after in range(1, len(known)) if known[after][2] != known[after - 1][2]]
    if len(steps) < 2:
        return None
    window = known[steps[0] : steps[-1] + 1]
    added = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(window))
    return {"counted_j": window[-1][2] - window[0][2], "added_j": added, "seconds": window[-1][0] - window[0][0]}


def main(seconds: float) -> None:
    devices = discover().accelerators
    pci = [device.pci for device in devices]
    load = Load()
    with nvidia_source(pci) if devices[0].vendor == "nvidia" else amd_source(devices) as source:
        load.until(time.monotonic() + seconds / 5)  # Power is a mean over the last second.
        samples = energy_and_power(source, load, seconds)
        found = {
            "readings": {uuid: asdict(reading) for uuid, reading in source.read().items()},
            "states": [asdict(state) for state in device_states(pci, Path("/"))],
            "slowed": [asdict(one) for one in slowed(pci)],
            "look_ms": median(look_ms(source) for _ in range(LOOKS)),
            "energy": joules(samples),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main(float(sys.argv[1]))
