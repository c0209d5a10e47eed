"""Collects facts that a tenant knows about itself and its runner does not: arguments, losses, software, device."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from cotenant.bench.arguments import Parsed, declared
from cotenant.bench.chrono import Observation
from cotenant.bench.loop import Loop
from cotenant.bench.parameters import BenchmarkParameters
from cotenant.bench.run import Run

LOSSES_KEPT = 100


class Losses:
    """Copies each observation's losses off the device, after its clock has stopped, and counts the non-finite ones."""

    def __init__(self) -> None:
        self._recent: list[float] = []
        self._means: list[float] = []
        self._checked = 0
        self._non_finite = 0

    @property
    def last(self) -> float | None:
        return self._recent[-1] if self._recent else None

    def take(self, observation: Observation) -> None:
        if observation.losses:
            values = torch.stack(observation.losses).cpu().tolist()
            non_finite = sum(not math.isfinite(value) for value in values)
            self._recent = (self._recent + values)[-LOSSES_KEPT:]
            self._means.append(math.nan if non_finite else math.fsum(values) / len(values))
            self._checked += len(values)
            self._non_finite += non_finite

    def summary(self) -> dict[str, Any]:
        """Return batch_loss (the last 100), epoch_loss (a mean per observation) and the counts of checked losses."""
        return {
            "batch_loss": [loss if math.isfinite(loss) else None for loss in self._recent],
            "epoch_loss": [loss if math.isfinite(loss) else None for loss in self._means],
            "losses_checked": self._checked,
            "losses_non_finite": self._non_finite,
        }


_SPELLINGS_OF_PRECISION = ("half", "fp16", "opt_level")
_NOT_FOR_ALL = ("workers", "channels_last", "data", "compile", "cached_batch")
"""Flags that mean nothing to a benchmark without a loader, images, files, a compiled model or a second batch."""


def arguments_of(benchmark: BenchmarkParameters) -> dict[str, Any]:
    """Return every parameter by its name as plain JSON values; the spellings of the precision become one."""
    names = [name for name in declared(type(benchmark)) if name not in _SPELLINGS_OF_PRECISION]
    return {name: _plain(getattr(benchmark, name)) for name in names} | {"precision": benchmark.asked_precision}


def without_effect(parsed: Parsed, run: Run) -> list[str]:
    """Return the given flags that did nothing: declared without effect, or never heeded."""
    unheeded = parsed.given - run.heeded
    names = [name for name in _NOT_FOR_ALL if name in unheeded and parsed.values[name] is not False]
    fixed = run.benchmark.fixed.items()
    names += [name for name, value in fixed if name in parsed.given and parsed.values[name] != value]
    return [*parsed.ignored, *(f"--{name.replace('_', '-')}" for name in names)]


def tenant_facts(run: Run, loop: Loop) -> dict[str, Any]:
    """Return device, metrics, observations, torch's settings and the findings of one run."""
    benchmark = loop.benchmark
    return {
        "gpu": run.chosen.name if run.chosen.is_accelerator else "",
        "metrics": run.metrics,
        "device_memory": run.chosen.peak_memory_bytes(),
        "observed": {
            "dtype": loop.auditor.dtype,
            "products": loop.auditor.counted.products,
            "optimizers": loop.auditor.described,
            "device": str(run.device),
            "world_size": run.world.size,
            "compiled": "compile" in run.heeded and benchmark.compile,
            "threads": torch.get_num_threads(),
            "books_every": loop.books_every,
            "item_is_row": benchmark.item_is_row,
            "updates": loop.updates,
            "updates_credited": loop.promised,
            **loop.auditor.operations(),
            **loop.scaled(),
            **loop.audited(),
            **({"steps_ns": loop.steps_ns} if benchmark.serves else {}),
            **({"nodes": run.world.nodes} if run.world.nodes > 1 else {}),
            **run.observed,
        },
        "torch": {
            "version": str(torch.__version__),
            "cuda": torch.version.cuda,
            "hip": torch.version.hip,
            "cudnn": torch.backends.cudnn.version() if run.chosen.is_accelerator else None,
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
            "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32,
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "switches": run.switches,
            "flush_denormal": not run.chosen.is_accelerator,
        },
        "findings": [asdict(finding) for finding in run.findings],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
