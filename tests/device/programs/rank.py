"""Prints the device of a benchmark's rank (`rank.py RANK RANKS`), its peak of memory and the launches of a replay."""

from __future__ import annotations

import ctypes
import json
import sys

import torch

from cotenant.bench.device import choose_device
from cotenant.bench.outcome import UnsupportedError, outcome_of

MIB = 1 << 20


def main(rank: int, ranks: int) -> None:
    try:
        device = choose_device(True, rank, ranks)
    except UnsupportedError as error:
        print(json.dumps(outcome_of(error)[:2]))
        return
    numbers = torch.empty(16 * MIB, dtype=torch.uint8, device=device.torch_device)
    before = device.peak_memory_bytes()
    del numbers
    device.forget_memory()
    numbers = torch.ones(4, device=device.torch_device)
    # Work on other streams that this stream does not wait for cannot be recorded.
    recorded = device.recorded(lambda: device.at_once()(lambda: numbers.add(1), lambda: numbers.mul(2)))
    launches = ctypes.c_ulonglong.in_dll(ctypes.CDLL(None), "null_device_launches")
    issued = launches.value
    recorded.graph.replay()
    found = {
        "device": str(device.torch_device),
        "current": torch.cuda.current_device(),
        "name": device.name,
        "alike": device.alike,
        "cache_bytes": device.cache_bytes,
        "mps": device.under_mps,
        "peak_mib": [one["allocated_bytes"] // MIB for one in (before, device.peak_memory_bytes())],
        "launches_of_a_replay": launches.value - issued,
    }
    print(json.dumps(found))


main(*map(int, sys.argv[1:]))
