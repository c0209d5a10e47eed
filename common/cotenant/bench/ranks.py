"""Starts a process per device of a benchmark that trains one model: python -m cotenant.bench.ranks MAIN.PY [FLAGS].

They are as many as `--devices` says, 0 or unsaid for all of $DEVICE_TOTAL or, where nobody set that, all that torch
sees. With `--parallel dp` it is one process for all of them.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence

import torch
from torch.distributed import TCPStore  # type: ignore[attr-defined] # as its documentation has it
from torch.distributed import run as torchrun
from torch.distributed.elastic.rendezvous import RendezvousInfo, RendezvousParameters, rendezvous_handler_registry
from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import StaticTCPRendezvous

from cotenant.suite.variables import value_behind
from cotenant.text import endpoint

ONE_HOST = "cotenant-one-host"
STORE_LIMIT_S = 600
"""torchrun's own for a static rendezvous."""


def ranks_of(words: Sequence[str], environ: Mapping[str, str], count: Callable[[], int]) -> int:
    """Return how many processes a benchmark with these flags takes on this node; 0: it is to be started by itself.

    By itself it names the fault of its devices best. `count` gives those that torch sees.
    """
    devices = value_behind(words, "--devices", usual="0")
    if value_behind(words, "--parallel") == "dp" or not devices.isdecimal():
        return 0
    total = environ.get("DEVICE_TOTAL")
    if int(devices) > int(total or devices):
        return 0
    return int(devices) or int(total or 0) or max(1, count())


class OneHostRendezvous(StaticTCPRendezvous):
    """torchrun's static rendezvous of one node, whose store listens at MASTER_ADDR alone.

    The store asks nobody for a password, and torch's own listens at every address of the host.
    """

    def get_backend(self) -> str:
        return ONE_HOST

    def next_rendezvous(self) -> RendezvousInfo:
        if self._store is None:
            family, *_, address = socket.getaddrinfo(self.master_addr, self.master_port, type=socket.SOCK_STREAM)[0]
            descriptor = socket.create_server(address[:2], family=family).detach()
            meeting = self.master_addr, self.master_port, self.world_size, True, self.timeout
            self._store = TCPStore(*meeting, multi_tenant=True, master_listen_fd=descriptor)
        return super().next_rendezvous()


def one_host(given: RendezvousParameters) -> OneHostRendezvous:
    """Return the variables of torchrun's rendezvous with `launcher_flags` of one node."""
    address, _, port = given.endpoint.rpartition(":")
    return OneHostRendezvous(address.strip("[]"), int(port), 0, 1, given.run_id, STORE_LIMIT_S)


def launcher_flags(ranks: int, environ: Mapping[str, str]) -> list[str]:
    """Return the flags of torchrun for so many processes on this node; for several nodes it reads PET_* itself."""
    address, port = environ.get("MASTER_ADDR", "127.0.0.1"), environ.get("MASTER_PORT", "29500")
    if environ.get("PET_NNODES", "1") == "1":
        meeting = [f"--rdzv_backend={ONE_HOST}", f"--rdzv_endpoint={endpoint(address, int(port))}"]
    else:
        meeting = [f"--master_addr={address}", f"--master_port={port}"]
    return [f"--nproc_per_node={ranks}", *meeting]


def main() -> None:
    """Become the benchmark, or the launcher of its ranks."""
    task, *words = sys.argv[1:]
    ranks = ranks_of(words, os.environ, torch.accelerator.device_count)
    if not ranks:
        os.execv(sys.executable, [sys.executable, task, *words])
    rendezvous_handler_registry.register(ONE_HOST, one_host)
    torchrun.main([*launcher_flags(ranks, os.environ), task, *words])


if __name__ == "__main__":
    main()
