"""SSD300 (Liu et al. 2016, arXiv:1512.02325) on ResNet-34 (He et al. 2015, arXiv:1512.03385), and its loss."""

import torch
from boxes import BACKGROUND, SHAPES
from torch import nn
from torch.nn import functional as F
from torchvision.models import resnet34

# Channels of the six maps, and within the block that leads from each map to the next one.
CHANNELS = (256, 512, 512, 256, 256, 256)
INNER = (256, 256, 128, 128, 128)
SHRINKING_BLOCKS = 3
NEGATIVES_PER_POSITIVE = 3


def backbone() -> nn.Sequential:
    """Return ResNet-34 up to conv4, whose stride is 1 here: 300 x 300 pixels become 256 maps of 38 x 38."""
    net = resnet34()
    first = net.layer3[0]
    first.conv1.stride = first.downsample[0].stride = (1, 1)
    return nn.Sequential(net.conv1, net.bn1, net.relu, net.maxpool, net.layer1, net.layer2, net.layer3)


def extra_block(index: int) -> nn.Sequential:
    """Return the block from one map to the next: the first three halve its side, the others take 2 from it."""
    stride, padding = (2, 1) if index < SHRINKING_BLOCKS else (1, 0)
    return nn.Sequential(
        nn.Conv2d(CHANNELS[index], INNER[index], 1),
        nn.ReLU(inplace=True),
        nn.Conv2d(INNER[index], CHANNELS[index + 1], 3, stride=stride, padding=padding),
        nn.ReLU(inplace=True),
    )


class SSD300(nn.Module):
    """Six maps from 38 x 38 to 1 x 1; at each of their places 4 or 6 boxes, each with an offset and a class."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.values = (4, classes)
        self.backbone = backbone()
        self.extra = nn.ModuleList(extra_block(index) for index in range(len(INNER)))
        # One convolution a map predicts both, so each map is read once.
        self.heads = nn.ModuleList(
            nn.Conv2d(channels, shapes * sum(self.values), 3, padding=1)
            for channels, shapes in zip(CHANNELS, SHAPES, strict=True)
        )
        for parameter in [*self.extra.parameters(), *self.heads.parameters()]:
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def forward(self, x_b3hw: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return offsets (b, 4, a) and class scores (b, classes, a) for a = 8732 boxes."""
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
    # Sorted, the hard ones are a prefix whose length stays on the device; boxes with an object come last, as 0.
    hardest_ba = (entropy_ba * ~positive_ba).sort(1, descending=True).values
    rank_a = torch.arange(hardest_ba.size(1), device=hardest_ba.device)
    loss_b = loss_b + (hardest_ba * (rank_a < NEGATIVES_PER_POSITIVE * positives_b[:, None])).sum(1)
    return (loss_b / positives_b.clamp(min=1)).mean()
