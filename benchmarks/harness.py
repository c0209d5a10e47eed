"""Promise 2: at most 1 microsecond of harness per batch, and 0.995 of a bare loop's rate.

Three bare loops are put beside the measured one, by turns, in one process on one processor: around a step that does
nothing, around the task's own step, and one written out by hand around a model of its own, as anybody would write it.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import torch
from pairs import Median, interleaved, median_of
from rich.console import Console
from rich.table import Table
from torch.nn import functional

from cotenant.bench.chrono import Work, observe
from cotenant.bench.contract import Benchmark
from cotenant.bench.device import Device
from cotenant.bench.loop import Loop
from cotenant.bench.run import Run

TASKS = Path(__file__).resolve().parents[1] / "tasks"
PAIRS = 800
CPU = Device(torch.device("cpu"))
Timed = Callable[[], int]


def timed(body: Callable[[], None], number: int) -> Timed:
    """Return a function that runs `body` so often and returns the nanoseconds of it."""

    def run() -> int:
        start_ns = perf_counter_ns()
        for _ in range(number):
            body()
        return perf_counter_ns() - start_ns

    return run


def observed(work: Work, number: int) -> Timed:
    def run() -> int:
        seen = observe(work, number)
        return seen.end_ns - seen.start_ns

    return run


def bare(work: Work, number: int) -> Timed:
    def run() -> int:
        step, batches, given = work.step, work.batches, work.run
        start_ns = perf_counter_ns()
        for _ in range(number):
            step(given, next(batches))
        return perf_counter_ns() - start_ns

    return run


def per_batch() -> Median:
    """Return the nanoseconds that `observe` adds to a batch whose step does nothing, books kept on every one."""
    loss, number = torch.zeros(()), 10_000
    work = Work(itertools.repeat(torch.zeros(64, 4)), lambda run, batch: loss, len, None, CPU)
    ours, theirs = interleaved(observed(work, number), bare(work, number), 101)
    return median_of([(a - b) / number for a, b in zip(ours, theirs, strict=True)])


def polynome_by_hand() -> Callable[[], None]:
    """Return one step of polynomial regression as a plain script has it."""
    device, weights, bias, powers = torch.device("cpu"), torch.randn(4, 1) * 5, torch.randn(1) * 5, torch.arange(1, 5)
    model, criterion = torch.nn.Linear(4, 1), torch.nn.SmoothL1Loss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        x = torch.randn(256, 1) ** powers
        y = x @ weights + bias
        x, y = x.to(device), y.to(device)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def vae_by_hand(model: torch.nn.Module) -> Callable[[], None]:
    """Return one step of the auto-encoder as a plain script has it."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x = (torch.rand(128, 784) - 0.8).clamp(min=0) * 5

    def step() -> None:
        logits, mean, log_variance = model(x)
        loss = functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
        loss = loss - 0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def task(path: str) -> Any:
    """Return a task's module."""
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), TASKS / path / "pytorch" / "main.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rates(benchmark: Benchmark, by_hand: Callable[[], None], number: int) -> tuple[Median, Median]:
    """Return our rate over that of the same step in a bare loop, and over that of the loop written by hand."""
    loop = Loop(benchmark, Run(benchmark))
    loop.warm_up()
    work = loop._work
    medians = []
    for other in (bare(work, number), timed(by_hand, number)):
        ours, theirs = interleaved(observed(work, number), other, PAIRS)
        medians.append(median_of([b / a for a, b in zip(ours, theirs, strict=True)]))
    return medians[0], medians[1]


def main() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    cost = per_batch()
    polynome = task("regression/polynome")
    vae = task("variational_auto_encoder/auto_encoding_variational_bayes")
    table = Table("what", "median", "95 % interval", "pairs", "promise", title="Harness against a bare loop")
    interval = f"{cost.low:.0f} .. {cost.high:.0f}"
    table.add_row("harness per batch", f"{cost.value:.0f} ns", interval, str(cost.n), "<= 1000 ns")
    for name, benchmark, by_hand, number in (
        ("toy_reg", polynome.PolynomialRegression(), polynome_by_hand(), 20),
        ("vae", vae.AutoEncoder(), vae_by_hand(vae.VAE(400, 20)), 4),
    ):
        same, other = rates(benchmark, by_hand, number)
        for what, one, promise in (
            (f"{name}: rate / same step in a bare loop", same, "upper end >= 0.995"),
            (f"{name}: rate / a loop written by hand", other, ""),
        ):
            table.add_row(what, f"{one.value:.4f}", f"{one.low:.4f} .. {one.high:.4f}", str(one.n), promise)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
