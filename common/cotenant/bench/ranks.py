"""Starts a process per device of a benchmark that trains one model: python -m cotenant.bench.ranks MAIN.PY [FLAGS].

They are as many as `--devices` says, 0 or unsaid for all of $DEVICE_TOTAL or, where nobody set that, all that torch
sees. With `--parallel dp` it is one process for all of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

import torch
from torch.distributed import run as torchrun

from cotenant.suite.variables import value_behind


def ranks_of(words: Sequence[str], environ: Mapping[str, str], count: Callable[[], int]) -> int:
    """Return how many processes a benchmark with these flags takes on this node; 0: it is to be started by itself.

    So it is where it says best what is wrong with its devices. `count` gives those that torch sees.
    """
    devices = value_behind(words, "--devices", usual="0")
    if value_behind(words, "--parallel") == "dp" or not devices.isdecimal():
        return 0
    total = environ.get("DEVICE_TOTAL")
    if int(devices) > int(total or devices):
        return 0
    return int(devices) or int(total or 0) or max(1, count())


def launcher_flags(ranks: int, environ: Mapping[str, str]) -> list[str]:
    """Return the flags of torchrun for so many processes on this node; for several nodes it reads PET_* itself."""
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    met = [f"--{name.lower()}={environ.get(name, usual)}" for name, usual in meeting.items()]
    return [f"--nproc_per_node={ranks}", *met]


def main() -> None:
    """Become the benchmark, or the launcher of its ranks."""
    task, *words = sys.argv[1:]
    ranks = ranks_of(words, os.environ, torch.accelerator.device_count)
    if not ranks:
        os.execv(sys.executable, [sys.executable, task, *words])
    torchrun.main([*launcher_flags(ranks, os.environ), task, *words])


if __name__ == "__main__":
    main()
