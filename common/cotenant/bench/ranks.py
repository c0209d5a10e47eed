"""Starts a process per device of a benchmark that trains one model: python -m cotenant.bench.ranks MAIN.PY [FLAGS].

The number of processes is `--devices`; 0 or unset means $DEVICE_TOTAL, or if that is unset, all devices that torch
sees. With `--parallel dp` one process serves all devices.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

import torch
from torch.distributed import run as torchrun
from torch.distributed.elastic.rendezvous import rendezvous_handler_registry

from cotenant.bench.meeting import BACKEND, HostsRendezvous, Node
from cotenant.errors import CotenantError
from cotenant.protocol.messages import NODE_VARIABLE
from cotenant.suite.variables import value_behind
from cotenant.text import endpoint


def number_of_ranks(words: Sequence[str], environ: Mapping[str, str], count: Callable[[], int]) -> int:
    """Return the number of processes of a benchmark with these flags on this node; 0: start it without a launcher.

    Without one it reports a problem with its devices best. `count` returns the number of devices that torch sees.
    """
    devices = value_behind(words, "--devices", usual="0")
    if value_behind(words, "--parallel") == "dp" or not devices.isdecimal():
        return 0
    total = environ.get("DEVICE_TOTAL")
    if int(devices) > int(total or devices):
        return 0
    return int(devices) or int(total or 0) or max(1, count())


def launcher_flags(ranks: int, environ: Mapping[str, str]) -> list[str]:
    """Return torchrun's flags for this many processes on this node; it reads the number of nodes from PET_*."""
    address, port = environ.get("MASTER_ADDR", "127.0.0.1"), environ.get("MASTER_PORT", "29500")
    if environ.get("PET_NNODES", "1") == "1" or environ.get(NODE_VARIABLE):
        meeting = [f"--rdzv_backend={BACKEND}", f"--rdzv_endpoint={endpoint(address, int(port))}"]
    else:  # No runner described the nodes.
        meeting = [f"--master_addr={address}", f"--master_port={port}"]
    return [f"--nproc_per_node={ranks}", *meeting]


def main() -> None:
    """Become the benchmark, or the launcher of its ranks."""
    task, *words = sys.argv[1:]
    ranks = number_of_ranks(words, os.environ, torch.accelerator.device_count)
    if not ranks:
        os.execv(sys.executable, [sys.executable, task, *words])
    node = Node.of(ranks)
    if node is not None:
        os.environ.pop("PET_NODE_RANK", None)  # torchrun would warn that only its own rendezvous heeds it.
    rendezvous_handler_registry.register(BACKEND, lambda given: HostsRendezvous(given, node))
    try:
        torchrun.main([*launcher_flags(ranks, os.environ), task, *words])
    except CotenantError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_status)


if __name__ == "__main__":
    main()
