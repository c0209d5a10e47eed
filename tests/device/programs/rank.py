"""Prints each device of a benchmark's ranks (`rank.py RANK/RANKS...`) and its peak of memory."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch

from cotenant.bench.device import choose_device
from cotenant.bench.outcome import UnsupportedError, outcome_of

MIB = 1 << 20


def found(rank: int, ranks: int) -> Any:
    """Return the facts of a rank's device, or outcome and sentence of a rank that is refused one."""
    try:
        device = choose_device(True, rank, ranks)
    except UnsupportedError as error:
        return outcome_of(error)[:2]
    numbers = torch.empty(16 * MIB, dtype=torch.uint8, device=device.torch_device)
    before = device.peak_memory_bytes()
    del numbers
    device.forget_memory()
    return {
        "device": str(device.torch_device),
        "current": torch.cuda.current_device(),
        "name": device.name,
        "alike": device.alike,
        "cache_bytes": device.cache_bytes,
        "mps": device.under_mps,
        "peak_mib": [one["allocated_bytes"] // MIB for one in (before, device.peak_memory_bytes())],
    }


print(json.dumps([found(*map(int, word.split("/"))) for word in sys.argv[1:]]))
