"""What a benchmark is given: where to place models, how to update them, where batches come from."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cotenant.bench.contract import Benchmark
from cotenant.bench.device import Device, choose_device
from cotenant.bench.loader import loader
from cotenant.bench.outcome import MissingDataError
from cotenant.bench.precision import Precision, set_precision
from cotenant.bench.world import World
from cotenant.findings.finding import Finding


class Run:
    """One start of one benchmark on one device in one precision; `seed` is the benchmark's plus the rank."""

    def __init__(self, benchmark: Benchmark) -> None:
        self.benchmark = benchmark
        self.findings: list[Finding] = []
        self.metrics: dict[str, float] = {}
        self.loads = False
        self.world = World.from_environment()
        self.world.settle()
        self.chosen: Device = choose_device(benchmark.cuda, self.world.local_rank)
        self.device: torch.device = self.chosen.torch_device
        if benchmark.cuda and not self.chosen.is_accelerator:
            self.findings.append(Finding("no_accelerator", "info", "No accelerator was found: it ran on the CPU."))
        if not self.chosen.is_accelerator:
            # A resident batch is learned by heart, and gradients that fade into denormals slow a processor by a fifth.
            torch.set_flush_denormal(True)
        self.precision: Precision = set_precision(benchmark.asked_precision, self.chosen)
        self.world.join(self.chosen)
        self.seed = benchmark.seed + self.world.rank
        random.seed(self.seed)
        np.random.seed(self.seed % 2**32)
        torch.manual_seed(self.seed)
        self.update = self.precision.update

    def place(self, module: torch.nn.Module) -> Any:
        """Return the module on the device, in this precision's weights and memory format, over all ranks, compiled."""
        module = self.precision.convert(module.to(self.device))
        if self.benchmark.channels_last:
            module = module.to(memory_format=torch.channels_last)
        module = self.world.spread(module, self.chosen)
        return torch.compile(module) if self.benchmark.compile else module

    def to_device(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor on the device, in the memory format asked for."""
        placed = tensor.to(self.device, non_blocking=True)
        if self.benchmark.channels_last and placed.dim() == 4:
            return placed.contiguous(memory_format=torch.channels_last)
        return placed

    def resident(self, *tensors: torch.Tensor) -> Iterator[Any]:
        """Return one batch without end: the tensors, placed once on the device (a single one stays bare)."""
        placed = tuple(self.to_device(tensor) for tensor in tensors)
        return itertools.repeat(placed[0] if len(placed) == 1 else placed)

    def loader(self, dataset: Any, collate: Any = None) -> Iterator[Any]:
        """Return full, shuffled batches of the dataset's samples on the device, from one iterator without end."""
        self.loads = True
        benchmark, on_accelerator = self.benchmark, self.chosen.is_accelerator
        return loader(
            dataset,
            benchmark.batch_size,
            self.world.share(benchmark.workers),
            self.seed,
            pin_memory=on_accelerator,
            place=self.to_device if on_accelerator or benchmark.channels_last else None,
            collate=collate,
        )

    def files(self, *parts: str) -> Path:
        """Return a path below `--data`. Raises MissingDataError where nothing is there."""
        assert self.benchmark.data is not None
        path = self.benchmark.data.joinpath(*parts)
        if not path.exists():
            raise MissingDataError(
                f"There is no {path}.",
                "Make the data with ./download_datasets.sh, or give its place with --data.",
            )
        return path
