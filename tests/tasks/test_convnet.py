from __future__ import annotations

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
from cotenant.bench.loop import Loop
from cotenant.errors import CotenantError
from tasks.loading import PRECISIONS, TASKS, draw_pictures, main_of, started

PLACE = TASKS / "image_classification" / "convnets"
SMALL: dict[str, Any] = {"cuda": False, "arch": "resnet18", "size": 32, "batch_size": 4, "workers": 0}

# torchvision announces that its decoders will move to another package, after every version that we run on.
decodes = pytest.mark.filterwarnings("ignore:The image decoding:DeprecationWarning")


@pytest.fixture(scope="module")
def convnet() -> Any:
    return main_of("image_classification/convnets")


def losses(convnet: Any, steps: int, **parameters: Any) -> list[float]:
    benchmark = convnet.ConvNet(**SMALL | parameters)
    run = Run(benchmark)
    benchmark.build(run)
    batches, step = iter(benchmark.batches(run)), run.precision.around(benchmark.step)
    return [step(run, next(batches)).item() for _ in range(steps)]


def test_resnet101_has_its_parameters(convnet: Any) -> None:
    with torch.device("meta"):
        model = classifier(convnet.ConvNet().arch, "--arch")
    assert sum(parameter.numel() for parameter in model.parameters()) == 44_549_160


@pytest.mark.parametrize("precision", PRECISIONS)
def test_what_was_asked_is_what_ran(convnet: Any, precision: str) -> None:
    benchmark = convnet.ConvNet(**SMALL, precision=precision, channels_last=True)
    loop = Loop(benchmark, Run(benchmark))
    loop.warm_up()
    assert loop.observed_dtype == precision
    assert loop.observe(3).items == 3 * 4
    images, labels = next(iter(benchmark.batches(Run(benchmark))))
    assert (images.shape, labels.shape) == ((4, 3, 32, 32), (4,))
    assert images.is_contiguous(memory_format=torch.channels_last)


@decodes
@pytest.mark.parametrize("workers", [0, 1])
def test_pictures_are_read_and_normalised(convnet: Any, tmp_path: Path, workers: int) -> None:
    for label, value in enumerate([0, 255]):
        (tmp_path / f"class{label}").mkdir()
        Image.new("RGB", (50, 40), (value,) * 3).save(tmp_path / f"class{label}" / "one.jpg", quality=95)
    benchmark = convnet.ConvNet(**SMALL | {"workers": workers}, data=tmp_path)
    run = Run(benchmark)
    benchmark.build(run)
    images, labels = next(iter(benchmark.batches(run)))
    assert (images.shape, images.dtype, labels.dtype) == ((4, 3, 32, 32), torch.float32, torch.int64)
    mean, std = (torch.tensor(of_rgb).view(3, 1, 1) for of_rgb in (MEAN, STD))
    expected = (labels.view(4, 1, 1, 1) - mean) / std
    torch.testing.assert_close(images, expected.expand_as(images), atol=0.03, rtol=0)


@decodes
def test_it_learns_from_files_and_counts_them(convnet: Any, tmp_path: Path) -> None:
    benchmark = convnet.ConvNet(**SMALL, data=draw_pictures(tmp_path / "train"))
    loop = Loop(benchmark, Run(benchmark))
    loop.warm_up()
    seen = loop.observe(2)
    assert seen.items == 8
    assert all(loss.isfinite() for loss in seen.losses)


def test_more_classes_than_the_model_knows(convnet: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convnet, "CLASSES", 2)
    benchmark = convnet.ConvNet(**SMALL, data=draw_pictures(tmp_path / "train", classes=3, each=1))
    run = Run(benchmark)
    benchmark.build(run)
    with pytest.raises(CotenantError, match="holds 3 classes"):
        benchmark.batches(run)


def test_data_parallel_on_one_device_is_the_model_alone_and_says_so(convnet: Any) -> None:
    assert losses(convnet, 2, parallel="dp") == losses(convnet, 2, parallel="ddp")
    benchmark = convnet.ConvNet(**SMALL, parallel="dp")
    benchmark.build(run := Run(benchmark))
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
    benchmark = convnet.ConvNet(**SMALL, parallel="dp", **parameters)
    with pytest.raises(UnsupportedError, match="--parallel ddp"):
        benchmark.build(Run(benchmark))


def test_ranks_meet_by_what_was_asked_or_it_is_unsupported(convnet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = parse(convnet.ConvNet, ["--no-cuda", "--backend", "nccl"])
    run = Run(convnet.ConvNet(**parsed.values))
    assert without_effect(parsed, run) == ["--backend"]
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(torch.distributed, "get_backend", lambda: "gloo")
    monkeypatch.setattr(type(run.world), "spread", lambda world, module: module)
    run.world = replace(run.world, size=2)
    for backend in (None, "gloo"):
        convnet.ConvNet(**SMALL, backend=backend).build(run)
        assert run.observed["backend"] == "gloo"
    with pytest.raises(UnsupportedError, match=r"Ranks on cpu meet by gloo here, not by nccl\. .* or say gloo"):
        convnet.ConvNet(**SMALL, backend="nccl").build(run)


def test_the_distributed_script_starts_a_process_per_device(tmp_path: Path) -> None:
    ours = {"DEVICE_TOTAL": "8", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29512"}
    said, _ = started(tmp_path, PLACE / "pytorch" / "run_distributed.sh", "--half", "a b", **ours)
    assert said[:5] == [
        "-m",
        "torch.distributed.run",
        "--nproc_per_node=8",
        "--master_addr=10.0.0.1",
        "--master_port=29512",
    ]
    assert Path(said[5]).samefile(PLACE / "pytorch" / "main.py")
    assert said[6:] == ["--half", "a b"]


@pytest.mark.parametrize(("accelerators", "processes"), [(8, 8), (0, 1)])
def test_the_distributed_script_alone_starts_a_process_per_device_that_torch_sees(
    tmp_path: Path, accelerators: int, processes: int
) -> None:
    said, _ = started(tmp_path, PLACE / "pytorch" / "run_distributed.sh", "--half", accelerators=accelerators)
    assert said[:3] == ["-m", "torch.distributed.run", f"--nproc_per_node={processes}"]


@pytest.mark.parametrize(
    ("words", "processes"),
    [
        (["--parallel", "dp"], 1),
        (["--parallel=dp", "a b"], 1),
        (["--parallel", "ddp", "--parallel", "dp"], 1),
        (["--parallel", "dp", "--parallel=ddp"], 8),
        (["--arch", "dp"], 8),
    ],
)
def test_the_distributed_script_starts_one_process_for_data_parallel(
    tmp_path: Path, words: list[str], processes: int
) -> None:
    said, _ = started(tmp_path, PLACE / "pytorch" / "run_distributed.sh", *words, DEVICE_TOTAL="8")
    assert said[-len(words) :] == words
    program = Path(said[-len(words) - 1])
    assert program.samefile(PLACE / "pytorch" / "main.py")
    assert len(said) == len(words) + 1 or said[2] == f"--nproc_per_node={processes}"
    assert ("torch.distributed.run" in said) == (processes > 1)
