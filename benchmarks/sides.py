"""The sides of a comparison: a task in the measured loop, its step in a bare loop, and the page written by hand."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import torch
from jobs import Job

from cotenant.bench import Benchmark, Run
from cotenant.bench.chrono import Work, observe
from cotenant.bench.loop import WARM_UP_STEPS, Loop

TASKS = Path(__file__).resolve().parents[1] / "tasks"
Timed = Callable[[], int]
"""A function that runs one turn and returns its nanoseconds."""


def one_processor(rank: int = 0) -> None:
    """Pin this process to one processor and one thread; ranks get different processors if there are enough."""
    processors = sorted(os.sched_getaffinity(0), reverse=True)
    os.sched_setaffinity(0, {processors[rank % len(processors)]})
    torch.set_num_threads(1)


def observed(work: Work, number: int) -> Timed:
    def run() -> int:
        seen = observe(work, number)
        return seen.end_ns - seen.start_ns

    return run


def bare(work: Work, number: int) -> Timed:
    def run() -> int:
        step, batches, given, device = work.step, work.batches, work.run, work.device
        device.synchronize()
        start_ns = perf_counter_ns()
        for _ in range(number):
            step(given, next(batches))
        device.synchronize()
        return perf_counter_ns() - start_ns

    return run


def by_hand(script: Iterator[Any], number: int) -> Timed:
    def run() -> int:
        start_ns = perf_counter_ns()
        for _ in itertools.islice(script, number):
            pass
        return perf_counter_ns() - start_ns

    return run


def benchmark_of(task: str) -> type[Benchmark]:
    """Return the benchmark of tasks/<task>. A process can load one task only: the tasks' modules share names."""
    folder = TASKS / task / "pytorch"
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location("measured_task", folder / "main.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["measured_task"] = module
    spec.loader.exec_module(module)
    classes = [value for value in vars(module).values() if inspect.isclass(value)]
    return next(cls for cls in reversed(classes) if cls.__module__ == "measured_task" and issubclass(cls, Benchmark))


def prepared(benchmark: Benchmark, run: Run) -> tuple[Work, list[torch.Tensor]]:
    """Build a benchmark and warm it up; return the `Work` of its loop and its trained weights."""
    torch.manual_seed(0)
    loop = Loop(benchmark, run)
    loop.warm_up()
    modules = (value for value in vars(benchmark).values() if isinstance(value, torch.nn.Module))
    return loop._work, trained(modules)


def opened(job: Job, data: dict[str, Path]) -> tuple[Iterator[Any], list[torch.Tensor]]:
    """Return the iterator of a page's steps, after the same warm-up as a task's, and its trained weights."""
    torch.manual_seed(0)
    page = importlib.import_module(f"by_hand.{job.page}")
    known = inspect.signature(page.script).parameters
    script = page.script(**{name: value for name, value in (job.arguments | data).items() if name in known})
    weights = trained([next(script)])
    for _ in itertools.islice(script, WARM_UP_STEPS):
        pass
    return script, weights


def trained(modules: Iterable[torch.nn.Module]) -> list[torch.Tensor]:
    """Return every parameter that has a gradient, without repetition."""
    found = {id(one): one for module in modules for one in module.parameters() if one.requires_grad}
    return list(found.values())
