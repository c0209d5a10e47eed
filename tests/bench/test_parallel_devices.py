"""Several devices: DataParallel's replicas with invented devices, and what ran is what is recorded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from bench.small import Small
from cotenant.bench import Run, UnsupportedError, session, world
from cotenant.bench.contract import Benchmark
from cotenant.bench.device import Device
from cotenant.bench.facts import tenant_facts
from cotenant.bench.loop import Loop
from cotenant.bench.world import World
from cotenant.errors import CotenantError


class OnOneProcessor(nn.Module):
    """What DataParallel does, on devices that are all the same processor: deal out, run each part, gather."""

    def __init__(self, module: nn.Module, device_ids: Sequence[int]) -> None:
        super().__init__()
        self.module, self.device_ids, self.parts = module, device_ids, []

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        parts = batch.chunk(len(self.device_ids))
        self.parts.append([len(part) for part in parts])
        return torch.cat([self.module(part) for part in parts])


class Replicated(Small):
    batch_size: int = 8

    def build(self, run: Run) -> None:
        self.model = run.replicate(nn.Linear(3, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, "alike", 4)
    monkeypatch.setattr(nn, "DataParallel", OnOneProcessor)


def losses(benchmark: Benchmark, steps: int = 5) -> list[float]:
    benchmark.build(run := Run(benchmark))
    batches = iter(benchmark.batches(run))
    found = [benchmark.step(run, next(batches)) for _ in range(steps)]
    return [loss.item() for loss in found if loss is not None]


@pytest.mark.usefixtures("devices")
def test_every_device_has_its_part_of_the_batch_and_all_items_count() -> None:
    benchmark: Any = Replicated()
    loop = Loop(benchmark, run := Run(benchmark))
    loop.warm_up()
    assert loop.observe(3).items == 3 * 8
    assert benchmark.model.device_ids == [0, 1, 2, 3]
    assert set(map(tuple, benchmark.model.parts)) == {(2, 2, 2, 2)}
    told = tenant_facts(run, loop)["observed"]
    assert (told["parallel"], told["replicas"], told["world_size"], told["dtype"]) == ("dp", 4, 1, "fp32")
    assert told["flops_per_step"] is None
    assert run.findings == []


@pytest.mark.usefixtures("devices")
def test_alone_every_replica_is_a_device_of_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "tenant_facts", lambda run, loop: tenant_facts(run, loop) | {"gpu": "Board"})
    assert session.main(Replicated, ["--report", str(tmp_path / "r.json")]) == 0
    record = json.loads((tmp_path / "r.json").read_text())
    assert (record["devices"], record["vcd"], record["group"]) == (4, "0,1,2,3", "all")
    assert (record["batch_size"], record["batch_size_per_device"]) == (8, 2)


@pytest.mark.usefixtures("devices")
def test_replicas_learn_what_one_device_learns() -> None:
    assert losses(Replicated(seed=3)) == pytest.approx(losses(Small(seed=3, batch_size=8)))


def test_one_device_is_said_and_recorded() -> None:
    benchmark = Replicated()
    loop = Loop(benchmark, run := Run(benchmark))
    loop.warm_up()
    told = tenant_facts(run, loop)["observed"]
    assert ("parallel" in told, told["replicas"]) == (False, 1)
    assert [one.sentence for one in run.findings] == [
        "DataParallel has one device here (CPU), so the model ran without it."
    ]


@pytest.mark.usefixtures("devices")
@pytest.mark.parametrize("parameters", [{"precision": "bf16"}, {"compile": True}])
def test_what_replicas_cannot_do(parameters: dict[str, Any]) -> None:
    benchmark = Replicated(**parameters)
    with pytest.raises(UnsupportedError, match="--parallel ddp"):
        benchmark.build(Run(benchmark))


def test_replicas_are_of_one_process() -> None:
    run = Run(Replicated())
    run.world = replace(run.world, size=2)
    with pytest.raises(CotenantError, match=r"run\.sh"):
        run.replicate(nn.Linear(1, 1))


def test_devices_take_as_many_processes() -> None:
    assert Run(Small(devices=1)).world.size == 1
    with pytest.raises(
        CotenantError, match=r"--devices 4 takes as many processes, and there is 1\. .*nproc_per_node=4"
    ):
        Run(Small(devices=4))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_model_without_its_ranks_is_what_was_placed(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a compiled one a compiled part: half of a step would else be what nobody asked for."""

    class Compiled(nn.Module):
        def __init__(self, module: nn.Module) -> None:
            super().__init__()
            self._orig_mod = module

        def __getattr__(self, name: str) -> Any:
            return getattr(super().__getattr__("_orig_mod"), name) if name != "_orig_mod" else super().__getattr__(name)

    class Spread(nn.Module):
        def __init__(self, module: nn.Module) -> None:
            super().__init__()
            self.module = module

    monkeypatch.setattr(torch, "compile", Compiled)
    monkeypatch.setattr(nn.parallel, "DistributedDataParallel", Spread)
    run = Run(Small(compile=compiled))
    alone = run.place(nn.Linear(1, 1))
    assert run.unspread(alone) is alone
    monkeypatch.setattr(World, "spread", lambda self, module: Spread(module))
    linear = nn.Linear(1, 1)
    found = run.unspread(run.place(linear))
    assert isinstance(found, Compiled) == compiled
    assert (found._orig_mod if compiled else found) is linear


def test_ddp_moves_no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given devices it would move every tensor there: a sentence's lengths have to stay on the host."""
    given: list[Any] = []
    monkeypatch.setattr(world, "DistributedDataParallel", lambda *args, **named: given.append((args, named)) or args[0])
    ranks = World.from_environment({"LOCAL_RANK": "0", "RANK": "0", "WORLD_SIZE": "2"})
    module, frozen = nn.Linear(1, 1), nn.Linear(1, 1).requires_grad_(False)
    assert ranks.spread(module) is module
    assert ranks.spread(frozen) is frozen
    assert given == [((module,), {})]
