"""Promise 2: at most 1 microsecond of harness per batch, and 0.995 of a bare loop's rate.

The bare loops are written out here as anybody would write them, around models of their own; nothing of the harness is in
them. Both sides run in this process, on one processor, by turns.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from time import perf_counter_ns

import torch
from pairs import Median, interleaved, median_of
from rich.console import Console
from rich.table import Table

from cotenant.bench.chrono import Work, observe
from cotenant.bench.contract import Benchmark
from cotenant.bench.device import Device
from cotenant.bench.loop import Loop
from cotenant.bench.run import Run

TASKS = Path(__file__).resolve().parents[1] / "tasks"
CPU = Device(torch.device("cpu"))


def per_batch() -> Median:
    """Return the nanoseconds per batch that `observe` adds to `for ...: step(next(batches))`; the step does nothing."""
    batches, loss, number = itertools.repeat(torch.zeros(64, 4)), torch.zeros(()), 10_000

    def step(run: object, batch: torch.Tensor) -> torch.Tensor:
        return loss

    def harness() -> int:
        seen = observe(Work(batches, lambda: batches, step, len, None, CPU), number)
        return seen.end_ns - seen.start_ns

    def bare() -> int:
        start = perf_counter_ns()
        for _ in range(number):
            step(None, next(batches))
        return perf_counter_ns() - start

    ours, theirs = interleaved(harness, bare, 101)
    return median_of([(a - b) / number for a, b in zip(ours, theirs, strict=True)])


def bare_toy_reg(number: int, batch_size: int = 256) -> int:
    """The loop around polynomial regression that needs no harness."""
    state = bare_toy_reg.__dict__.setdefault("state", {})
    if not state:
        model = torch.nn.Linear(4, 1)
        state.update(
            model=model,
            loss=torch.nn.SmoothL1Loss(),
            optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
            weights=torch.randn(4, 1) * 5,
            bias=torch.randn(1) * 5,
            powers=torch.arange(1, 5),
        )
    model, criterion, optimizer = state["model"], state["loss"], state["optimizer"]
    weights, bias, powers = state["weights"], state["bias"], state["powers"]
    start = perf_counter_ns()
    for _ in range(number):
        x = torch.randn(batch_size, 1) ** powers
        y = x @ weights + bias
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return perf_counter_ns() - start


def bare_vae(module: object, number: int, batch_size: int = 128) -> int:
    """The loop around the auto-encoder that needs no harness."""
    functional = torch.nn.functional
    state = bare_vae.__dict__.setdefault("state", {})
    if not state:
        model = module.VAE(400, 20)  # type: ignore[attr-defined]
        state.update(
            model=model,
            optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
            x=(torch.rand(batch_size, 784) - 0.8).clamp(min=0) * 5,
        )
    model, optimizer, x = state["model"], state["optimizer"], state["x"]
    start = perf_counter_ns()
    for _ in range(number):
        logits, mean, log_variance = model(x)
        loss = functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
        loss = loss - 0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return perf_counter_ns() - start


def task(path: str) -> object:
    """Return a task's module."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), TASKS / path / "pytorch" / "main.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ratio(benchmark: Benchmark, bare: object, number: int, pairs: int) -> Median:
    """Return our rate over the bare loop's, pair by pair."""
    loop = Loop(benchmark, Run(benchmark))
    loop.warm_up()

    def harness() -> int:
        seen = observe(loop._work, number)
        return seen.end_ns - seen.start_ns

    ours, theirs = interleaved(harness, lambda: bare(number), pairs)  # type: ignore[operator]
    return median_of([b / a for a, b in zip(ours, theirs, strict=True)])


def main() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    cost = per_batch()
    polynome = task("regression/polynome")
    vae = task("variational_auto_encoder/auto_encoding_variational_bayes")
    toy = ratio(polynome.PolynomialRegression(), bare_toy_reg, 100, 600)  # type: ignore[attr-defined]
    auto = ratio(vae.AutoEncoder(), lambda n: bare_vae(vae, n), 5, 600)  # type: ignore[attr-defined]
    table = Table("what", "median", "95 % interval", "pairs", "promise", title="Harness against a bare loop")
    table.add_row(
        "harness per batch", f"{cost.value:.0f} ns", f"{cost.low:.0f} .. {cost.high:.0f}", str(cost.n), "<= 1000 ns"
    )
    for name, one in (("toy_reg", toy), ("vae", auto)):
        row = (f"rate of {name} / bare loop", f"{one.value:.4f}", f"{one.low:.4f} .. {one.high:.4f}", str(one.n))
        table.add_row(*row, "upper end >= 0.995")
    Console(width=120).print(table)


if __name__ == "__main__":
    sys.exit(main())
