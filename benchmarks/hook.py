"""The cost of `cotenant exec`'s hook to a script: its rate with the hook over that without, by turns in one process.

python benchmarks/run.py hook [--pairs N]

The script is a plain loop; a child process plays the runner and reads its messages. An observation lasts 20 ms, as in
launches by blocks, and a turn has five. Turns are timed by the clock and by the thread's processor time, which a
neighbour disturbs less.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pairs import interleaved, median_of
from promises import Promise
from rich.console import Console
from rich.table import Table
from sides import one_processor
from torch.optim.optimizer import register_optimizer_step_post_hook

from cotenant.exec.optimizer import Optimizers
from cotenant.exec.settings import Settings
from cotenant.exec.steps import WARM_UP_STEPS
from cotenant.protocol.messages import SOCKET_VARIABLE, TENANT_VARIABLE, encode

PAIRS = 150
OBSERVATION_NS, OBSERVATIONS = 20_000_000, 5
"""A turn has several observations in a row, since only some of them send a message."""
READING_S = 0.1
WIDTHS = (64, 256, 1024)
PROMISE = Promise(">=", 0.99)


def step(width: int) -> Callable[[], Any]:
    """Return a training step of a multilayer perceptron on a resident batch."""
    layers = torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width)
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(64, width)

    def train() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return train


def runner(path: Path, number: int) -> None:
    """Fork a child that accepts the hook's connection, sends GO at once, and reads ten times a second until the end."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    if os.fork():
        return
    connection, _ = listener.accept()
    connection.sendall(encode("go", t0_ns=time.perf_counter_ns(), number=number, repeat=1 << 30, skip=0))
    while connection.recv(1 << 16):
        time.sleep(READING_S)
    os._exit(0)


def row(width: int, pairs: int) -> tuple[list[str], bool]:
    """Return a line of the table, and whether the promise is kept."""
    train = step(width)
    train()
    begin_ns = time.thread_time_ns()
    for _ in range(20):
        train()
    number = max(1, OBSERVATION_NS * 20 // (time.thread_time_ns() - begin_ns))
    steps = number * OBSERVATIONS
    with tempfile.TemporaryDirectory() as folder:
        runner(Path(folder) / "s", number)
        os.environ |= {SOCKET_VARIABLE: f"{folder}/s", TENANT_VARIABLE: "0"}
        optimizers = Optimizers(torch, Settings(directory=folder), None)

        def turn(is_hooked: bool, clock_ns: Callable[[], int]) -> int:
            hook = lambda optimizer, args, kwargs: optimizers.stepped(optimizer)  # noqa: E731
            handle = register_optimizer_step_post_hook(hook) if is_hooked else None
            start_ns = clock_ns()
            for _ in range(steps):
                train()
            took_ns = clock_ns() - start_ns
            if handle is not None:
                handle.remove()
            return took_ns

        for _ in range(2 + WARM_UP_STEPS):
            turn(True, time.perf_counter_ns)
        found = []
        for clock_ns in (time.perf_counter_ns, time.thread_time_ns):
            bare, hooked = interleaved(partial(turn, False, clock_ns), partial(turn, True, clock_ns), pairs)
            found.append(median_of([without / with_ for without, with_ in zip(bare, hooked, strict=True)]))
            step_us = median_of([float(took) for took in bare]).value / steps / 1e3
    cells = [f"{each.value:.4f} ({each.low:.4f} to {each.high:.4f})" for each in found]
    verdict = PROMISE.verdict(found[1].value)
    return [f"{width}", f"{step_us:.3g}", f"{steps}", *cells, f"{pairs}", verdict], PROMISE.kept(found[1].value)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="run.py hook")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    given = parser.parse_args(argv)
    one_processor()
    columns = ("width", "step, us", "steps a turn", "rate kept, clock", "rate kept, processor time", "pairs", "promise")
    table = Table(*columns, title="A script's rate with the hook over that without")
    rows = [row(width, given.pairs) for width in WIDTHS]
    for cells, _ in rows:
        table.add_row(*cells)
    Console(width=150).print(table)
    return 0 if all(kept for _, kept in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
