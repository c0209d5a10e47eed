"""One model over several devices: flags, and real ranks of the modern models."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.forked import forked
from cotenant.bench import Distributed, UnsupportedError
from cotenant.bench.arguments import parse
from cotenant.bench.world import World
from cotenant.errors import CotenantError
from cotenant.suite.cells import fitting
from cotenant.suite.jobfile import load
from tasks.loading import ROOT, SMALL, TASKS, built, main_of, of
from tenants.suites import Suites

GPT = "natural_language_processing/gpt"
SCALING = "image_classification/scaling"
OF_ROWS = (
    GPT,
    "natural_language_processing/llama",
    "natural_language_processing/lora",
    "image_classification/vit",
    "speech_recognition/whisper",
)
"""Tasks whose loss is a mean over rows: their ranks have the gradients of one process on all ranks' batches."""
PLACES = (
    *OF_ROWS,
    "natural_language_processing/moe",
    "image_generation/diffusion_transformer",
    "graph_learning/graphsage",
    "reinforcement/ppo",
)
FAMILIES = (
    "question_answering/bert",
    "object_detection/mask_rcnn",
    "object_detection/single_stage_detector",
    "natural_language_processing/rnn_translator",
    "natural_language_processing/transformer_xl",
    "recommendation/neural_collaborative_filtering",
    "speech_synthesis/tacotron2",
    "speech_synthesis/waveglow",
)
"""The vendors' families, each as one model over all devices."""
ROWWISE: dict[str, dict[str, Any]] = {
    FAMILIES[0]: {"dropout": 0.0},
    "natural_language_processing/transformer_xl": {"dropout": 0.0, "attention_dropout": 0.0},
    "recommendation/neural_collaborative_filtering": {},
    "speech_synthesis/waveglow": {},
}
"""Families whose loss is a mean over the rows of a batch, with parameters that leave nothing in them to chance."""
RANKS = 2
FORMS = ("ddp", "fsdp")


def whole(tensor: Any) -> torch.Tensor:
    """Return the whole tensor, gathered from its shards if it is sharded; every rank has to call this."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor.clone()


def as_rank(rank: int, ranks: int) -> pytest.MonkeyPatch:
    """Let the runs of this process have this rank, as if it had joined the others."""
    patch = pytest.MonkeyPatch()
    for name, value in {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}.items():
        patch.setenv(name, str(value))
    patch.setattr(World, "join", lambda world, device: None)
    return patch


def joined(*batches: Any) -> Any:
    """Return one batch with the rows of several."""
    if isinstance(batches[0], torch.Tensor):
        return torch.cat(batches)
    return tuple(map(torch.cat, zip(*batches, strict=True)))


def trained(rank: int, ranks: int, folder: Path, place: str) -> None:
    """Save the batch, the gradients of its step and the weights after it, for each form of parallelism."""
    as_rank(rank, ranks)
    seen = {}
    for form in FORMS:
        benchmark, run = built(of(place), parallel=form, **SMALL[place])
        assert (benchmark.devices, run.observed["parallel"]) == (ranks, form)
        batch = next(iter(benchmark.batches(run)))
        assert torch.isfinite(benchmark.step(run, batch))
        weights = [weight for weight in benchmark.model.parameters() if weight.grad is not None]
        seen[form] = batch, [whole(weight.grad) for weight in weights], [whole(weight.detach()) for weight in weights]
    torch.save(seen, folder / f"rank{rank}")


@pytest.mark.parametrize("place", [PLACES[0], *(pytest.param(each, marks=pytest.mark.slow) for each in PLACES[1:])])
def test_ranks_of_a_modern_model_train_one_model(place: str, tmp_path: Path) -> None:
    of(place)
    forked(RANKS, trained, tmp_path, place)
    first, second = (torch.load(tmp_path / f"rank{rank}") for rank in range(RANKS))
    _, gradients, _ = first["ddp"]
    for form in FORMS:
        for ours, theirs in zip(first[form][2], second[form][2], strict=True):
            assert torch.equal(ours, theirs)
        assert furthest(first[form][1], gradients) < 1e-6
    if place in OF_ROWS:
        benchmark, run = built(of(place), **SMALL[place])
        benchmark.step(run, joined(first["ddp"][0], second["ddp"][0]))
        assert furthest([weight.grad for weight in benchmark.model.parameters()], gradients) < 1e-6


def beside_itself(rank: int, ranks: int, folder: Path, place: str, more: dict[str, Any]) -> None:
    """Save a batch and the gradients of its step twice: averaged over all ranks, and of this rank alone."""
    patch = as_rank(rank, ranks)
    benchmark, run = built(of(place), parallel="ddp", **SMALL[place] | more)
    batch = next(iter(benchmark.batches(run)))
    modules = [value for value in vars(benchmark).values() if isinstance(value, torch.nn.Module)]
    tensors = [tensor for module in modules for tensor in (*module.parameters(), *module.buffers())]
    before, chance = [tensor.detach().clone() for tensor in tensors], torch.get_rng_state()
    # Clipping depends on the norm of all gradients, so that clipped ones are not the mean of the ranks' own.
    patch.setattr(run, "update", lambda loss, optimizer, clip_norm=None: run.precision.update(loss, optimizer))
    gradients = []
    for model in (benchmark.model, run.unspread(benchmark.model)):
        benchmark.model = model
        for tensor, value in zip(tensors, before, strict=True):
            tensor.data.copy_(value)
        torch.set_rng_state(chance)
        assert torch.isfinite(benchmark.step(run, batch))
        gradients.append([weight.grad.clone() for weight in model.parameters() if weight.grad is not None])
    torch.save((batch, *gradients), folder / f"rank{rank}")


@pytest.mark.parametrize("place", [FAMILIES[0], *(pytest.param(one, marks=pytest.mark.slow) for one in FAMILIES[1:])])
def test_gradients_of_two_ranks_are_the_mean_of_each_ranks_own(place: str, tmp_path: Path) -> None:
    """Where the loss is a mean over rows, they also equal those of one process on the rows of both."""
    more = ROWWISE.get(place, {})
    of(place)
    forked(RANKS, beside_itself, tmp_path, place, more)
    (first, ours, own), (second, theirs, other) = (
        torch.load(tmp_path / f"rank{rank}", weights_only=False) for rank in range(RANKS)
    )
    assert all(torch.equal(one, another) for one, another in zip(ours, theirs, strict=True))
    assert furthest(own, other) > 1e-6, "each has learned from a batch of its own"
    assert furthest([(one + another) / 2 for one, another in zip(own, other, strict=True)], ours) < 1e-6
    if place in ROWWISE:
        whole = SMALL[place] | more | {"batch_size": RANKS * SMALL[place]["batch_size"]}
        benchmark, run = built(of(place), **whole)
        run.update = lambda loss, optimizer, clip_norm=None: run.precision.update(loss, optimizer)
        benchmark.step(run, joined(first, second))
        assert furthest([weight.grad for weight in benchmark.model.parameters()], ours) < 1e-6


def test_each_lambda_job_runs_as_copies_and_as_one_model() -> None:
    jobs = {job.name: job for job in load(ROOT / "profiles/lambda.json").jobs}
    copies = {name: job for name, job in jobs.items() if job.group == "student"}
    assert len(copies) * 2 == len(jobs) == 88
    for name, job in copies.items():
        twin = jobs[name.replace(job.family, f"{job.family}_all", 1)]
        assert (twin.group, twin.args) == ("all", job.args)
        assert twin.cmd == job.cmd.replace("run.sh", "run_distributed.sh")
        assert (TASKS / twin.cmd).exists()


def furthest(some: list[torch.Tensor], others: list[torch.Tensor]) -> float:
    return max((one - other).abs().max().item() for one, other in zip(some, others, strict=True))


@pytest.mark.parametrize(("asked", "started"), [(0, 3), (3, 3)])
def test_devices_are_the_processes_that_were_started(monkeypatch: pytest.MonkeyPatch, asked: int, started: int) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(started))
    assert of(GPT)(devices=asked).devices == started


def test_devices_that_cannot_be_had_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CotenantError, match=r"--devices 4 takes as many processes, not 1\. Start it with the run\.sh"):
        of(SCALING)(devices=4)
    with pytest.raises(CotenantError, match=r"--nodes 2 differs from the number of nodes, 1\."):
        of(GPT)(nodes=2)
    monkeypatch.setenv("DEVICE_TOTAL", "4")
    with pytest.raises(UnsupportedError, match=r"--devices 8 is more than DEVICE_TOTAL, 4\. Ask for fewer\."):
        of(GPT)(devices=8)


def test_data_parallel_holds_all_devices_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    scaling, asked = of(SCALING), {"parallel": "dp", "batch_size": 8}
    with pytest.raises(UnsupportedError, match="needs as many accelerators, and there are 0"):
        scaling(**asked, devices=4, cuda=False)
    with pytest.raises(UnsupportedError, match="DataParallel cannot replicate this model"):
        of("natural_language_processing/moe")(**asked)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 4)
    for devices, total in ((4, ""), (0, ""), (0, "4")):
        monkeypatch.setenv("DEVICE_TOTAL", total) if total else None
        held: Any = scaling(**asked, devices=devices)
        assert (held.batch_size, held.replicas, held.devices) == (32, 4, 1)
    monkeypatch.delenv("DEVICE_TOTAL")
    assert scaling(**asked, cuda=False).batch_size == 8
    with pytest.raises(UnsupportedError, match="no gradients to compress"):
        scaling(**asked, gradient_compression="fp16")
    benchmark, run = built(scaling, network="squeezenet1_1", size=32, batch_size=2, parallel="fsdp")
    assert (run.observed["parallel"], benchmark.devices) == ("fsdp", 1)


def test_every_benchmark_of_several_devices_has_its_starter() -> None:
    for place in (*PLACES, *FAMILIES):
        assert issubclass(of(place), Distributed)
        assert (TASKS / place / "pytorch/run_distributed.sh").exists()
    assert main_of(SCALING).Scaling.replicable


@pytest.mark.slow
def test_a_language_model_scales_over_processes_of_the_runner(loose: Suites) -> None:
    small = {**{f"--{name.replace('_', '-')}": value for name, value in SMALL[GPT].items()}, "--no-cuda": ""}
    cells = {"--parallel": ["ddp", "fsdp"], "--devices": [1, 2], "--repeat": 4, "--number": 2}
    job = {
        "name": "gpt",
        "cmd": str(TASKS / GPT / "pytorch/run_distributed.sh"),
        "cgroup": "all",
        "args": small | cells,
    }
    ended = loose.run([job], "--users", 2)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    records = loose.records()
    seen = [(record["observed"]["world_size"], record["observed"]["parallel"]) for record in records]
    assert sorted(seen) == [(1, "ddp"), (1, "fsdp"), (2, "ddp"), (2, "fsdp")]
    for record in records:
        assert record["observed"]["audit"]["differences"] == []
        tokens = 2 * 2 * 12 * record["observed"]["world_size"]
        assert [row["items"] for row in record["observations"]] == [tokens] * 4
        assert "flops" not in [finding["rule"] for finding in record["findings"]]


@pytest.mark.slow
def test_the_cells_of_the_profile_run_as_far_as_the_devices_go(loose: Suites) -> None:
    """A single `--devices` that is too large is refused by the benchmark, not left out."""
    job, *_ = json.loads((ROOT / "profiles/scaling.json").read_text())
    small = {"--network": "resnet18", "--size": 32, "--batch-size": 2, "--repeat": 3, "--number": 1, "--no-cuda": ""}
    place = TASKS / SCALING / "pytorch/run.sh"
    job = job | {"cmd": str(place), "args": small | {"--devices": job["args"]["--devices"]}}
    ended = loose.run([job], "--users", 1)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "scaling: cells of --devices 2-16 are left out, as DEVICE_TOTAL is 1." in ended.stdout
    assert loose.run([job | {"args": small | {"--devices": 2}}], "--users", 1).returncode == 1
    assert loose.outcomes() == ["completed", "unsupported"]
    assert "--devices 2 is more than DEVICE_TOTAL, 1." in loose.records()[1]["message"]


def test_the_scaling_profile_has_the_shoot_out_batch_sizes() -> None:
    jobs = [job for job in load(ROOT / "profiles/scaling.json").jobs if job.family == "scaling_batches"]
    assert [job.name for job in jobs] == [f"scaling_batches_{precision}" for precision in ("fp32", "bf16", "fp16")]
    assert {dict(job.args)["--batch-size"] for job in jobs} == {(32, 64, 128, 160, 256)}
    assert {dict(job.args)["--network"] for job in jobs} == {("resnet50",)}


def test_horovod_benchmark_flags_become_those_of_scaling() -> None:
    words = (
        "--model resnet50 --num-iters 7 --num-warmup-batches 10 --num-batches-per-iter=3 --use-fp16 --fp16-allreduce"
    )
    parsed = parse(of(SCALING), words.split())
    names = ("network", "repeat", "number", "precision", "gradient_compression")
    assert [parsed.values[name] for name in names] == ["resnet50", 7, 3, "fp16", "fp16"]
    assert parsed.ignored == ["--num-warmup-batches"]
    assert parsed.renamed == [
        "--model is --network here.",
        "--num-iters is --repeat here.",
        "--num-batches-per-iter is --number here.",
        "--use-fp16 is --precision fp16 here.",
        "--fp16-allreduce is --gradient-compression fp16 here.",
    ]


@pytest.mark.parametrize(("nodes", "devices"), [(1, 1), (1, 8), (4, 8), (16, 16)])
def test_no_two_cells_of_the_profile_are_one_point_of_a_curve(nodes: int, devices: int) -> None:
    """A table cannot show two configurations that have the same key."""
    series = ("--network", "--batch-size", "--precision", "--parallel", "--gradient-compression")
    points = [
        (job.cmd, *(dict(cell.args).get(flag) for flag in series), cell.nodes or nodes, cell.devices or devices)
        for job in load(ROOT / "profiles/scaling.json").jobs
        for cell in fitting(job, devices)
        if cell.nodes <= nodes
    ]
    assert len(points) == len(set(points))
