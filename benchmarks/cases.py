"""The tasks that input binds, each with its limits; sizes as in jobs.py, or the reference suite's on an accelerator."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from jobs import JOBS
from limits import (
    Case,
    Crew,
    Turn,
    after_each_other,
    blank,
    elapsed,
    loading,
    read_bytes,
    stepping,
    triad,
    working,
)
from sides import benchmark_of, prepared

from cotenant.bench import Run
from cotenant.bench.images import DECODERS, Images, class_folders, decode
from cotenant.bench.loader import usual_workers

FLOATS_OF_ADAM = 8
"""Moved for each weight: its gradient written; weight, gradient and two moments read; all but the gradient written."""


@dataclass(frozen=True)
class Given:
    """What the cases are made with."""

    pictures: Path
    cuda: bool
    stack: ExitStack

    def started(self, name: str, **more: Any) -> tuple[Any, Run, Any]:
        """Return a job's benchmark, its run, and what a batch takes."""
        usual = {} if self.cuda and torch.accelerator.is_available() else JOBS[name].arguments
        benchmark = benchmark_of(JOBS[name].task)(cuda=self.cuda, **(usual | more))
        run = Run(benchmark)
        work, _ = prepared(benchmark, run)
        return benchmark, run, work


def loader(given: Given) -> Case:
    workers = usual_workers()
    benchmark, run, work = given.started("loader", data=given.pictures, workers=workers)
    number, rows = max(4, 2 * workers), benchmark.batch_size
    found = class_folders(given.pictures, run.remedy)
    paths = [found.paths[index] for index in range(len(found.paths))]
    crew = given.stack.enter_context(Crew())
    crop = partial(DECODERS[run.observed["decoder"]], size=benchmark.size)
    empty = Images(found.paths, partial(blank, size=benchmark.size), run.remedy)
    handed_over = map(benchmark.normalise, run.loader(empty))
    return Case(
        "image",
        working("loader", run, work, number, number * rows),
        [
            crew.turn("reading bytes, all processors", read_bytes, paths * 4),
            crew.turn("decoding, all processors", decode, paths),
            crew.turn("decoding and cropping, all processors", crop, paths),
            loading("handing over and normalising", run, handed_over, number, rows),
        ],
    )


def from_files(name: str, given: Given) -> Case:
    """Return the case of a task that trains on pictures."""
    workers = usual_workers()
    benchmark, run, work = given.started(name, data=given.pictures, workers=workers)
    number, rows = max(2, workers), benchmark.batch_size
    alone = loading("its input alone", run, iter(benchmark.batches(run)), number, rows)
    step = stepping("its step alone, on a resident batch", run, work, number, number * rows)
    limits = [alone, step]
    if not run.chosen.is_accelerator:
        limits.append(after_each_other("input, then step, on the same processors", alone, step))
    return Case("image", working(name, run, work, number, number * rows), limits)


def atari(given: Given) -> Case:
    """Return the case of playing and learning, which come one after the other."""
    benchmark, run, work = given.started("atari")
    other, other_run, _ = given.started("atari")
    items = float(benchmark.num_steps * benchmark.batch_size)
    rollout = other.play(other_run)
    learn = other_run.precision.around(lambda run, rollout: other.learn(run, rollout))
    shape = (benchmark.num_steps, benchmark.batch_size)
    actions_tn = np.random.default_rng(0).integers(other.games.single_action_space.n, size=shape)

    def play() -> None:
        for actions_n in actions_tn:
            other.games.step(actions_n)

    @torch.no_grad()
    def choose() -> None:
        for frames_nfhw in other.frames_tnfhw:
            log_probabilities_na, _ = other.policy(frames_nfhw)
            log_probabilities_na.argmax(1).cpu()

    def update() -> None:
        learn(other_run, rollout)
        other_run.chosen.synchronize()

    parts = [
        Turn("its environments alone, random actions", elapsed(play), items),
        Turn("its update alone", elapsed(update), items),
        Turn("the policy's choices alone", elapsed(choose), items),
    ]
    return Case(
        "environment step",
        working("atari", run, work, 1, items),
        [
            *parts,
            after_each_other("environments, then update", *parts[:2]),
            after_each_other("environments, choices, update", *parts),
        ],
    )


def recom(given: Given) -> Case:
    from cotenant.datasets.obtain import obtain
    from cotenant.datasets.request import SetRequest
    from cotenant.datasets.sets.ml_20m import DATASET

    folder = Path(given.stack.enter_context(TemporaryDirectory()))
    obtain(SetRequest(folder, DATASET, "small", processes=1))
    benchmark, run, work = given.started("recom", data=folder / DATASET.folder)
    # So many batches are drawn at once. On a CPU a step takes a hundred times as long as the drawing for it.
    drawn, rows = 64, benchmark.batch_size
    number = drawn if run.chosen.is_accelerator else 4
    items = float(number * rows)
    user, item, _ = next(work.batches)
    tables = benchmark.model.user.weight.detach(), benchmark.model.item.weight.detach()

    def gather() -> None:
        for _ in range(number):
            for table, rows_b in zip(tables, (user, item), strict=True):
                table.index_select(0, rows_b)
        run.chosen.synchronize()

    weights = sum(one.numel() for one in benchmark.model.parameters())
    return Case(
        "sample",
        working("recom", run, work, number, items),
        [
            loading("its drawing alone", run, iter(benchmark.batches(run)), drawn, rows),
            stepping("its step alone, on a resident batch", run, work, number, items),
            Turn("gathering embeddings alone", elapsed(gather), items),
            triad("memory: the bytes that Adam moves", run, FLOATS_OF_ADAM * 4 * weights, float(rows)),
        ],
    )


CASES: dict[str, Callable[[Given], Case]] = {
    "loader": loader,
    "atari": atari,
    "recom": recom,
    **{name: partial(from_files, name) for name in ("reso", "convnet", "dcgan")},
}


def readers(given: Given) -> dict[tuple[str, int], Turn]:
    """Return a turn of the loader with each decoder and several numbers of processes."""
    processors = len(os.sched_getaffinity(0))
    turns = {}
    for decoder, workers in itertools.product(DECODERS, sorted({0, 1, processors, 2 * processors})):
        benchmark, run, work = given.started("loader", data=given.pictures, workers=workers, decoder=decoder)
        number = max(4, 2 * workers)
        turns[decoder, workers] = working("loader", run, work, number, number * benchmark.batch_size)
    return turns


def players(given: Given) -> dict[str, Turn]:
    """Return a turn of each way to play Pong in several environments; gymnasium's two neither scale nor stack."""
    import ale_py
    import gymnasium

    gymnasium.register_envs(ale_py)
    benchmark, _, _ = given.started("atari")
    make = partial(gymnasium.make, "ALE/Pong-v5", frameskip=4, obs_type="grayscale", repeat_action_probability=0.0)
    turns = {}
    for name, games in {
        "ale-py's AtariVectorEnv, as the task has it": benchmark.games,
        "gymnasium's SyncVectorEnv, bare frames": gymnasium.vector.SyncVectorEnv([make] * benchmark.batch_size),
        "gymnasium's AsyncVectorEnv, bare frames": gymnasium.vector.AsyncVectorEnv([make] * benchmark.batch_size),
    }.items():
        if games is not benchmark.games:
            given.stack.callback(games.close)
        games.reset(seed=0)
        actions_n = np.zeros(benchmark.batch_size, np.int64)

        def play(games: Any = games, actions_n: np.ndarray = actions_n) -> None:
            for _ in range(32):
                games.step(actions_n)

        turns[name] = Turn(name, elapsed(play), 32 * benchmark.batch_size)
    return turns
