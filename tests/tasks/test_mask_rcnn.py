"""Mask R-CNN: its size, its random objects, and that every step does the same work while it learns."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tasks.loading import built, main_of


@pytest.fixture(scope="module")
def rcnn() -> Any:
    return main_of("object_detection/mask_rcnn")


def test_the_model_has_the_published_size_and_takes_images_as_they_are(rcnn: Any) -> None:
    with torch.device("meta"):
        network = rcnn.mask_rcnn(91, 800, 1344, 512)
    assert sum(parameter.numel() for parameter in network.parameters()) == 44_401_393
    assert (network.transform.min_size, network.transform.max_size) == ((800,), 1344)
    assert {type(part).__name__ for part in network.backbone.body.modules() if "Norm" in type(part).__name__} == {
        "FrozenBatchNorm2d"
    }


def test_objects_lie_in_their_image_and_masks_fill_their_boxes(rcnn: Any) -> None:
    objects = rcnn.random_objects(50, 80, 120)
    left, top, right, bottom = objects["boxes"].T
    assert min(left.min(), top.min()) >= 0
    assert (right.max() <= 120, bottom.max() <= 80) == (True, True)
    areas = objects["masks"].sum((1, 2)).float()
    torch.testing.assert_close(areas, (right - left) * (bottom - top), rtol=0.4, atol=2.0)
    assert areas.min() > 0
    assert 1 <= objects["labels"].min() <= objects["labels"].max() <= 90


def test_a_quarter_of_the_regions_lies_on_objects_however_few_are_proposed(rcnn: Any) -> None:
    heads = rcnn.model.mask_rcnn(91, 64, 64, 64).roi_heads
    many, few = torch.tensor([0, 5, 0, 0] * 500), torch.tensor([0] * 99 + [7])
    for labels, taken in zip((many, few), heads.subsample([many, few]), strict=True):
        assert ((labels[taken] > 0).sum(), len(taken)) == (16, 64)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_loss_falls_on_a_fixed_batch(rcnn: Any, precision: str) -> None:
    small = {"batch_size": 1, "height": 128, "width": 128, "regions": 32, "objects": 4, "precision": precision}
    benchmark, run = built(rcnn.MaskRCNN, **small)
    batch, step = next(iter(benchmark.batches(run))), run.precision.around(benchmark.step)
    values = [step(run, batch).item() for _ in range(12)]
    assert sum(values[-4:]) < 0.7 * sum(values[:4])
