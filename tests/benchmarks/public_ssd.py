"""torchvision's ResNet, convolution blocks and SSD head in the place of single_stage_detector's network.

torchvision's own SSD300 is built on VGG16; this is the task's network, made of torchvision's parts.
"""

from __future__ import annotations

import itertools
from typing import Literal

import torch
from torch import nn
from torchvision.models import resnet34, resnet50
from torchvision.models.detection.ssd import SSDHead
from torchvision.ops.misc import Conv2dNormActivation

ANCHORS = (4, 6, 6, 6, 4, 4)
SIDES = (38, 19, 10, 5, 3, 1)
CHANNELS = (512, 512, 256, 256, 256)
INNER = (256, 256, 128, 128, 128)


class Model(nn.Module):
    """torchvision's equal of `SSD300`; `ours` returns its weights under the names in `SSD300`."""

    order_a: torch.Tensor

    def __init__(self, classes: int, backbone: Literal["resnet34", "resnet50"]) -> None:
        super().__init__()
        net, first = (resnet34(), 256) if backbone == "resnet34" else (resnet50(), 1024)
        block = net.layer3[0]
        strided = block.conv1 if backbone == "resnet34" else block.conv2
        strided.stride = block.downsample[0].stride = (1, 1)
        self.backbone = nn.Sequential(net.conv1, net.bn1, net.relu, net.maxpool, net.layer1, net.layer2, net.layer3)
        channels, norm = (first, *CHANNELS), nn.BatchNorm2d if backbone == "resnet50" else None
        self.extra = nn.ModuleList(
            nn.Sequential(
                Conv2dNormActivation(into, inner, 1, norm_layer=norm),
                Conv2dNormActivation(inner, out, 3, 2 if index < 3 else 1, int(index < 3), norm_layer=norm),
            )
            for index, ((into, out), inner) in enumerate(zip(itertools.pairwise(channels), INNER, strict=True))
        )
        self.head = SSDHead([*channels], [*ANCHORS], classes)
        self.register_buffer("order_a", order(), persistent=False)

    def forward(self, x_b3hw: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        maps = [self.backbone(x_b3hw)]
        for block in self.extra:
            maps.append(block(maps[-1]))
        # The task orders boxes by shape, then place; torchvision by place, then shape.
        outputs = self.head(maps)
        offsets, scores = (outputs[name][:, self.order_a].mT for name in ("bbox_regression", "cls_logits"))
        return offsets, scores

    def ours(self) -> dict[str, torch.Tensor]:
        theirs = self.state_dict()
        state = {name: value for name, value in theirs.items() if not name.startswith(("extra.", "head."))}
        for index, block in enumerate(self.extra):
            # The task has convolutions, norms and activations in one sequence.
            layers = [layer for part in block for layer in part]
            for place, layer in enumerate(layers):
                state |= {f"extra.{index}.{place}.{name}": value for name, value in layer.state_dict().items()}
        heads = self.head.regression_head.module_list, self.head.classification_head.module_list
        for index, (anchors, *both) in enumerate(zip(ANCHORS, *heads, strict=True)):
            for kind in ("weight", "bias"):
                # The task's head makes both, and orders its channels by value, then shape.
                parts = [getattr(part, kind).unflatten(0, (anchors, -1)) for part in both]
                state[f"heads.{index}.{kind}"] = torch.cat(parts, dim=1).transpose(0, 1).flatten(0, 1)
        return state


def order() -> torch.Tensor:
    """Return the index among torchvision's boxes of each of the task's, (8732)."""
    parts, begin = [], 0
    for side, anchors in zip(SIDES, ANCHORS, strict=True):
        count = anchors * side**2
        parts.append(torch.arange(begin, begin + count).view(-1, anchors).T.flatten())
        begin += count
    return torch.cat(parts)
