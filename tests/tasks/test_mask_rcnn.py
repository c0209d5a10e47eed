"""Mask R-CNN: its size, its random objects, and steps that all do the same work while it learns."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torchvision.models.detection import MaskRCNN
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

from tasks.loading import built

PLACE = "object_detection/mask_rcnn"


def test_the_model_takes_images_as_they_are(main: Any) -> None:
    with torch.device("meta"):
        network = main.mask_rcnn(main.CLASSES, 800, 1344, 512)
    assert main.CLASSES == 81
    assert (network.transform.min_size, network.transform.max_size) == ((800,), 1344)
    kinds = {type(part).__name__ for part in network.backbone.body.modules()}
    assert {kind for kind in kinds if "Norm" in kind} == {"FrozenBatchNorm2d"}


def test_objects_lie_in_their_image_and_masks_fill_their_boxes(main: Any) -> None:
    objects = main.random_objects(50, 80, 120)
    left, top, right, bottom = objects["boxes"].T
    assert min(left.min(), top.min()) >= 0
    assert (right.max() <= 120, bottom.max() <= 80) == (True, True)
    areas = objects["masks"].sum((1, 2)).float()
    torch.testing.assert_close(areas, (right - left) * (bottom - top), rtol=0.4, atol=2.0)
    assert areas.min() > 0
    assert 1 <= objects["labels"].min() <= objects["labels"].max() <= 80


def test_a_quarter_of_the_sampled_regions_lies_on_objects(main: Any) -> None:
    heads = main.model.mask_rcnn(91, 64, 64, 64).roi_heads
    many, few = torch.tensor([0, 5, 0, 0] * 500), torch.tensor([0] * 99 + [7])
    for labels, taken in zip((many, few), heads.subsample([many, few]), strict=True):
        assert ((labels[taken] > 0).sum(), len(taken)) == (16, 64)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_loss_falls_on_a_fixed_batch(main: Any, precision: str) -> None:
    small = {"batch_size": 1, "height": 128, "width": 128, "regions": 32, "objects": 4, "precision": precision}
    benchmark, run = built(main.MaskRCNN, **small)
    batch, step = next(iter(benchmark.batches(run))), run.precision.around(benchmark.step)
    values = [step(run, batch).item() for _ in range(12)]
    assert sum(values[-4:]) < 0.7 * sum(values[:4])


@pytest.mark.slow
def test_what_it_sees_is_what_torchvisions_own_network_sees(main: Any) -> None:
    """Both networks have the same weights: only the choice of regions in training is ours."""
    ours = main.mask_rcnn(91, 128, 160, 64).eval()
    theirs = MaskRCNN(
        resnet_fpn_backbone(backbone_name="resnet50", weights=None), 91, min_size=128, max_size=160
    ).eval()
    theirs.load_state_dict(ours.state_dict())
    images = list(torch.rand(2, 3, 128, 160))
    with torch.no_grad():
        for network in (ours, theirs):
            network.roi_heads.score_thresh = 0.0
        for mine, other in zip(ours(images), theirs(images), strict=True):
            assert len(mine["boxes"]) > 10
            for name in ("boxes", "scores", "masks"):
                torch.testing.assert_close(mine[name], other[name], rtol=1e-4, atol=1e-5)
