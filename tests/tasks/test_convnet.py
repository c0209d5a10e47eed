from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import nn

from cotenant.bench import Run, UnsupportedError
from cotenant.bench.arguments import parse
from cotenant.bench.classifiers import classifier
from cotenant.bench.facts import without_effect
from cotenant.bench.images import MEAN, STD
from cotenant.errors import CotenantError
from tasks.loading import ROOT, TASKS, built, decodes, draw_pictures, losses, main_of
from tenants.suites import Suites

SMALL: dict[str, Any] = {"arch": "resnet18", "size": 32, "batch_size": 4, "workers": 0}


@pytest.fixture(scope="module")
def convnet() -> Any:
    return main_of("image_classification/convnets")


@pytest.fixture(scope="module")
def scaling() -> Any:
    return main_of("image_classification/scaling")


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)


def test_resnets_have_their_parameters(convnet: Any, scaling: Any) -> None:
    for arch, named, size in (
        (convnet.ConvNet().arch, "--arch", 44_549_160),
        (scaling.Scaling().network, "--network", 44_549_160),
        ("resnet50", "--arch", 25_557_032),
    ):
        with torch.device("meta"):
            model = classifier(arch, named)
        assert sum(parameter.numel() for parameter in model.parameters()) == size
    stage = model.layer2[0]  # Version 1.5: the 3 x 3 convolution has the stride.
    assert (stage.conv1.stride, stage.conv2.stride) == ((1, 1), (2, 2))


@decodes
@pytest.mark.parametrize("workers", [0, 1])
def test_pictures_are_read_and_normalised(convnet: Any, tmp_path: Path, workers: int) -> None:
    for label, value in enumerate([0, 255]):
        (tmp_path / f"class{label}").mkdir()
        Image.new("RGB", (50, 40), (value,) * 3).save(tmp_path / f"class{label}" / "one.jpg", quality=95)
    benchmark, run = built(convnet.ConvNet, **SMALL | {"workers": workers}, data=tmp_path)
    images, labels = next(iter(benchmark.batches(run)))
    assert (images.shape, images.dtype, labels.dtype) == ((4, 3, 32, 32), torch.float32, torch.int64)
    mean, std = (torch.tensor(of_rgb).view(3, 1, 1) for of_rgb in (MEAN, STD))
    expected = (labels.view(4, 1, 1, 1) - mean) / std
    torch.testing.assert_close(images, expected.expand_as(images), atol=0.03, rtol=0)


def test_more_classes_than_the_model_knows(convnet: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convnet, "CLASSES", 2)
    benchmark, run = built(convnet.ConvNet, **SMALL, data=draw_pictures(tmp_path / "train", classes=3, each=1))
    with pytest.raises(CotenantError, match="holds 3 classes"):
        benchmark.batches(run)


def test_data_parallel_on_one_device_is_the_model_alone_and_says_so(convnet: Any) -> None:
    lone = losses(*built(convnet.ConvNet, **SMALL), 2)
    benchmark, run = built(convnet.ConvNet, **SMALL, parallel="dp")
    assert losses(benchmark, run, 2) == lone
    assert not isinstance(benchmark.model, nn.DataParallel)
    assert run.observed == {"replicas": 1}
    assert [one.rule for one in run.findings] == ["not_parallel"]


def test_data_parallel_has_a_batch_per_device(convnet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 4)
    assert convnet.ConvNet(batch_size=8, parallel="dp").batch_size == 32
    assert convnet.ConvNet(batch_size=8, parallel="ddp").batch_size == 8
    assert convnet.ConvNet(batch_size=8, parallel="dp", cuda=False).batch_size == 8


@pytest.mark.parametrize("parameters", [{"precision": "bf16"}, {"compile": True}])
def test_what_data_parallel_cannot_do(convnet: Any, parameters: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match="--parallel ddp"):
        built(convnet.ConvNet, **SMALL, parallel="dp", **parameters)


def test_ranks_meet_by_what_was_asked_or_it_is_unsupported(convnet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = parse(convnet.ConvNet, ["--no-cuda", "--backend", "nccl"])
    run = Run(convnet.ConvNet(**parsed.values))
    assert without_effect(parsed, run) == ["--backend"]
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(torch.distributed, "get_backend", lambda: "gloo")
    monkeypatch.setattr(type(run.world), "spread", lambda world, module, *form: module)
    run.world = replace(run.world, size=2)
    for backend in (None, "gloo"):
        convnet.ConvNet(cuda=False, **SMALL, backend=backend).build(run)
        assert run.observed["backend"] == "gloo"
    with pytest.raises(UnsupportedError, match=r"Ranks on cpu meet by gloo here, not by nccl\. .* or say gloo"):
        convnet.ConvNet(cuda=False, **SMALL, backend="nccl").build(run)


# ---- scaling: the same classifiers over more and more devices

PLACE = TASKS / "image_classification" / "scaling" / "pytorch"


@pytest.mark.parametrize(("asked", "started"), [(0, 3), (3, 3)])
def test_devices_are_the_processes_that_were_started(
    scaling: Any, monkeypatch: pytest.MonkeyPatch, asked: int, started: int
) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(started))
    assert scaling.Scaling(devices=asked).devices == started


def test_devices_without_their_processes_are_an_error(scaling: Any) -> None:
    with pytest.raises(CotenantError, match=r"--devices 4 takes as many processes, not 1\. Start it with run\.sh\."):
        scaling.Scaling(devices=4)


def test_an_unknown_network_is_named(scaling: Any) -> None:
    benchmark = scaling.Scaling(cuda=False, network="resnet51")
    with pytest.raises(CotenantError, match="Did you mean 'resnet50'"):
        benchmark.build(Run(benchmark))


def test_more_devices_than_there_are_end_as_unsupported(scaling: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICE_TOTAL", "4")
    with pytest.raises(UnsupportedError, match=r"--devices 8 is more than DEVICE_TOTAL, 4\. Ask for fewer\."):
        scaling.Scaling(devices=8)


def test_data_parallel_holds_all_devices_in_one_process(scaling: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"parallel": "dp", "batch_size": 8}
    with pytest.raises(UnsupportedError, match="needs as many accelerators, and there are 0"):
        scaling.Scaling(**asked, devices=4, cuda=False)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 4)
    held = scaling.Scaling(**asked, devices=4)
    assert (held.batch_size, held.replicas, held.devices) == (32, 4, 1)
    with pytest.raises(UnsupportedError, match="no gradients to compress"):
        scaling.Scaling(**asked, gradient_compression="fp16")
    benchmark, run = built(scaling.Scaling, network="squeezenet1_1", size=32, batch_size=2, parallel="fsdp")
    assert (run.observed["parallel"], benchmark.devices) == ("fsdp", 1)


@pytest.mark.slow
def test_the_cells_of_the_profile_run_as_far_as_the_devices_go(loose: Suites) -> None:
    """A number of devices that is asked for alone, and is too large, is told by the benchmark."""
    job, *_ = json.loads((ROOT / "profiles/scaling.json").read_text())
    small = {"--network": "resnet18", "--size": 32, "--batch-size": 2, "--repeat": 3, "--number": 1, "--no-cuda": ""}
    job = job | {"cmd": str(PLACE / "run.sh"), "args": small | {"--devices": job["args"]["--devices"]}}
    ended = loose.run([job], "--users", 1, limit_s=180)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "scaling: cells of --devices 2-16 are left out, as DEVICE_TOTAL is 1." in ended.stdout
    assert loose.run([job | {"args": small | {"--devices": 2}}], "--users", 1, limit_s=180).returncode == 1
    assert loose.outcomes() == ["completed", "unsupported"]
    assert "--devices 2 is more than DEVICE_TOTAL, 1." in loose.records()[1]["message"]
