"""Mask R-CNN on ResNet-50 with a feature pyramid (He et al. 2017, arXiv:1703.06870): boxes and masks of objects.

python main.py --batch-size 4 --precision bf16
"""

import itertools
from collections.abc import Iterator

import torch
from model import mask_rcnn

from cotenant.bench import Distributed, Run, flag, main

CLASSES = 1 + 80  # of COCO; class 0 is background

Batch = tuple[torch.Tensor, list[dict[str, torch.Tensor]]]


class MaskRCNN(Distributed):
    """One step = one SGD update on a batch of images of one size; each object has a box, a class and a mask."""

    item = "image"
    replicable = False  # A batch has lists of images and targets.

    batch_size: int = 4
    height: int = flag(800, help="pixels of an image's height, a multiple of 32")
    width: int = flag(1344, help="and of its width")
    objects: int = flag(8, help="objects in one image")
    regions: int = flag(512, help="regions of an image that the heads are trained on, a quarter of them on objects")
    lr: float = flag(5e-3, help="learning rate")
    momentum: float = flag(0.9, help="of SGD")
    decay: float = flag(1e-4, "--weight-decay", help="of SGD")

    def build(self, run: Run) -> None:
        self.model = self.distribute(run, mask_rcnn(CLASSES, self.height, self.width, self.regions))
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = run.sgd(trained, lr=self.lr, momentum=self.momentum, weight_decay=self.decay)

    def batches(self, run: Run) -> Iterator[Batch]:
        """Return images (b, 3, h, w) from 0 to 1, and of each the boxes (o, 4), labels (o) and masks (o, h, w)."""
        images = run.to_device(torch.rand(self.batch_size, 3, self.height, self.width))
        targets = [random_objects(self.objects, self.height, self.width) for _ in range(self.batch_size)]
        placed = [{name: run.to_device(part) for name, part in target.items()} for target in targets]
        return itertools.repeat((images, placed))

    def step(self, run: Run, batch: Batch) -> torch.Tensor:
        images, targets = batch
        loss = torch.stack(list(self.model(list(images), targets).values())).sum()
        run.update(loss, self.optimizer)
        return loss


def random_objects(count: int, height: int, width: int) -> dict[str, torch.Tensor]:
    """Return boxes of 1/16 to 1/2 of the image's sides, their labels, and the masks that fill them."""
    extent = torch.tensor([width, height])
    size = extent * torch.empty(count, 2).uniform_(1 / 16, 1 / 2)
    corner = torch.rand(count, 2) * (extent - size)
    boxes = torch.cat([corner, corner + size], dim=1)
    left, top, right, bottom = (side[:, None] for side in boxes.T)
    across, down = torch.arange(width), torch.arange(height)
    inside_ow = (across >= left) & (across < right)
    inside_oh = (down >= top) & (down < bottom)
    masks = inside_oh[:, :, None] & inside_ow[:, None, :]
    return {"boxes": boxes, "labels": torch.randint(1, CLASSES, (count,)), "masks": masks.to(torch.uint8)}


if __name__ == "__main__":
    main(MaskRCNN)
