"""The cost of `cotenant exec`'s hook to a script: its rate with the hook over that without, by turns in one process.

python benchmarks/run.py hook [--pairs N] [--trainer]     --trainer: that of Hugging Face's Trainer, with a small BERT

The script is a plain loop, or uses the Trainer; a child process plays the runner and reads its messages. An
observation lasts 20 ms, as in launches by blocks, and a turn has five. Turns are timed by the clock and by the thread's
processor time, which a neighbour disturbs less.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from torch.utils.hooks import RemovableHandle

from cotenant.exec.optimizer import Optimizers
from cotenant.exec.settings import Settings
from cotenant.exec.steps import WARM_UP_STEPS
from cotenant.protocol.messages import SOCKET_VARIABLE, TENANT_VARIABLE, encode

PAIRS = 150
OBSERVATION_NS, OBSERVATIONS = 20_000_000, 5
"""A turn has several observations in a row, since only some of them send a message."""
READING_S = 0.1
WIDTHS = (64, 256, 1024)
TRAINER_NUMBER = 4
"""A step of its small BERT takes some 5 ms."""
CLOCKS = (time.perf_counter_ns, time.thread_time_ns)
PROMISE = Promise(">=", 0.99)
Turns = tuple[list[int], list[int]]
"""Nanoseconds of turns without the hook, and with it."""


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


@contextmanager
def hooked(number: int) -> Iterator[Callable[[], RemovableHandle]]:
    """Yield a function that puts the hook on all optimizers, which sends observations of `number` steps to a runner."""
    with tempfile.TemporaryDirectory() as folder:
        runner(Path(folder) / "s", number)
        os.environ |= {SOCKET_VARIABLE: f"{folder}/s", TENANT_VARIABLE: "0"}
        optimizers = Optimizers(torch, Settings(directory=folder), None)
        yield lambda: register_optimizer_step_post_hook(lambda optimizer, args, kwargs: optimizers.stepped(optimizer))


def row(name: str, steps: int, by_clock: Turns, by_processor: Turns) -> tuple[list[str], bool]:
    """Return a line of the table, and whether the promise is kept, by the nanoseconds of turns without and with it."""
    found = [
        median_of([bare / with_ for bare, with_ in zip(*turns, strict=True)]) for turns in (by_clock, by_processor)
    ]
    step_us = median_of([float(took) for took in by_processor[0]]).value / steps / 1e3
    cells = [f"{each.value:.4f} ({each.low:.4f} to {each.high:.4f})" for each in found]
    line = [name, f"{step_us:.3g}", f"{steps}", *cells, f"{len(by_clock[0])}", PROMISE.verdict(found[1].value)]
    return line, PROMISE.kept(found[1].value)


def loop_row(width: int, pairs: int) -> tuple[list[str], bool]:
    """Measure a plain loop."""
    train = step(width)
    train()
    begin_ns = time.thread_time_ns()
    for _ in range(20):
        train()
    number = max(1, OBSERVATION_NS * 20 // (time.thread_time_ns() - begin_ns))
    steps = number * OBSERVATIONS
    with hooked(number) as hook:

        def turn(is_hooked: bool, clock_ns: Callable[[], int]) -> int:
            handle = hook() if is_hooked else None
            start_ns = clock_ns()
            for _ in range(steps):
                train()
            took_ns = clock_ns() - start_ns
            if handle is not None:
                handle.remove()
            return took_ns

        for _ in range(2 + WARM_UP_STEPS):
            turn(True, time.perf_counter_ns)
        turns = [
            interleaved(partial(turn, False, clock_ns), partial(turn, True, clock_ns), pairs) for clock_ns in CLOCKS
        ]
    return row(f"loop, width {width}", steps, *turns)


def trainer_row(pairs: int) -> tuple[list[str], bool]:
    """Measure the Trainer of transformers: one call of `train`, in which a callback puts the hook on by turns."""
    try:
        from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments
    except ImportError as error:
        sys.exit(f"{error}. pip install transformers accelerate")
    steps = TRAINER_NUMBER * OBSERVATIONS
    sides = (
        [False] * 2
        + [True] * (2 + WARM_UP_STEPS)
        + [bool(at) for pair in range(pairs) for at in (pair % 2, 1 - pair % 2)]
    )
    took: list[tuple[bool, list[int]]] = []

    class ByTurns(TrainerCallback):
        """Notes each turn's nanoseconds, by both clocks, and begins the next."""

        def __init__(self, hook: Callable[[], RemovableHandle]) -> None:
            self._hook, self._handle, self._done, self._since = hook, None, 0, [clock() for clock in CLOCKS]

        def on_step_end(self, *_: Any, **__: Any) -> None:
            self._done += 1
            if self._done % steps:
                return
            now, turn = [clock() for clock in CLOCKS], self._done // steps
            took.append((sides[turn - 1], [end - begin for end, begin in zip(now, self._since, strict=True)]))
            if self._handle is not None:
                self._handle.remove()
            self._handle = self._hook() if turn < len(sides) and sides[turn] else None
            self._since = [clock() for clock in CLOCKS]

    small = BertConfig(
        vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128, num_labels=2
    )
    row_of = {"input_ids": torch.arange(32) % 100, "labels": torch.tensor(1)}
    with tempfile.TemporaryDirectory() as folder, hooked(TRAINER_NUMBER) as hook:
        given = TrainingArguments(
            folder,
            max_steps=steps * len(sides),
            per_device_train_batch_size=8,
            save_strategy="no",
            report_to=[],
            logging_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            dataloader_pin_memory=False,
        )
        Trainer(
            BertForSequenceClassification(small), given, train_dataset=[row_of] * 64, callbacks=[ByTurns(hook)]
        ).train()
    counted = took[-2 * pairs :]
    turns = [tuple([of[at] for side, of in counted if side == with_] for with_ in (False, True)) for at in (0, 1)]
    return row("Trainer, a small BERT", steps, *turns)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="run.py hook")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--trainer", action="store_true", help="of transformers, in place of plain loops")
    given = parser.parse_args(argv)
    one_processor()
    columns = (
        "script",
        "step, us",
        "steps a turn",
        "rate kept, clock",
        "rate kept, processor time",
        "pairs",
        "promise",
    )
    table = Table(*columns, title="A script's rate with the hook over that without")
    rows = [trainer_row(given.pairs)] if given.trainer else [loop_row(width, given.pairs) for width in WIDTHS]
    for cells, _ in rows:
        table.add_row(*cells)
    Console(width=150).print(table)
    return 0 if all(kept for _, kept in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
