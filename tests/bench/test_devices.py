"""Invented accelerators, replicas on invented devices, and ranks of torch.distributed.run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from bench.small import Small, read, record_of, warmed
from cotenant.bench import Run, UnsupportedError, parallel, session
from cotenant.bench.arguments import parse
from cotenant.bench.device import Device, choose_device, take_part, unseen_devices
from cotenant.bench.facts import arguments_of, tenant_facts
from cotenant.bench.world import World
from cotenant.errors import CotenantError
from cotenant.results.identity import unique_id
from machine.fakehost import Board, FakeNvml, write
from patience import HANG_S
from tasks.loading import built, losses
from tenants.suites import ROOT, TENANTS


def test_the_processor_where_none_is_asked_for_or_none_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    device = choose_device(cuda=False)
    assert (device.torch_device, device.name, device.is_accelerator) == (torch.device("cpu"), "CPU", False)
    device.synchronize()
    assert device.mark() is None
    assert device.peak_memory_bytes() == {}
    assert (device.cache_bytes, device.under_mps) == (0, None)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert choose_device(cuda=True).torch_device.type == "cpu"


def test_a_device_of_amds_has_the_name_that_its_kernel_gives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """By torch it is 32 digits: HIP has the letters of the kernel's 16 in the place of bytes."""
    module = SimpleNamespace(mem_get_info=lambda device: (1, 2))
    monkeypatch.setattr(torch, "get_device_module", lambda device: module)
    monkeypatch.setattr("cotenant.bench.device.identified", lambda uuid, version: (f"GPU-{uuid}", 132))
    of_letters, of_bytes = "32663139-3861-6538-3562-306337643065", "8f0f3cb1-5a22-ffc1-8a1f-91ab3f0e77d2"
    for uuid, hip, name, whole in (
        (of_letters, "7.2", "GPU-2f198ae85b0c7d0e", None),
        (of_letters, None, f"GPU-{of_letters}", 132),
        (of_bytes, "7.2", f"GPU-{of_bytes}", 132),
    ):
        monkeypatch.setattr(torch.version, "hip", hip)
        module.get_device_properties = lambda device, uuid=uuid: SimpleNamespace(uuid=uuid)
        part = take_part(Device(torch.device("cuda", 0)), {})
        assert (part["uuid"], part["device_multiprocessors"]) == (name, whole)


def test_devices_that_torch_does_not_see_are_unsupported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    two = FakeNvml([Board("GPU-1", "00000000:3B:00.0"), Board("GPU-2", "00000000:3C:00.0")])
    for environ, nvml, sentence in (
        ({}, two, "there are 2 here (NVIDIA H200)"),
        ({"CUDA_VISIBLE_DEVICES": ""}, two, ""),
        ({"USE_CUDA": "0"}, two, ""),
        ({"USE_CUDA": "1"}, None, "USE_CUDA=1 asks for one"),
        ({}, None, ""),
    ):
        assert unseen_devices(environ, tmp_path, nvml) == sentence
    write(tmp_path, {"dev/nvidia0": ""})
    assert unseen_devices({}, tmp_path, FakeNvml(starts=False)).startswith("the driver of the devices that are here")
    assert unseen_devices({"CUDA_VISIBLE_DEVICES": ""}, tmp_path) == ""
    monkeypatch.setenv("USE_CUDA", "1")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    record = record_of(Small, tmp_path, "--cuda", status=1)
    assert (record["outcome"], record["observations"]) == ("unsupported", [])
    assert "sees no device, and USE_CUDA=1 asks for one. " in capsys.readouterr().err
    assert session.run_benchmark(Small, ["--no-cuda"]) == 0


class OnOneProcessor(nn.Module):
    """Deals out a batch, runs each part and gathers the results, as DataParallel does, but on one processor."""

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


@pytest.mark.usefixtures("devices")
def test_every_device_takes_its_part_of_the_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, run = warmed(benchmark := Replicated())
    assert loop.observe(3).items == 3 * 8
    model: Any = benchmark.model
    assert (model.device_ids, set(map(tuple, model.parts))) == ([0, 1, 2, 3], {(2, 2, 2, 2)})
    assert run.findings == []
    monkeypatch.setattr(session, "tenant_facts", lambda run, loop: tenant_facts(run, loop) | {"gpu": "Board"})
    record = record_of(Replicated, tmp_path)
    told = record["observed"]
    assert (told["parallel"], told["replicas"], told["world_size"], told["dtype"]) == ("dp", 4, 1, "fp32")
    assert told["flops_per_step"] is None
    assert (record["devices"], record["vcd"], record["group"]) == (4, "0,1,2,3", "all")
    assert (record["batch_size"], record["batch_size_per_device"]) == (8, 2)
    ours, alone = (losses(*built(cls, seed=3, batch_size=8), 5) for cls in (Replicated, Small))
    assert ours == pytest.approx(alone)


def test_one_device_is_said_and_recorded() -> None:
    _, run = built(Replicated)
    assert ("parallel" in run.observed, run.observed["replicas"]) == (False, 1)
    assert [one.sentence for one in run.findings] == [
        "DataParallel has one device here (CPU), so the model ran without it."
    ]


@pytest.mark.usefixtures("devices")
def test_what_replicas_and_devices_cannot_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for parameters in ({"precision": "bf16"}, {"compile": True}):
        with pytest.raises(UnsupportedError, match="--parallel ddp"):
            built(Replicated, **parameters)
    run = Run(Replicated())
    run.world = replace(run.world, size=2)
    with pytest.raises(CotenantError, match=r"run\.sh"):
        run.replicate(nn.Linear(1, 1))
    monkeypatch.setenv("PET_NNODES", "2")
    with pytest.raises(UnsupportedError, match="one process, on one node"):
        Run(Replicated()).replicate(nn.Linear(1, 1))
    assert Run(Small(devices=1)).world.size == 1
    with pytest.raises(
        CotenantError, match=r"--devices 4 takes as many processes, and there is 1\. .*nproc_per_node=4"
    ):
        Run(Small(devices=4))


@pytest.mark.parametrize(
    ("words", "mode"),
    [
        ("", ()),
        ("--compile --no-compile", ()),
        ("--compile", (None,)),
        ("--compile=default", (None,)),
        ("--compile reduce-overhead", ("reduce-overhead",)),
        ("--compile=max-autotune-no-cudagraphs", ("max-autotune-no-cudagraphs",)),
    ],
)
def test_models_are_compiled_in_the_mode_asked_for(
    words: str, mode: tuple[str | None, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = list[str | None]()
    monkeypatch.setattr(torch, "compile", lambda module, mode: modes.append(mode) or module)
    benchmark = Small(**parse(Small, words.split()).values)
    run = Run(benchmark)
    run.place(nn.Linear(1, 1))
    run.freeze(lambda: nn.Linear(1, 1))
    assert modes == [*mode, *mode]
    ids = [unique_id("small", "1", arguments_of(each)) for each in (benchmark, Small(), Small(compile=True))]
    assert (ids[0] == ids[1], ids[0] == ids[2]) == (not mode, mode == (None,))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_model_without_its_ranks_is_what_was_placed(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its ranks a compiled model stays compiled: half of a step would otherwise run uncompiled."""

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

    monkeypatch.setattr(torch, "compile", lambda module, mode: Compiled(module))
    monkeypatch.setattr(nn.parallel, "DistributedDataParallel", Spread)
    run = Run(Small(compile=compiled))
    alone = run.place(nn.Linear(1, 1))
    assert run.unspread(alone) is alone
    monkeypatch.setattr(World, "spread", lambda self, module, *form: Spread(module))
    linear = nn.Linear(1, 1)
    found = run.unspread(run.place(linear))
    assert isinstance(found, Compiled) == compiled
    assert (found._orig_mod if compiled else found) is linear


def test_ddp_moves_no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """DDP that is given devices moves every tensor there, and the lengths of sentences have to stay on the host."""
    given: list[Any] = []
    monkeypatch.setattr(
        parallel, "DistributedDataParallel", lambda *args, **named: given.append((args, named)) or args[0]
    )
    ranks = World.from_environment({"LOCAL_RANK": "0", "RANK": "0", "WORLD_SIZE": "2"})
    module, frozen = nn.Linear(1, 1), nn.Linear(1, 1).requires_grad_(False)
    assert ranks.spread(module) is module
    assert ranks.spread(frozen) is frozen
    assert given == [((module,), {"gradient_as_bucket_view": True})]


DEATH = """
import os
from datetime import timedelta
from cotenant.bench import world
from cotenant.bench.arguments import parse
from cotenant.bench.device import Device
import torch
world.GATHER_LIMIT = timedelta(seconds=1)
here = world.World.from_environment()
here.join(Device(torch.device("cpu")))
assert here.gather(here.rank) == [0, 1]
if here.rank == 1:
    os._exit(0)
try:
    here.gather(here.rank)
except world.BenchmarkError as error:
    print(error.outcome, error)
"""


def launched(program: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a program as two ranks of torch.distributed.run on the processor, without a runner."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    return subprocess.run(
        [*torchrun, str(program), *map(str, words)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "common"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )


@pytest.mark.slow
def test_ranks_alone_write_one_record_of_them_all(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    words = ("--no-cuda", "--batch-size", 4, "--repeat", 8, "--number", 20, "--skip", 1, "--report", path)
    ended = launched(TENANTS / "ddp.py", *words)
    assert ended.returncode == 0, ended.stderr
    record = read(path)
    assert (record["outcome"], record["group"], record["observed"]["world_size"]) == ("completed", "all", 2)
    assert (record["batch_size"], record["batch_size_per_device"]) == (8, 4)
    assert [one["items"] for one in record["observations"]] == [2 * 4 * 20] * 8
    assert set(record["rank_observations"]) == {"0", "1"}
    assert {one["items"] for rows in record["rank_observations"].values() for one in rows} == {4 * 20}
    seconds = [(one["end_ns"] - one["start_ns"]) / 1e9 for one in record["observations"][1:]]
    assert record["train_item"]["avg"] == pytest.approx(160 / (sum(seconds) / 7))
    assert [one for one in record["findings"] if one["severity"] == "error"] == []
    assert ended.stdout.count("Batch Loss") == 8


@pytest.mark.slow
def test_waiting_for_a_missing_rank_ends_at_the_time_limit(tmp_path: Path) -> None:
    program = tmp_path / "death.py"
    program.write_text(DEATH)
    ended = launched(program)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == (
        "failed Not all of 2 ranks reported observations within 1 s, so there is no rate of all of them. "
        "See what the other ranks printed last.\n"
    )


def test_a_launched_rank_keeps_to_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, ids: kept.append((pid, sorted(ids))))
    monkeypatch.setattr(torch, "set_num_threads", kept.append)
    for rank, size, expected in (
        ("0", "2", [(0, [0, 1]), 2]),
        ("1", "2", [(0, [2, 3]), 2]),
        ("0", "1", [(0, [0, 1]), 2]),
        ("2", "3", []),  # COTENANT_RANKS has no share for it.
        (None, "1", []),  # No launcher has started it.
    ):
        environ = {"WORLD_SIZE": size} | ({} if rank is None else {"LOCAL_RANK": rank})
        World.from_environment(environ).settle(environ | {"COTENANT_RANKS": "0-1;2-3"})
        World.from_environment(environ).settle(environ)
        assert kept == expected
        kept.clear()
