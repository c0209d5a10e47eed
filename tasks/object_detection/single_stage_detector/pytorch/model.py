"""SSD300 (Liu et al. 2016, arXiv:1512.02325) on a ResNet (He et al. 2015, 1512.03385), and its loss."""

from typing import Literal

import torch
from boxes import BACKGROUND, HALVED, SHAPES, SIDE, maps_of
from torch import nn
from torch.nn import functional as F
from torchvision.models import get_model

Backbone = Literal["resnet18", "resnet34", "resnet50"]
# Channels of the backbone's map, of the five maps after it, and within the block that leads to each of these.
FIRST_CHANNELS = {"resnet18": 256, "resnet34": 256, "resnet50": 1024}
CHANNELS = (512, 512, 256, 256, 256)
INNER = (256, 256, 128, 128, 128)
NEGATIVES_PER_POSITIVE = 3


def resnet(name: Backbone) -> nn.Sequential:
    """Return a ResNet up to conv4, here with stride 1: 300 x 300 pixels become maps of 38 x 38."""
    net = get_model(name)
    first = net.layer3[0]
    strided = first.conv2 if name == "resnet50" else first.conv1
    strided.stride = first.downsample[0].stride = (1, 1)
    return nn.Sequential(net.conv1, net.bn1, net.relu, net.maxpool, net.layer1, net.layer2, net.layer3)


def extra_block(index: int, channels: int, normalised: bool) -> nn.Sequential:
    """Return the block from a map of so many channels to the next: three halve its side, the others take 2 from it."""
    stride, padding = (2, 1) if index < HALVED else (1, 0)
    convolutions = (
        nn.Conv2d(channels, INNER[index], 1, bias=not normalised),
        nn.Conv2d(INNER[index], CHANNELS[index], 3, stride=stride, padding=padding, bias=not normalised),
    )
    layers: list[nn.Module] = []
    for convolution in convolutions:
        norm = [nn.BatchNorm2d(convolution.out_channels)] if normalised else []
        layers += [convolution, *norm, nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class SSD300(nn.Module):
    """Six maps from 38 x 38 to 1 x 1, of smaller pictures fewer; at each of their places 4 or 6 boxes, each with an
    offset and a class.

    19,972,534 parameters with 81 classes on ResNet-34, 22,894,902 on ResNet-50, with normalised extra blocks.
    """

    def __init__(self, classes: int, backbone: Backbone, pixels: int = SIDE) -> None:
        super().__init__()
        self.values = (4, classes)
        self.backbone = resnet(backbone)
        channels = (FIRST_CHANNELS[backbone], *CHANNELS)[: len(maps_of(pixels))]
        normalised = backbone == "resnet50"
        self.extra = nn.ModuleList(extra_block(index, into, normalised) for index, into in enumerate(channels[:-1]))
        # One convolution a map predicts both, so each map is read once.
        self.heads = nn.ModuleList(
            nn.Conv2d(width, shapes * sum(self.values), 3, padding=1)
            for width, shapes in zip(channels, SHAPES, strict=False)
        )
        for parameter in [*self.extra.parameters(), *self.heads.parameters()]:
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def forward(self, x_b3hw: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return offsets (b, 4, a) and class scores (b, classes, a)."""
        maps = [self.backbone(x_b3hw)]
        for block in self.extra:
            maps.append(block(maps[-1]))
        predictions = [
            head(one).reshape(len(one), sum(self.values), -1).split(self.values, dim=1)
            for head, one in zip(self.heads, maps, strict=True)
        ]
        offsets, scores = zip(*predictions, strict=True)
        return torch.cat(offsets, dim=2), torch.cat(scores, dim=2)


def multibox_loss(
    offsets_b4a: torch.Tensor, scores_bca: torch.Tensor, targets_b4a: torch.Tensor, classes_ba: torch.Tensor
) -> torch.Tensor:
    """Return smooth L1 on the boxes with an object plus cross entropy on these and three times as many others.

    The others are the background boxes with the largest loss of each image. Both sums are divided by the image's
    boxes with an object; an image without any adds 0.
    """
    positive_ba = classes_ba != BACKGROUND
    positives_b = positive_ba.sum(1)
    regression_ba = F.smooth_l1_loss(offsets_b4a, targets_b4a, reduction="none").sum(1)
    entropy_ba = F.cross_entropy(scores_bca, classes_ba, reduction="none")
    loss_b = ((regression_ba + entropy_ba) * positive_ba).sum(1)
    # Sorted, the hard ones are a prefix; its length stays on the device. Boxes with an object come last, as 0.
    hardest_ba = (entropy_ba * ~positive_ba).sort(1, descending=True).values
    rank_a = torch.arange(hardest_ba.size(1), device=hardest_ba.device)
    loss_b = loss_b + (hardest_ba * (rank_a < NEGATIVES_PER_POSITIVE * positives_b[:, None])).sum(1)
    return (loss_b / positives_b.clamp(min=1)).mean()
