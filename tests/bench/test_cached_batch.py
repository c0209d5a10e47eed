"""`--cached-batch`: the step without its input, and a record that says so."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import Dataset

from bench.small import Small
from cotenant.bench import Run
from cotenant.bench.arguments import parse
from cotenant.bench.facts import arguments_of, without_effect
from cotenant.bench.loop import Loop
from cotenant.results.identity import unique_id


class Vectors(Dataset[Any]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((3,), float(index)).log1p()


class Loading(Small):
    """Reads in a process of its own, and remembers what it trained on."""

    workers: int | None = 1

    def build(self, run: Run) -> None:
        super().build(run)
        self.seen: list[torch.Tensor] = []

    def batches(self, run: Run) -> Iterator[Any]:
        return run.loader(Vectors())

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        self.seen.append(batch)
        return super().step(run, batch)


def trained(cached: bool) -> tuple[Loading, Run]:
    """Return a benchmark after its warm-up and an observation of five batches."""
    benchmark = Loading(cached_batch=cached)
    loop = Loop(benchmark, run := Run(benchmark))
    if cached:
        assert not multiprocessing.active_children(), "nobody reads on beside the clock"
    loop.warm_up()
    loop.observe(5)
    return benchmark, run


def test_every_step_trains_on_the_first_batch_and_says_so() -> None:
    benchmark, run = trained(cached=True)
    assert len({id(one) for one in benchmark.seen}) == 1
    assert [(one.rule, one.severity) for one in run.findings] == [("cached_batch", "warning")]


def test_without_the_flag_batches_are_read() -> None:
    benchmark, run = trained(cached=False)
    assert len({tuple(one.flatten().tolist()) for one in benchmark.seen}) == len(benchmark.seen) > 5
    assert run.findings == []


def test_of_a_batch_that_is_resident_anyway_the_flag_is_without_effect() -> None:
    parsed = parse(Small, ["--cached-batch"])
    benchmark = Small(**parsed.values)
    Loop(benchmark, run := Run(benchmark))
    assert arguments_of(benchmark)["cached_batch"] is True
    assert without_effect(parsed, run) == ["--cached-batch"]
    assert run.findings == []


def test_it_is_other_work_and_without_it_work_is_what_it_was() -> None:
    before = {"batch_size": 4, "precision": "fp32"}
    ids = [unique_id("small", "v", before | more) for more in ({}, {"cached_batch": False}, {"cached_batch": True})]
    assert ids[0] == ids[1] != ids[2]
