"""Benchmarks that train one model over several devices and nodes, in the requested form."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Literal

import torch

from cotenant.bench.arguments import flag
from cotenant.bench.contract import Benchmark
from cotenant.bench.outcome import UnsupportedError
from cotenant.bench.parallel import Compression, described_form
from cotenant.bench.run import Run
from cotenant.bench.world import World
from cotenant.errors import CotenantError


class Distributed(Benchmark):
    """A benchmark of one model, placed by `distribute`; `batch_size` is per device.

    It runs as a process per device, started by `cotenant.bench.ranks`, or as one process with a replica on each device.
    """

    replicable: ClassVar[bool] = True
    """True if DataParallel can split a batch by its rows, and a step uses nothing of the model but its output."""

    devices: int = flag(0, help="number of devices used on each node; 0 means all", least=0)
    nodes: int = flag(0, help="number of nodes, as in the runner's --nnodes; 0 means all", least=0)
    parallel: Literal["ddp", "fsdp", "dp"] = flag(
        "ddp", help="replicas (DDP), shards of the weights (FSDP), or one process with DataParallel"
    )
    gradient_compression: Compression = flag(
        "none", help="precision in which ddp and fsdp send gradients, if not their own"
    )

    def __init__(self, **parameters: Any) -> None:
        world = World.from_environment()
        started, hosts = world.local_size, world.nodes
        requested = parameters.get("devices")
        parameters["devices"] = requested or started
        super().__init__(**parameters)
        if self.parallel == "dp":
            self._deal_out(requested)
        if self.nodes not in (0, hosts):
            raise CotenantError(
                f"--nodes {self.nodes} differs from the number of nodes, {hosts}.", "Start the runner with --nnodes."
            )
        if self.devices == started:
            return
        there = int(os.environ.get("DEVICE_TOTAL", self.devices))
        if self.devices > there:
            raise UnsupportedError(f"--devices {self.devices} is more than DEVICE_TOTAL, {there}.", "Ask for fewer.")
        raise CotenantError(
            f"--devices {self.devices} takes as many processes, not {started}.",
            "Start it with the run.sh or run_distributed.sh of a job of the group all.",
        )

    def _deal_out(self, requested: int | None) -> None:
        """Let one process hold the replicas of all devices, and split one large batch among them."""
        if not self.replicable:
            raise UnsupportedError("DataParallel cannot replicate this model.", "Use --parallel ddp or fsdp.")
        if self.gradient_compression != "none":
            raise UnsupportedError("DataParallel sends no gradients to compress.", "Use --parallel ddp or fsdp.")
        there = torch.accelerator.device_count() if self.cuda else 0
        self.replicas = requested or int(os.environ.get("DEVICE_TOTAL", "0")) or max(1, there)
        if self.replicas > max(1, there):
            raise UnsupportedError(
                f"--parallel dp --devices {self.replicas} needs as many accelerators, and there are {there}.",
                "Ask for fewer.",
            )
        self.devices = 1
        self.batch_size *= self.replicas

    def distribute(self, run: Run, model: torch.nn.Module) -> Any:
        """Return the model placed over all devices, in the requested form."""
        if self.parallel == "dp":
            placed = run.replicate(model, self.replicas)
        else:
            placed = run.place(model, self.parallel, self.gradient_compression)
        # Also recorded for a single device, the first point of each form's curve.
        run.observed.setdefault("parallel", described_form(self.parallel, self.gradient_compression))
        return placed
