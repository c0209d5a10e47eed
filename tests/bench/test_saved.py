"""An audit puts back everything that a step changes: the benchmark's attributes, and graphs that it held before."""

from __future__ import annotations

import random
from collections import Counter, deque
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

from bench.small import Small
from cotenant.bench import Run, saved
from cotenant.bench.saved import Reached, undone
from tasks.loading import built


class Own:
    """An object of a class that the program defines."""

    def __init__(self) -> None:
        self.count, self.inner = 0, {"seen": [1]}


class Keeping(Small):
    def build(self, run: Run) -> None:
        super().build(run)
        self.scheduler = StepLR(self.optimizer, 1, 0.5)
        self.own, self.listed, self.counted = Own(), [1, [2]], Counter("a")
        self.queue, self.names = deque([1, 2], maxlen=2), {"a"}
        self.array, self.tensor = np.zeros(3), torch.zeros(3)
        self.chances = random.Random(1), np.random.default_rng(1), torch.Generator().manual_seed(1)
        self.frozen = run.freeze(lambda: nn.Linear(3, 3))

    def change(self) -> None:
        self.own.count += 1
        self.own.inner["seen"].append(2)
        self.own.late = 1
        self.listed[1].append(3)
        self.listed.append(4)
        self.counted["a"] += 1
        self.queue.append(3)
        self.names.add("b")
        self.array += 1
        self.tensor += 1
        self.late = 1
        self.model.training, self.model.late = False, 1
        self.optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2))]})
        self.scheduler.step()
        self.drawn()
        random.random(), torch.rand(1)

    def drawn(self) -> list[float]:
        own, numbers, torches = self.chances
        return [own.random(), float(numbers.random()), float(torch.rand(1, generator=torches))]

    def state(self) -> Any:
        """Return a text of all state that an audit has to put back."""
        kept = [self.own.count, self.own.inner, hasattr(self.own, "late"), self.listed, self.counted, [*self.queue]]
        kept += [self.names, self.array.tolist(), self.tensor.tolist(), hasattr(self, "late")]
        kept += [self.model.training, hasattr(self.model, "late"), len(self.optimizer.param_groups)]
        return repr([*kept, self.optimizer.param_groups[0]["lr"], self.scheduler.state_dict()])


@pytest.fixture
def keeping() -> tuple[Keeping, Run]:
    benchmark, run = built(Keeping)
    benchmark.step(run, torch.ones(4, 3))
    return benchmark, run


def test_all_that_hangs_on_a_benchmark_is_put_back(keeping: tuple[Keeping, Run]) -> None:
    benchmark, run = keeping
    before, lists, step = benchmark.state(), (benchmark.listed, benchmark.queue), benchmark.optimizer.step
    with undone(run, [benchmark.optimizer], [benchmark.optimizer]):
        benchmark.change()
        expected = benchmark.drawn(), random.random(), torch.rand(1)
    assert benchmark.state() == before
    # Containers are restored in place, as other objects may hold them.
    assert benchmark.listed is lists[0]
    assert benchmark.queue is lists[1]
    assert benchmark.optimizer.step == step, "the scheduler's own"
    with undone(run, [benchmark.optimizer], [benchmark.optimizer]):
        benchmark.change()
        assert (benchmark.drawn(), random.random(), torch.rand(1)) == expected


def test_nothing_frozen_and_no_data_is_copied(keeping: tuple[Keeping, Run], monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark, run = keeping
    benchmark.large, benchmark.store = torch.zeros(100), [[index] for index in range(20)]
    monkeypatch.setattr(saved, "MOST_HELD_BYTES", 300)
    monkeypatch.setattr(saved, "MOST_MEMBERS", 10)
    reached = Reached(run)
    assert id(benchmark.frozen.weight) not in reached.tensors
    assert id(benchmark.model.weight) in reached.tensors
    assert reached.optimizers == [benchmark.optimizer]
    copied = {id(tensor) for tensor, _, _ in saved.Saved(run, reached)._copies}
    assert id(benchmark.model.weight) in copied
    assert not copied & {id(benchmark.large), id(benchmark.frozen.weight)}
    assert not any(container is benchmark.store[0] for container in reached.containers)


def test_a_held_graph_and_waiting_gradients_are_as_good_as_before() -> None:
    def losses(audited: bool) -> list[float]:
        torch.manual_seed(0)
        benchmark, run = built(Small)
        benchmark.held = benchmark.model(torch.ones(4, 3)).square().mean()
        benchmark.model(torch.ones(4, 3)).sum().backward()
        if audited:
            gradient = benchmark.model.weight.grad
            with undone(run, [benchmark.optimizer]):
                assert benchmark.model.weight.grad is None
                (benchmark.held + benchmark.model(torch.ones(4, 3)).sum()).backward()
                benchmark.optimizer.step()
            assert benchmark.model.weight.grad is gradient
        benchmark.held.backward()
        benchmark.optimizer.step()
        return [float(weight.detach().sum()) for weight in benchmark.model.parameters()]

    assert losses(audited=True) == losses(audited=False)
