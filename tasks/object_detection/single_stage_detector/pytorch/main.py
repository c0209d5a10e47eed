"""SSD300 on ResNet-34, or on ResNet-50: detecting objects in COCO (Liu et al. 2016, arXiv:1512.02325).

python main.py --batch-size 128 --workers 8 [--data workspace/data/coco]
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import ClassVar

import msgspec
import torch
from boxes import SIDE, Matcher
from model import SSD300, Backbone, multibox_loss
from patches import cut, random_patch, seen_in
from torch.nn.utils.rnn import pad_sequence
from torchvision.transforms.v2 import ColorJitter
from torchvision.transforms.v2.functional import pil_to_tensor, resize, to_pil_image

from cotenant.bench import Distributed, Run, flag, main
from cotenant.bench.images import Images, Normalise, Paths, whole_image

CLASSES = 1 + 80  # class 0 is background
OBJECTS, MOST_OBJECTS = 7.3, 40  # in one image

Sample = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class SingleStageDetector(Distributed):
    """One step = one SGD update on a batch of images; their objects are matched to the default boxes."""

    item = "image"
    same_shapes = True
    fast_channels_last = True
    ignored: ClassVar[dict[str, int]] = {"--no-save": 0, "--threshold": 1}

    batch_size: int = 128
    backbone: Backbone = flag("resnet34", help="the network below the six maps")
    size: int = flag(SIDE, help="pixels of an image's side; smaller ones have fewer maps")
    lr: float = flag(2.6e-3, help="learning rate")
    momentum: float = flag(0.9, help="of SGD")
    decay: float = flag(5e-4, "--weight-decay", help="of SGD")

    def build(self, run: Run) -> None:
        self.model = self.distribute(run, SSD300(CLASSES, self.backbone, self.size))
        self.optimizer = run.sgd(self.model.parameters(), lr=self.lr, momentum=self.momentum, weight_decay=self.decay)

    def batches(self, run: Run) -> Iterator[Sample]:
        """Return normalised images (b, 3, size, size), offsets (b, 4, a) and classes (b, a)."""
        matcher = Matcher(run.device, self.size)
        if self.data is None:
            boxes, labels = (part.to(run.device) for part in random_objects(self.batch_size))
            return run.resident(torch.randn(self.batch_size, 3, self.size, self.size), *matcher(boxes, labels))
        coco = partial(Coco, folder=run.files("train2017"), remedy=run.remedy, size=self.size)
        images = run.read(coco, "annotations", "instances_train2017.json")
        normalise = Normalise(run.device)
        # Images are copied as bytes and objects unmatched, which is less data than the batch on the device.
        return (
            (normalise(images_b3hw), *matcher(boxes, labels))
            for images_b3hw, boxes, labels in run.loader(images, collate=padded)
        )

    def step(self, run: Run, batch: Sample) -> torch.Tensor:
        images, targets, classes = batch
        loss = multibox_loss(*self.model(images), targets, classes)
        run.update(loss, self.optimizer)
        return loss


def random_objects(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return boxes (count, 40, 4) and labels (count, 40), as many and as large as COCO's, padded with zeros."""
    sizes = (torch.randn(count, MOST_OBJECTS, 1) + 0.25 * torch.randn(count, MOST_OBJECTS, 2)).exp() * 0.08
    sizes.clamp_(0.01, 0.99)
    corners = torch.rand(count, MOST_OBJECTS, 2) * (1 - sizes)
    there = torch.arange(MOST_OBJECTS) < torch.empty(count, 1).geometric_(1 / OBJECTS)
    labels = torch.randint(1, CLASSES, (count, MOST_OBJECTS))
    return torch.cat([corners, corners + sizes], dim=2) * there[..., None], labels * there


class Category(msgspec.Struct):
    id: int


class Picture(msgspec.Struct):
    id: int
    file_name: str
    width: int
    height: int


class Thing(msgspec.Struct):
    image_id: int
    category_id: int
    bbox: tuple[float, float, float, float]
    iscrowd: int = 0


class Annotations(msgspec.Struct):
    """The needed parts of COCO's annotation file; the outlines, most of its bytes, are skipped."""

    images: list[Picture]
    annotations: list[Thing]
    categories: list[Category]


def read_annotations(path: Path) -> Annotations:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Annotations)
    except msgspec.DecodeError as error:
        raise ValueError(error) from error
    known = {one.id for one in found.categories}
    if len(known) >= CLASSES:
        raise ValueError(f"it has {len(known)} categories, and the model knows {CLASSES - 1}")
    if unknown := {thing.category_id for thing in found.annotations} - known:
        raise ValueError(f"an object's category, {min(unknown)}, is none of its own")
    return found


class Coco(torch.utils.data.Dataset[Sample]):
    """Random patches of images as (3, size, size) bytes, in other colours and flipped at random; the boxes of
    their objects as fractions (o, 4), and labels 1 to 80 (o).

    Raises ValueError for annotations that are no such JSON, or that have other categories than COCO's.
    """

    def __init__(self, annotations: Path, folder: Path, remedy: str, size: int = SIDE) -> None:
        found = read_annotations(annotations)
        # The ids of the 80 categories have gaps.
        label_of = {identity: 1 + n for n, identity in enumerate(sorted({one.id for one in found.categories}))}
        objects: dict[int, list[tuple[float, ...]]] = {}
        for thing in found.annotations:
            x, y, width, height = thing.bbox
            if not thing.iscrowd and width > 0 and height > 0:
                row = (x, y, x + width, y + height, label_of[thing.category_id])
                objects.setdefault(thing.image_id, []).append(row)
        seen = [one for one in found.images if one.id in objects]
        self.images = Images(Paths(str(folder / one.file_name) for one in seen), whole_image, remedy)
        self.size = size
        self.jitter = ColorJitter(brightness=0.125, contrast=0.5, saturation=0.5, hue=0.05)
        self.extents = torch.tensor([(one.width, one.height) * 2 for one in seen])
        # One tensor: counting references to many objects would copy their memory into each loader process.
        self.objects = torch.tensor([row for one in seen for row in objects[one.id]])
        self.bounds = torch.tensor([0, *(len(objects[one.id]) for one in seen)]).cumsum(0)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Sample:
        image = self.images[index]
        objects = self.objects[self.bounds[index] : self.bounds[index + 1]]
        boxes, labels = objects[:, :4] / self.extents[index], objects[:, 4].long()
        if (found := random_patch(boxes)) is not None:
            patch, inside = found
            image, boxes, labels = cut(image, patch), seen_in(patch, boxes[inside]), labels[inside]
        # By Pillow, as the original did: a third faster than on tensors.
        image = pil_to_tensor(self.jitter(to_pil_image(resize(image, [self.size, self.size], antialias=True))))
        if torch.rand(()) < 0.5:
            image, boxes = image.flip(2), boxes[:, [2, 1, 0, 3]]
            boxes[:, ::2] = 1 - boxes[:, ::2]
        return image, boxes, labels


def padded(samples: list[Sample]) -> Sample:
    """Return a batch in which every image has as many objects as the one with most; added ones have the label 0."""
    images, boxes, labels = zip(*samples, strict=True)
    return torch.stack(images), pad_sequence(boxes, batch_first=True), pad_sequence(labels, batch_first=True)


if __name__ == "__main__":
    main(SingleStageDetector)
