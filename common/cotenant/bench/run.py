"""The `Run` of a benchmark: it places models, updates them, and provides batches."""

from __future__ import annotations

import inspect
import itertools
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import TensorDataset

from cotenant.bench.device import (
    choose_device,
    drop_switches,
    inherited_switches,
    make_deterministic,
    settle_processor,
    take_part,
)
from cotenant.bench.loader import PREFETCH, loader
from cotenant.bench.optimizers import Parameters, fused
from cotenant.bench.outcome import MissingDataError, UnsupportedError, outcome_of
from cotenant.bench.parallel import Compression, Form, described_form, take_first
from cotenant.bench.parameters import BenchmarkParameters
from cotenant.bench.precision import set_precision
from cotenant.bench.world import World
from cotenant.errors import CotenantError
from cotenant.finding import Finding, Severity

Held = TypeVar("Held")


class Run:
    """One start of one benchmark on one device in one precision; `seed` is the benchmark's plus the rank."""

    def __init__(self, benchmark: BenchmarkParameters) -> None:
        self.benchmark = benchmark
        self.findings: list[Finding] = []
        self.metrics: dict[str, float] = {}
        self.observed: dict[str, Any] = {}
        self.uneven = False
        """True if steps differ in their work: the watched step's operations then say nothing about the others'."""
        self.heeded: set[str] = set()
        self.switches = inherited_switches(os.environ)
        dropped = drop_switches(os.environ)
        self.world = World.from_environment()
        self.world.settle()
        self.world.check_size(benchmark.devices)
        self.chosen = choose_device(benchmark.cuda, self.world.local_rank, self.world.local_size)
        self.device = self.chosen.torch_device
        if self.chosen.is_accelerator:
            self.findings += dropped
            self.observed["mps"] = self.chosen.under_mps
            self.observed["device_share"] = take_part(self.chosen, os.environ)
        else:
            settle_processor()
            if benchmark.cuda:
                self.note("no_accelerator", "info", "No accelerator was found: it ran on the CPU.")
        torch.backends.cudnn.benchmark = benchmark.same_shapes and not benchmark.deterministic
        if benchmark.deterministic:
            make_deterministic()
        if not benchmark.same_shapes and self.chosen.let_segments_grow():
            self.observed["allocator"] = "expandable segments"
        self.precision = set_precision(benchmark.asked_precision, self.chosen)
        self.channels_last = self._wants_channels_last()
        self.world.join(self.chosen)
        self._seed_with(benchmark.seed + self.world.rank)
        self.update = self.precision.update
        self.minimize = self.precision.minimize

    def note(self, rule: str, severity: Severity, sentence: str, remedy: str = "") -> None:
        """Add a finding to the record of this run."""
        self.findings.append(Finding(rule, severity, sentence, remedy))

    def any_says(self, word: bool) -> bool:
        """Return whether any rank says yes; all of them have to call this."""
        return self.world.any_says(word, self.chosen)

    def _seed_with(self, seed: int) -> None:
        """Seed every generator."""
        self.seed = seed
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)

    @property
    def tries_algorithms(self) -> bool:
        """True if a step before the warm-up times the device's convolutions; with several ranks the warm-up does."""
        return self.chosen.is_accelerator and torch.backends.cudnn.benchmark and self.world.size == 1

    @property
    def updates(self) -> int:
        """The number of updates, by `update` or `minimize`: a step's return does not show that it trained."""
        return self.precision.updates

    def _wants_channels_last(self) -> bool:
        """Return the flag's value; by default True if the benchmark gains and tensor cores, which copy other formats,
        run its convolutions."""
        requested = self.benchmark.channels_last
        if requested is not None:
            return requested
        on_tensor_cores = self.chosen.torch_device.type == "cuda" and self.precision.name != "fp32"
        return self.benchmark.fast_channels_last and on_tensor_cores

    def _note_channels_last(self) -> None:
        self.heeded.add("channels_last")
        self.observed["memory_format"] = "channels_last"

    def place(self, module: nn.Module, form: Form = "ddp", compression: Compression = "none") -> Any:
        """Return the module on the device, in this precision's weights and memory format, over all ranks.

        It is compiled if asked for.

        `form` and `compression` apply to several ranks. Raises UnsupportedError for fp16 weights in shards.
        """
        self.heeded.add("compile")
        sharded = form == "fsdp" and self.world.size > 1
        if sharded and self.precision.name == "half":
            raise UnsupportedError("FSDP has no fp32 copies of fp16 weights.", "Use --precision fp16 or bf16.")
        module = self.precision.convert(module.to(self.device))
        # Shards are flat; channels_last images make convolutions channels_last, too.
        if self.channels_last and not sharded:
            module = module.to(memory_format=torch.channels_last)
            if any(parameter.dim() == 4 for parameter in module.parameters()):
                self._note_channels_last()
        spread = self.world.spread(module, form, compression)
        if self.world.size > 1 and any(parameter.requires_grad for parameter in spread.parameters()):
            self.observed["parallel"] = described_form(form, compression)
        return self._compiled(spread)

    def freeze(self, make: Callable[[], nn.Module]) -> Any:
        """Return the module that `make` builds, on the device and in this precision's type, with weights never updated.

        It is built in place: a large model would fit neither the host nor, in fp32, the device. All ranks get the first
        rank's weights. It is compiled if asked for.
        """
        self.heeded.add("compile")
        before = torch.get_default_dtype()
        torch.set_default_dtype(self.precision.dtype)
        try:
            with self.device:
                module = make()
        finally:
            torch.set_default_dtype(before)
        # Tables of fixed numbers, made in fp32 to be exact, are converted afterwards.
        module = module.to(self.device, self.precision.dtype).requires_grad_(False).eval()
        if self.world.size > 1:
            take_first(module)
        return self._compiled(module)

    def _compiled(self, module: nn.Module) -> Any:
        """Return the module, compiled in the mode asked for, or as it is."""
        mode = self.benchmark.compile
        return torch.compile(module, mode=None if mode is True else mode) if mode else module

    def replicate(self, module: nn.Module, devices: int = 0) -> Any:
        """Return the module placed and, in every step, copied to `devices` devices (0: all), as was common before DDP.

        A batch on the first device is split among them. With a single device the module is only placed, which is a
        finding. Raises CotenantError with several ranks, and UnsupportedError for work that replicas cannot do.
        """
        if self.world.size > 1:
            raise CotenantError("--parallel dp is one process for all devices.", "Start it with run.sh.")
        if os.environ.get("PET_NNODES", "1") != "1":
            # Each node would train a model of its own.
            raise UnsupportedError(
                "DataParallel is one process, on one node.", "Use --parallel ddp, or start it on one node."
            )
        if self.benchmark.compile or self.precision.name == "bf16":
            # Its threads neither run compiled modules nor inherit autocast's dtype: bf16 would become fp16.
            raise UnsupportedError("DataParallel can neither compile nor autocast to bf16.", "Use --parallel ddp.")
        module, replicas = self.place(module), devices or self.chosen.alike
        self.observed["replicas"] = replicas
        if replicas == 1:
            sentence = f"DataParallel has one device here ({self.chosen.name}), so the model ran without it."
            self.note("not_parallel", "info", sentence)
            return module
        self.observed["parallel"] = "dp"
        return nn.DataParallel(module, device_ids=list(range(replicas)))

    def unspread(self, placed: Any) -> Any:
        """Return a placed model without DistributedDataParallel, for gradients that no other rank needs."""
        spread = getattr(placed, "_orig_mod", placed)  # The module that torch.compile has wrapped.
        if not isinstance(spread, nn.parallel.DistributedDataParallel):
            return placed
        return self._compiled(spread.module)

    def adam(self, parameters: Parameters, **options: Any) -> Optimizer:
        """Return torch.optim.Adam with these options, or its fastest equivalent here."""
        return fused("Adam", parameters, self.chosen, self.precision, **options)

    def adamw(self, parameters: Parameters, **options: Any) -> Optimizer:
        """Return torch.optim.AdamW with these options, or its fastest equivalent here."""
        return fused("AdamW", parameters, self.chosen, self.precision, **options)

    def sgd(self, parameters: Parameters, **options: Any) -> Optimizer:
        """Return torch.optim.SGD with these options, or its fastest equivalent here."""
        return fused("SGD", parameters, self.chosen, self.precision, **options)

    def to_device(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor on the device, in the memory format asked for."""
        placed = tensor.to(self.device, non_blocking=True)
        if self.channels_last and placed.dim() == 4:
            self._note_channels_last()
            return placed.contiguous(memory_format=torch.channels_last)
        return placed

    def resident(self, *tensors: torch.Tensor) -> Iterator[Any]:
        """Return one batch without end: the tensors, placed once on the device (a single one stays bare)."""
        placed = tuple(self.to_device(tensor) for tensor in tensors)
        return itertools.repeat(placed[0] if len(placed) == 1 else placed)

    def loader(self, dataset: Any, collate: Any = None, on_host: bool = False) -> Iterator[Any]:
        """Return full, shuffled batches of the dataset's samples on the device, from one iterator without end.

        `on_host`: they stay on the host, for code that brings them to the device itself.
        """
        benchmark, on_accelerator = self.benchmark, self.chosen.is_accelerator
        workers = 0 if isinstance(dataset, TensorDataset) else self._workers()
        self.observed["workers"] = workers * self.world.size
        self.observed["loaded_ahead"] = workers * PREFETCH
        return loader(
            dataset,
            benchmark.batch_size,
            workers,
            self.seed,
            pin_memory=on_accelerator and not on_host,
            place=self.to_device if (on_accelerator or self.channels_last) and not on_host else None,
            collate=collate,
        )

    def _workers(self) -> int:
        """Return the number of this rank's loader processes; a total other than the one asked for is a finding."""
        self.heeded.add("workers")
        requested, ranks = self.benchmark.workers, self.world.local_size
        assert requested is not None
        per_rank = max(1, requested // ranks) if requested else 0
        if per_rank * ranks != requested:
            self.note(
                "workers_shared",
                "info",
                f"{requested} loader processes were asked for, and each of {ranks} ranks has {per_rank}.",
                "Let --workers be a multiple of the ranks.",
            )
        return per_rank

    def files(self, *parts: str) -> Path:
        """Return a path below `--data`. Raises MissingDataError if it does not exist or cannot be read."""
        assert self.benchmark.data is not None
        self.heeded.add("data")
        path = self.benchmark.data.joinpath(*parts)
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise MissingDataError(f"There is no {path}.", self.remedy) from error
        except OSError as error:
            raise MissingDataError(f"{path} cannot be read: {error.strerror}.", self.remedy) from error
        return path

    def read(self, reader: Callable[[Path], Held], *parts: str) -> Held:
        """Return the result of `reader` for a file below `--data`.

        Raises MissingDataError if the file cannot be read, or if `reader` raises ValueError for its content.
        """
        path = self.files(*parts)
        try:
            return reader(path)
        except (OSError, ValueError) as error:
            if outcome_of(error)[0] != "failed":  # Memory ran out: the file is not to blame.
                raise
            reason = (isinstance(error, OSError) and error.strerror) or error
            sentence = f"{path} cannot be read: {reason}."
            raise MissingDataError(sentence, f"Move its set away first. {self.remedy}") from error

    @property
    def remedy(self) -> str:
        """The way to make this benchmark's data: the script beside its folder, if it has one."""
        model = Path(inspect.getfile(type(self.benchmark))).resolve().parents[1]
        if (model / "download_dataset.sh").exists():
            return f"Make the data with ./download_datasets.sh {model.name}, or give its place with --data."
        return "Give the place of the data with --data."
