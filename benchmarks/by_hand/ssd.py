"""SSD300 on ResNet-34, written as a plain script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torchvision.models import resnet34

WIDTHS, INNER, SHAPES = (256, 512, 512, 256, 256, 256), (256, 256, 128, 128, 128), (4, 6, 6, 6, 4, 4)
BOXES, CLASSES = 8732, 81


class SSD300(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        net = resnet34()
        net.layer3[0].conv1.stride = net.layer3[0].downsample[0].stride = (1, 1)
        self.backbone = nn.Sequential(net.conv1, net.bn1, net.relu, net.maxpool, net.layer1, net.layer2, net.layer3)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(WIDTHS[index], INNER[index], 1),
                nn.ReLU(inplace=True),
                nn.Conv2d(INNER[index], WIDTHS[index + 1], 3, *((2, 1) if index < 3 else (1, 0))),
                nn.ReLU(inplace=True),
            )
            for index in range(5)
        )
        self.boxes, self.classes = (
            nn.ModuleList(nn.Conv2d(c, n * each, 3, padding=1) for c, n in zip(WIDTHS, SHAPES, strict=True))
            for each in (4, CLASSES)
        )
        for part in (self.blocks, self.boxes, self.classes):
            for layer in part.modules():
                if isinstance(layer, nn.Conv2d):
                    nn.init.xavier_uniform_(layer.weight)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        maps = [self.backbone(x)]
        for block in self.blocks:
            maps.append(block(maps[-1]))
        boxes = [head(one).view(len(x), 4, -1) for head, one in zip(self.boxes, maps, strict=True)]
        classes = [head(one).view(len(x), CLASSES, -1) for head, one in zip(self.classes, maps, strict=True)]
        return torch.cat(boxes, dim=2), torch.cat(classes, dim=2)


def multibox_loss(
    boxes: torch.Tensor, scores: torch.Tensor, offsets: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """Return the loss of the boxes with an object and of three times as many background boxes, the hardest."""
    positive = labels > 0
    count = positive.sum(dim=1)
    box_loss = functional.smooth_l1_loss(boxes, offsets, reduction="none").sum(dim=1)
    class_loss = functional.cross_entropy(scores, labels, reduction="none")
    negative_loss = class_loss.detach().masked_fill(positive, 0)
    rank = negative_loss.argsort(dim=1, descending=True).argsort(dim=1)
    chosen = positive | (rank < 3 * count.unsqueeze(1))
    return (((box_loss * positive).sum(dim=1) + (class_loss * chosen).sum(dim=1)) / count.clamp(min=1)).mean()


def script(batch_size: int) -> Iterator[Any]:
    """Yield the model, then the loss of each step."""
    model = SSD300()
    optimizer = torch.optim.SGD(model.parameters(), lr=2.6e-3, momentum=0.9, weight_decay=5e-4, fused=True)
    images, offsets = torch.randn(batch_size, 3, 300, 300), torch.randn(batch_size, 4, BOXES)
    labels = torch.randint(1, CLASSES, (batch_size, BOXES)) * (torch.rand(batch_size, BOXES) < 0.005)
    yield model
    while True:
        loss = multibox_loss(*model(images), offsets, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss
