"""DCGAN (Radford, Metz and Chintala 2015): two convolutional networks that train against each other.

python main.py --batch-size 128 --repeat 25 --number 5 [--dataroot workspace/data/ImageNet/train --workers 8]
"""

import math
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import ClassVar, Literal

import torch
from torch import nn
from torch.nn import functional as F

from cotenant.bench import Benchmark, Run, flag, main
from cotenant.bench.images import Images, class_folders, middle_square


def generator(size: int, latent: int, width: int) -> nn.Sequential:
    """Return the network from (batch, latent, 1, 1) to images (batch, 3, size, size) within -1 and 1."""
    channels = [width * 2**stage for stage in reversed(range(stages(size)))]
    layers = [nn.ConvTranspose2d(latent, channels[0], 4, 1, 0, bias=False), nn.BatchNorm2d(channels[0]), nn.ReLU(True)]
    for inputs, outputs in pairwise(channels):
        layers += [nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(True)]
    layers += [nn.ConvTranspose2d(channels[-1], 3, 4, 2, 1, bias=False), nn.Tanh()]
    return nn.Sequential(*layers).apply(initialise)


class Discriminator(nn.Module):
    """The mirror image of the generator, with leaky units: an image becomes the logit that it is real."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        channels = [width * 2**stage for stage in range(stages(size))]
        layers: list[nn.Module] = [nn.Conv2d(3, channels[0], 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True)]
        for inputs, outputs in pairwise(channels):
            layers += [nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs)]
            layers += [nn.LeakyReLU(0.2, True)]
        self.layers = nn.Sequential(*layers, nn.Conv2d(channels[-1], 1, 4, 1, 0, bias=False)).apply(initialise)

    def forward(self, *batches_b3hw: torch.Tensor) -> list[torch.Tensor]:
        """Return the logits (batch,) of each batch; each is normalised by its own statistics."""
        return [self.layers(images_b3hw).flatten() for images_b3hw in batches_b3hw]


def stages(size: int) -> int:
    """Return the number of halvings that reduce an image to 4 x 4 pixels."""
    return round(math.log2(size)) - 2


def initialise(layer: nn.Module) -> None:
    """Draw the weights as the paper does."""
    if isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(layer.weight, 0.0, 0.02)
    elif isinstance(layer, nn.BatchNorm2d):
        nn.init.normal_(layer.weight, 1.0, 0.02)


class DCGAN(Benchmark):
    """One step = one discriminator update on real and generated images, and one generator update."""

    item = "real image"
    same_shapes = True
    fast_channels_last = True
    # The run scripts read it: every process has one device, and the launcher tells main.py the number of processes.
    ignored: ClassVar[dict[str, int]] = {"--ngpu": 1}

    batch_size: int = 128
    repeat: int = 25
    data = flag(None, "--data", "--dataroot", help="read the images from one folder per class here")
    dataset: Literal["imagenet", "folder", "fake"] = flag(
        "imagenet", help="of images in one folder per class; fake never reads one"
    )
    image_size: Literal[32, 64, 128] = flag(64, "--imageSize", "--image-size", help="pixels of an image's side")
    nz: int = flag(100, help="size of the latent vector")
    ngf: int = flag(64, help="channels of the generator's last hidden layer")
    ndf: int = flag(64, help="channels of the discriminator's first layer")
    lr: float = flag(2e-4, help="learning rate of both")
    beta1: float = flag(0.5, help="of both Adams")

    def build(self, run: Run) -> None:
        self.generator = run.place(generator(self.image_size, self.nz, self.ngf))
        self.discriminator = run.place(Discriminator(self.image_size, self.ndf))
        self.judge = run.unspread(self.discriminator)
        self.optimizer_g, self.optimizer_d = (
            run.adam(network.parameters(), lr=self.lr, betas=(self.beta1, 0.999))
            for network in (self.generator, self.discriminator)
        )

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        if self.data is None or self.dataset == "fake":
            pixels = torch.randn(self.batch_size, 3, self.image_size, self.image_size) * 0.5
            return run.resident(pixels.clamp(-1, 1))
        found = class_folders(run.files(), run.remedy)
        images = Images(found.paths, partial(middle_square, size=self.image_size), run.remedy)
        # Pixels are copied as bytes and become floats within -1 and 1 on the device.
        return (pixels.float() / 127.5 - 1 for pixels in run.loader(images))

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        fakes = self.generator(torch.randn(len(batch), self.nz, 1, 1, device=run.device))
        real_b, fake_b = self.discriminator(batch, fakes.detach())
        # softplus(-x) is the cross entropy of the logit x with the label "real", softplus(x) that with "fake".
        loss = F.softplus(-real_b.float()).mean() + F.softplus(fake_b.float()).mean()
        run.update(loss, self.optimizer_d)

        # The discriminator's weights get unused gradients here, as in the usual script: they are part of the work.
        (fake_b,) = self.judge(fakes)
        run.update(F.softplus(-fake_b.float()).mean(), self.optimizer_g)
        return loss


if __name__ == "__main__":
    main(DCGAN)
