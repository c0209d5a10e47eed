"""What bounds a task: the parts of its work alone, as turns to put beside its own."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import torch
from sides import Timed, observed

from cotenant.bench import Run
from cotenant.bench.chrono import Work

AHEAD = 2
"""Batches that each loader process fetches ahead."""


@dataclass(frozen=True)
class Turn:
    """Work of one kind and how many items it is of."""

    name: str
    timed: Timed
    items: float


@dataclass(frozen=True)
class Case:
    """A task's own turn, in `unit`s, and the limits that its rate is held against."""

    unit: str
    whole: Turn
    limits: list[Turn]


class Crew:
    """As many processes as there are processors, all at the same work on files."""

    def __init__(self) -> None:
        self.size = len(os.sched_getaffinity(0))
        self._pool = ProcessPoolExecutor(
            self.size, multiprocessing.get_context("fork"), initializer=torch.set_num_threads, initargs=(1,)
        )

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()

    def turn(self, name: str, read: Callable[[str], Any], paths: Sequence[str]) -> Turn:
        """Return a turn in which each process reads every one of these files."""

        def run() -> int:
            start_ns = perf_counter_ns()
            for _ in self._pool.map(partial(each, read), [list(paths)] * self.size):
                pass
            return perf_counter_ns() - start_ns

        return Turn(name, run, len(paths) * self.size)


def each(read: Callable[[str], Any], paths: list[str]) -> None:
    for path in paths:
        read(path)


def read_bytes(path: str) -> bytes:
    return Path(path).read_bytes()


def blank(path: str, size: int) -> torch.Tensor:
    return torch.zeros(3, size, size, dtype=torch.uint8)


def quiet(fetch: Callable[[int], None], timed: Timed, number: int, workers: int) -> Timed:
    """Return a turn of `number` batches at a loader's steady pace, after which its processes are idle.

    Their queue, filled while another turn was made, is emptied before the clock starts; afterwards it fills again.
    """

    def run() -> int:
        fetch(AHEAD * workers)
        took_ns = timed()
        time.sleep(min(5.0, 1.5 * AHEAD * workers * took_ns / number / 1e9) if workers else 0)
        return took_ns

    return run


def loading(name: str, run: Run, batches: Iterator[Any], number: int, rows: int) -> Turn:
    """Return a turn that takes batches and does nothing with them."""

    def fetch(count: int) -> None:
        for _ in range(count):
            next(batches)
        run.chosen.synchronize()

    timed = elapsed(lambda: fetch(number))
    return Turn(name, quiet(fetch, timed, number, run.observed.get("workers", 0)), number * rows)


def working(name: str, run: Run, work: Work, number: int, items: float) -> Turn:
    """Return a turn of a task's whole work, in the measured loop."""

    def fetch(count: int) -> None:
        for _ in range(count):
            work.step(run, next(work.batches))

    return Turn(name, quiet(fetch, observed(work, number), number, run.observed.get("workers", 0)), items)


def stepping(name: str, run: Run, work: Work, number: int, items: float) -> Turn:
    """Return a turn of a task's steps on one batch that is there."""
    batch = next(work.batches)

    def steps() -> None:
        for _ in range(number):
            work.step(run, batch)
        run.chosen.synchronize()

    return Turn(name, elapsed(steps), items)


def elapsed(body: Callable[[], object]) -> Timed:
    """Return a function that runs `body` and returns the nanoseconds of it."""

    def run() -> int:
        start_ns = perf_counter_ns()
        body()
        return perf_counter_ns() - start_ns

    return run


def after_each_other(name: str, *turns: Turn) -> Turn:
    """Return one turn of all of these, which are of the same items: nothing of one runs beside the other."""
    assert len({turn.items for turn in turns}) == 1
    return Turn(name, lambda: sum(turn.timed() for turn in turns), turns[0].items)


def triad(name: str, run: Run, moved_bytes: int, items: float) -> Turn:
    """Return a turn that moves so many bytes between memory and processor or device: a = b + 3 c."""
    a, b, c = (torch.ones(moved_bytes // 12, device=run.device) for _ in range(3))

    def move() -> None:
        torch.add(b, c, alpha=3, out=a)
        run.chosen.synchronize()

    return Turn(name, elapsed(move), items)
