"""The two networks of fast neural style: the one that is trained, and the one that judges its pictures."""

from typing import Any

import torch
from torch import nn
from torchvision.models import vgg16

from cotenant.bench.images import MEAN, STD

SEED = 16


def transformer_net() -> nn.Sequential:
    """Return the network from pictures to pictures (batch, 3, height, width) of the same size, a multiple of 4.

    As published (Johnson, Alahi and Fei-Fei 2016), with the instance normalisation and the nearest-neighbour
    upsampling that followed it: 1,679,235 parameters.
    """
    return nn.Sequential(
        *normalised(3, 32, 9),
        nn.ReLU(True),
        *normalised(32, 64, 3, stride=2),
        nn.ReLU(True),
        *normalised(64, 128, 3, stride=2),
        nn.ReLU(True),
        *(Residual(128) for _ in range(5)),
        nn.Upsample(scale_factor=2, mode="nearest"),
        *normalised(128, 64, 3),
        nn.ReLU(True),
        nn.Upsample(scale_factor=2, mode="nearest"),
        *normalised(64, 32, 3),
        nn.ReLU(True),
        convolution(32, 3, 9),
    )


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, padding_mode="reflect")


def normalised(inputs: int, outputs: int, kernel: int, stride: int = 1) -> tuple[nn.Module, ...]:
    return convolution(inputs, outputs, kernel, stride), nn.InstanceNorm2d(outputs, affine=True)


class Residual(nn.Module):
    """Two convolutions beside the identity."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *normalised(channels, channels, 3), nn.ReLU(True), *normalised(channels, channels, 3)
        )

    def forward(self, x_bchw: torch.Tensor) -> torch.Tensor:
        return x_bchw + self.layers(x_bchw)


class LossNetwork(nn.Module):
    """VGG16 to relu4_3, frozen, on pictures within 0 and 1. Its weights are random, but the same in every process."""

    def __init__(self) -> None:
        super().__init__()
        with torch.device("meta"):  # The 120 M weights of its classifier are not needed.
            layers = vgg16(weights=None).features[:23]
        layers = layers.to_empty(device="cpu").requires_grad_(False)
        random = torch.Generator().manual_seed(SEED)
        for layer in layers:
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=random)
                nn.init.zeros_(layer.bias)
        # They end in relu1_2, relu2_2, relu3_3 and relu4_3.
        self.slices = nn.ModuleList([layers[:4], layers[4:9], layers[9:16], layers[16:]])
        mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)
        self.register_buffer("scale", 1 / std)
        self.register_buffer("shift", -mean / std)

    def forward(self, pictures_b3hw: torch.Tensor) -> list[torch.Tensor]:
        """Return the features (batch, channels, height, width) at the end of each slice."""
        x = torch.addcmul(self.shift, pictures_b3hw, self.scale)
        features = []
        for layers in self.slices:
            x = layers(x)
            features.append(x)
        return features


class Gram(torch.autograd.Function):
    """The Gram matrices (batch, c, c) of rows (batch, c, n), divided by c n, in fp32.

    The product itself divides, since the sums over a picture and their gradients exceed fp16. The backward pass needs
    one product, autograd would use two: both factors are the same.
    """

    @staticmethod
    def forward(ctx: Any, rows_bcn: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(rows_bcn)
        _, c, n = rows_bcn.shape
        return torch.baddbmm(rows_bcn.new_empty(1), rows_bcn, rows_bcn.mT, beta=0, alpha=1 / (c * n)).float()

    @staticmethod
    def backward(ctx: Any, grad_bcc: torch.Tensor) -> torch.Tensor:
        (rows_bcn,) = ctx.saved_tensors
        _, c, n = rows_bcn.shape
        return (grad_bcc + grad_bcc.mT).div(c * n).to(rows_bcn.dtype) @ rows_bcn


def gram(features_bchw: torch.Tensor) -> torch.Tensor:
    """Return the Gram matrices (batch, channels, channels) of features."""
    return Gram.apply(features_bchw.flatten(2))
