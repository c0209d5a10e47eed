"""SSD300: its boxes, their matching, its loss, COCO read from files. Steps are few, as each takes a second."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional
from torchvision.models.detection.anchor_utils import DefaultBoxGenerator
from torchvision.models.detection.image_list import ImageList
from torchvision.ops import box_convert, box_iou

from cotenant.bench import Run
from cotenant.datasets.obtain import obtain
from cotenant.datasets.request import SetRequest
from cotenant.datasets.sets.coco import DATASET, recipe
from tasks.loading import built, decodes, losses

PLACE = "object_detection/single_stage_detector"
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def coco(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    obtain(SetRequest(root, replace(DATASET, sizes={"small": recipe(6, 1)}), "small", processes=1))
    return root / "coco"


@pytest.mark.parametrize(("backbone", "first"), [("resnet34", 256), ("resnet50", 1024)])
def test_the_model_has_the_published_maps(main: Any, backbone: str, first: int) -> None:
    with torch.device("meta"):
        net = main.SSD300(81, backbone).eval()
    shapes: list[Any] = []
    for part in [net.backbone, *net.extra]:
        part.register_forward_hook(lambda *seen: shapes.append(tuple(seen[2].shape[1:])))
    offsets, scores = net(torch.rand(1, 3, 300, 300, device="meta"))
    assert (offsets.shape, scores.shape) == ((1, 4, 8732), (1, 81, 8732))
    assert shapes == [(first, 38, 38), (512, 19, 19), (512, 10, 10), (256, 5, 5), (256, 3, 3), (256, 1, 1)]


@pytest.mark.parametrize(("pixels", "maps"), [(300, (38, 19, 10, 5, 3, 1)), (64, (8, 4, 2, 1)), (32, (4, 2, 1))])
def test_smaller_images_have_fewer_feature_maps(main: Any, pixels: int, maps: tuple[int, ...]) -> None:
    assert tuple(main.boxes.maps_of(pixels)) == maps
    places = sum(side**2 * shapes for side, shapes in zip(maps, main.boxes.SHAPES, strict=False))
    defaults = main.boxes.default_boxes(pixels)
    with torch.device("meta"):
        offsets, scores = main.SSD300(81, "resnet18", pixels).eval()(torch.rand(1, 3, pixels, pixels))
    assert (defaults.shape, offsets.shape, scores.shape) == ((4, places), (1, 4, places), (1, 81, places))
    # The last map has one place, the middle of the image, and its boxes are as large as in any other place.
    assert defaults[:2, -1].tolist() == pytest.approx([0.5, 0.5])
    assert defaults[2, 0] == pytest.approx(21 / 300)


def test_matching_is_that_of_a_loop_over_objects(main: Any) -> None:
    matcher = main.Matcher(CPU)
    boxes_bo4, labels_bo = main.random_objects(6)
    offsets_b4a, classes_ba = matcher(boxes_bo4, labels_bo)
    for boxes, labels, offsets, classes in zip(boxes_bo4, labels_bo, offsets_b4a, classes_ba, strict=True):
        boxes, labels = boxes[labels > 0], labels[labels > 0]
        overlap = box_iou(boxes, matcher.corners_4a.T)
        best, of = overlap.max(0)
        for number, one in enumerate(overlap):
            best[one.argmax()], of[one.argmax()] = 2, number
        positive = best > 0.5
        assert torch.equal(classes, torch.where(positive, labels[of], 0))
        centre, size = offsets.split(2)
        ours = matcher.defaults_4a
        decoded = torch.cat([centre * 0.1 * ours[2:] + ours[:2], (size * 0.2).exp() * ours[2:]])
        expected = box_convert(boxes[of], "xyxy", "cxcywh").T
        torch.testing.assert_close(decoded[:, positive], expected[:, positive])
        assert offsets[:, ~positive].abs().max() < 1e-3


def test_objects_with_the_same_best_box_and_images_with_none(main: Any) -> None:
    boxes = torch.tensor([[[0.1, 0.1, 0.12, 0.12], [0.1, 0.1, 0.12, 0.12]], [[0.0] * 4] * 2])
    _, classes_ba = main.Matcher(CPU)(boxes, torch.tensor([[3, 7], [0, 0]]))
    assert classes_ba[0].unique().tolist() == [0, 7]
    assert (classes_ba[0] == 7).sum() == 1
    assert classes_ba[1].max() == 0


def test_the_loss_takes_three_hard_negatives_for_each_positive(main: Any) -> None:
    torch.manual_seed(0)
    offsets, scores, targets = torch.randn(3, 4, 50), torch.randn(3, 5, 50), torch.randn(3, 4, 50)
    classes = torch.zeros(3, 50, dtype=torch.int64)
    classes[0, :4], classes[1, :20] = torch.tensor([1, 2, 3, 4]), 1  # 12 negatives; more than the 30 that exist; none
    expected = 0.0
    for image in range(3):
        positive = classes[image] > 0
        entropy = functional.cross_entropy(scores[image].T, classes[image], reduction="none")
        hard = entropy[~positive].sort(descending=True).values[: 3 * int(positive.sum())]
        moved = functional.smooth_l1_loss(offsets[image, :, positive], targets[image, :, positive], reduction="sum")
        expected += (moved + entropy[positive].sum() + hard.sum()) / max(1, int(positive.sum())) / 3
    torch.testing.assert_close(main.multibox_loss(offsets, scores, targets, classes), expected)


@pytest.mark.slow
def test_the_loss_falls_on_a_fixed_batch(main: Any) -> None:
    seen = losses(*built(main.SingleStageDetector, batch_size=1, lr=1e-3), 3)
    assert seen[-1] < 0.85 * seen[0]


def test_random_objects_are_as_cocos(main: Any) -> None:
    boxes, labels = main.random_objects(500)
    left, top, right, bottom = boxes[labels > 0].T
    assert min(left.min(), top.min()) >= 0
    assert max(right.max(), bottom.max()) <= 1.0001
    assert min((right - left).min(), (bottom - top).min()) > 0
    assert 6.3 < (labels > 0).sum() / 500 < 8.3
    assert (labels > 0).any(1).all()
    assert labels.unique().tolist() == list(range(81))
    assert boxes[labels == 0].abs().max() == 0


@decodes
@pytest.mark.parametrize(("workers", "size", "places"), [(0, 300, 8732), (1, 64, 382)])
def test_batches_come_from_cocos_files(main: Any, coco: Path, workers: int, size: int, places: int) -> None:
    benchmark = main.SingleStageDetector(cuda=False, batch_size=4, workers=workers, data=coco, size=size)
    run = Run(benchmark)
    images, offsets, classes = next(iter(benchmark.batches(run)))
    assert (images.shape, images.dtype) == ((4, 3, size, size), torch.float32)
    assert (offsets.shape, classes.shape) == ((4, 4, places), (4, places))
    assert -2.2 < images.min() < images.max() < 2.7
    assert (classes > 0).any(1).all()
    assert offsets.isfinite().all()
    assert benchmark.items((images, offsets, classes)) == 4


def test_patches_are_those_of_the_paper(main: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    patches = main.patches
    boxes = torch.tensor([[0.1, 0.1, 0.4, 0.5], [0.45, 0.2, 0.95, 0.9], [0.0, 0.0, 0.02, 0.03]])
    centre = (boxes[:, :2] + boxes[:, 2:]) / 2
    assert patches.LEAST_OVERLAPS == (None, 0, 0.1, 0.3, 0.5, 0.7, 0.9)
    for least in patches.LEAST_OVERLAPS[1:-1]:
        monkeypatch.setattr(patches, "LEAST_OVERLAPS", (least,))
        best = []
        for patch, inside in (patches.random_patch(boxes) for _ in range(60)):
            size = patch[2:] - patch[:2]
            assert 0 <= patch.min() < patch.max() <= 1 + 1e-6
            assert 0.3 - 1e-6 <= size.min() <= size.max() <= min(1, 2 * size.min() + 1e-6)
            assert inside.tolist() == ((centre > patch[:2]) & (centre < patch[2:])).all(1).tolist()
            best.append(float(box_iou(boxes[inside], patch[None]).max()))
            shown = patches.seen_in(patch, boxes[inside])
            assert 0 <= shown.min() < shown.max() <= 1
            assert (shown[:, 2:] > shown[:, :2]).all()
        assert least <= min(best) < max(least, 0.3) + 0.1
    # A least overlap that no patch reaches is replaced by another draw.
    monkeypatch.setattr(patches, "LEAST_OVERLAPS", (0.9, None))
    assert [patches.random_patch(boxes[2:]) for _ in range(9)] == [None] * 9


@decodes
def test_boxes_lie_on_what_they_mark_in_every_patch(main: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bright rectangle in a dark picture lies in its box however the picture is cut, flipped and coloured."""
    pixels = np.zeros((240, 320, 3), np.uint8)
    pixels[60:180, 40:200] = (250, 200, 150)
    Image.fromarray(pixels).save(tmp_path / "0.png")
    things = [{"image_id": 0, "category_id": 3, "bbox": [40, 60, 160, 120]}]
    things.append({"image_id": 0, "category_id": 3, "bbox": [0, 0, 4, 4]})
    images = [{"id": 0, "file_name": "0.png", "width": 320, "height": 240}]
    (tmp_path / "a.json").write_text(json.dumps({"images": images, "annotations": things, "categories": [{"id": 3}]}))
    dataset, shapes, colours, counts = main.Coco(tmp_path / "a.json", tmp_path, ""), set(), set(), set()
    for _ in range(60):
        image, boxes, labels = dataset[0]
        assert labels.tolist() == [1] * len(boxes)
        counts.add(len(boxes))
        left, top, right, bottom = (300 * max(boxes, key=lambda box: (box[2:] - box[:2]).prod())).tolist()
        if right - left < 30:
            continue  # This patch holds only the small object in the corner.
        middle = image[:, round((top + bottom) / 2), round((left + right) / 2)]
        bright = ((image.amax(0).int() - int(middle.max())).abs() < 40).nonzero()
        (first_y, first_x), (last_y, last_x) = bright.amin(0).tolist(), bright.amax(0).tolist()
        assert (first_x, first_y, last_x, last_y) == pytest.approx((left, top, right, bottom), abs=5)
        shapes.add((round(left), round(top), round(right), round(bottom)))
        colours.add(tuple(middle.tolist()))
    assert min(len(shapes), len(colours)) > 25
    assert counts == {1, 2}
    monkeypatch.setattr(main, "random_patch", lambda boxes: None)
    dataset.jitter = lambda image: image
    whole = {tuple(boxes[0].tolist()): image for image, boxes, _ in (dataset[0] for _ in range(30))}
    assert whole.keys() == {(0.125, 0.25, 0.625, 0.75), (0.375, 0.25, 0.875, 0.75)}
    plain, flipped = (whole[box] for box in sorted(whole))
    assert torch.equal(plain.flip(2), flipped)
    assert (plain.shape, plain.dtype) == ((3, 300, 300), torch.uint8)


def test_crowds_empty_boxes_and_empty_images_are_left_out(main: Any, tmp_path: Path) -> None:
    def thing(image: int, crowd: int, width: float) -> dict[str, Any]:
        return {"image_id": image, "category_id": 90, "bbox": [1, 2, width, 5.5], "iscrowd": crowd, "id": 1}

    file = {
        "images": [{"id": i, "file_name": f"{i}.jpg", "width": 10, "height": 10} for i in range(4)],
        "annotations": [thing(0, 1, 4), thing(1, 0, 0), thing(2, 0, 4), thing(2, 1, 4)],
        "categories": [{"id": 90}, {"id": 3}],
    }
    (tmp_path / "a.json").write_text(json.dumps(file))
    dataset = main.Coco(tmp_path / "a.json", tmp_path, "")
    assert [dataset.images.paths[n] for n in range(len(dataset))] == [f"{tmp_path}/2.jpg"]
    assert dataset.objects.tolist() == [[1, 2, 5, 7.5, 2]]


def test_boxes_are_those_of_torchvision(main: Any) -> None:
    """Its network is compared in tests/benchmarks/test_public_models.py."""
    boxes, maps = main.boxes, [torch.empty(1, 1, side, side) for side in main.boxes.maps_of(300)]
    generator = DefaultBoxGenerator(
        [list(ratios) for ratios in boxes.RATIOS],
        scales=[scale / 300 for scale in boxes.SCALES],
        steps=[8, 16, 32, 64, 100, 300],
    )
    (theirs,) = generator(ImageList(torch.empty(1, 3, 300, 300), [(300, 300)]), maps)
    # torchvision orders its boxes by place, we by shape.
    number, orders = torch.arange(8732), []
    for shapes, side in zip(boxes.SHAPES, boxes.maps_of(300), strict=True):
        of_map, number = number.split([shapes * side**2, len(number) - shapes * side**2])
        orders.append(of_map.view(shapes, side**2).T.flatten())
    # In the original a centre beyond the image lies on its edge; torchvision clamps sizes alone.
    expected = (box_convert(theirs, "xyxy", "cxcywh") / 300).clamp(0, 1)
    torch.testing.assert_close(boxes.default_boxes()[:, torch.cat(orders)].T, expected, rtol=1e-4, atol=1e-6)
