"""Fast neural style, written as a plain script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torchvision.models import vgg16

ENDS = (3, 8, 15, 22)  # relu1_2, relu2_2, relu3_3 and relu4_3 in VGG16's features.


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.ReflectionPad2d(kernel // 2), nn.Conv2d(inputs, outputs, kernel, stride))


def block(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    norm = nn.InstanceNorm2d(outputs, affine=True)
    return nn.Sequential(convolution(inputs, outputs, kernel, stride), norm, nn.ReLU(inplace=True))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = block(128, 128, 3), convolution(128, 128, 3)
        self.norm = nn.InstanceNorm2d(128, affine=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.norm(self.second(self.first(x)))


def features(vgg: nn.Sequential, x: torch.Tensor) -> list[torch.Tensor]:
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    x, found = (x - mean.view(3, 1, 1)) / std.view(3, 1, 1), []
    for index, layer in enumerate(vgg):
        x = layer(x)
        if index in ENDS:
            found.append(x)
    return found


def gram(x: torch.Tensor) -> torch.Tensor:
    b, c, h, w = x.shape
    rows = x.view(b, c, h * w)
    return rows @ rows.transpose(1, 2) / (c * h * w)


def script(batch_size: int, image_size: int = 64) -> Iterator[Any]:
    """Yield the trained model, then the loss of each step."""
    model = nn.Sequential(
        block(3, 32, 9),
        block(32, 64, 3, 2),
        block(64, 128, 3, 2),
        *(Residual() for _ in range(5)),
        nn.Upsample(scale_factor=2),
        block(128, 64, 3),
        nn.Upsample(scale_factor=2),
        block(64, 32, 3),
        convolution(32, 3, 9),
    )
    optimizer, criterion = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True), nn.MSELoss()
    vgg = vgg16().features[: ENDS[-1] + 1].requires_grad_(False)
    for layer in vgg:
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    images = (0.45 + 0.27 * torch.randn(batch_size, 3, image_size, image_size)).clamp(0, 1)
    strokes = functional.interpolate(torch.rand(1, 3, image_size // 4, image_size // 4), scale_factor=4, mode="bicubic")
    style = [gram(one).expand(batch_size, -1, -1) for one in features(vgg, strokes)]
    yield model
    while True:
        painted = features(vgg, model(images))
        with torch.no_grad():
            wanted = features(vgg, images)[1]
        loss = 1e-4 * criterion(painted[1], wanted)
        for one, target in zip(painted, style, strict=True):
            loss = loss + 10 * criterion(gram(one), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss
