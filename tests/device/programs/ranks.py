"""Two ranks of one model, each on a null device of its own: ranks.py MAIN.PY WORDS; this process is rank 0.

It prints the number of the model's parameters, and how many 32-bit gradients rank 0 gave to all-reduces in total.
"""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import socket
import sys
from pathlib import Path
from typing import Any

import torch
import torch.nn.parallel.distributed as ddp

from cotenant.bench import parallel

RANKS = 2
parameters: list[int] = []


def spread(module: torch.nn.Module, **named: Any) -> torch.nn.Module:
    """Return DDP's replica of a module, whose buckets are not rebuilt.

    Ranks agree on new buckets, and compare their models, by numbers that they read back from their devices: here zeros.
    """
    parameters.append(sum(each.numel() for each in module.parameters() if each.requires_grad))
    return ddp.DistributedDataParallel(module, find_unused_parameters=True, **named)


def become(rank: int, port: int) -> int:
    """Run the benchmark as this rank, and return its exit status."""
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": RANKS, "LOCAL_WORLD_SIZE": RANKS, "MASTER_PORT": port}
    os.environ |= {name: str(number) for name, number in numbers.items()} | {"MASTER_ADDR": "127.0.0.1"}
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def main() -> None:
    """Become rank 0 beside a fork that is rank 1, and fail where either fails."""
    ddp._verify_param_shape_across_processes = lambda *given: None
    parallel.DistributedDataParallel = spread
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    other = os.fork()
    if not other:
        os._exit(become(1, port))
    status = become(0, port)
    reduced = ctypes.c_ulonglong.in_dll(ctypes.CDLL(None), "null_device_reduced").value
    print("\n" + json.dumps({"parameters": sum(parameters), "reduced": reduced}))
    sys.exit(status or os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]))


if __name__ == "__main__":
    main()
