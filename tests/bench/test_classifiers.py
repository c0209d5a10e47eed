"""torchvision's classifiers, as convnet and scaling ask for them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from cotenant.bench.classifiers import classifier
from cotenant.errors import CotenantError


def test_an_unknown_classifier_is_named() -> None:
    with pytest.raises(CotenantError, match=r"resnet51: torchvision has no such classifier\. Did you mean 'resnet50'"):
        classifier("resnet51", "--arch")
    with pytest.raises(CotenantError, match="no such classifier"):
        classifier("maskrcnn_resnet50_fpn", "--arch")


@pytest.mark.parametrize("name", ["googlenet", "inception_v3"])
def test_auxiliary_classifiers_are_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Their initial weights, a truncated normal, take seconds and test no code of ours.
    monkeypatch.setattr(nn.init, "trunc_normal_", lambda tensor, **_: tensor)
    model = classifier(name, "--arch")
    assert model(torch.randn(2, 3, 80, 80)).shape == (2, 1000)


def test_a_classifier_is_built_for_the_size_of_its_images() -> None:
    sizes = {"vit_b_32": 64, "vit_b_16": 48, "maxvit_t": 448, "resnet18": 64, "alexnet": 224, "mobilenet_v3_small": 224}
    with torch.device("meta"):
        for name, size in sizes.items():
            assert classifier(name, "--arch", size).eval()(torch.empty(2, 3, size, size)).shape == (2, 1000)
        for name in ("vit_b_32", "maxvit_t"):
            with pytest.raises(CotenantError) as caught:
                classifier(name, "--arch", 100)
            assert str(caught.value).startswith(f"--arch {name} cannot be built for --size 100: ")
            assert caught.value.remedy == "Give a multiple of 224, or leave --size out."
