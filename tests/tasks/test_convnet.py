from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from cotenant.bench import Run, UnsupportedError
from cotenant.bench.arguments import parse
from cotenant.bench.classifiers import classifier
from cotenant.bench.facts import without_effect
from cotenant.errors import CotenantError
from tasks.loading import built, draw_pictures

PLACE = "image_classification/convnets"
SMALL: dict[str, Any] = {"arch": "resnet18", "size": 32, "batch_size": 4, "workers": 0}


def test_resnets_are_of_version_1_5() -> None:
    with torch.device("meta"):
        stage = classifier("resnet50", "--arch").layer2[0]
    assert (stage.conv1.stride, stage.conv2.stride) == ((1, 1), (2, 2))  # The 3 x 3 convolution has the stride.


def test_more_classes_than_the_model_knows(main: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "CLASSES", 2)
    benchmark, run = built(main.ConvNet, **SMALL, data=draw_pictures(tmp_path / "train", classes=3, each=1))
    with pytest.raises(CotenantError, match="holds 3 classes"):
        benchmark.batches(run)


def test_ranks_meet_by_what_was_asked_or_it_is_unsupported(main: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = parse(main.ConvNet, ["--no-cuda", "--backend", "nccl"])
    run = Run(main.ConvNet(**parsed.values))
    assert without_effect(parsed, run) == ["--backend"]
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(torch.distributed, "get_backend", lambda: "gloo")
    monkeypatch.setattr(type(run.world), "spread", lambda world, module, *form: module)
    run.world = replace(run.world, size=2)
    for backend in (None, "gloo"):
        main.ConvNet(cuda=False, **SMALL, backend=backend).build(run)
        assert run.observed["backend"] == "gloo"
    with pytest.raises(UnsupportedError, match=r"Ranks on cpu meet by gloo here, not by nccl\. .* or say gloo"):
        main.ConvNet(cuda=False, **SMALL, backend="nccl").build(run)
