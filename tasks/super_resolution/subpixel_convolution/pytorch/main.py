"""Super-resolution by sub-pixel convolution, ESPCN (Shi et al. 2016): four convolutions on the small picture.

python main.py --batch-size 64 --repeat 25 --number 5 [--data workspace/data/BSDS500/data/images/train --workers 8]
"""

import random
from collections.abc import Iterator
from functools import partial
from typing import ClassVar

import torch
from PIL import Image
from torch import nn
from torch.nn import functional as F
from torchvision.transforms.v2.functional import pil_to_tensor

from cotenant.bench import Benchmark, MissingDataError, Run, flag, main
from cotenant.bench.images import Images, Paths, images_below
from cotenant.errors import CotenantError

MEAN, SPREAD = 0.43, 0.24  # Of a photograph's luminance.


def espcn(factor: int) -> nn.Sequential:
    """Return the network from (batch, 1, height, width) to (batch, 1, factor * height, factor * width).

    Its units are the paper's tanh: ReLU units are all dead after three steps of Adam at the rate of 0.1, and a device
    multiplies zeros faster than other numbers.
    """
    return nn.Sequential(
        nn.Conv2d(1, 64, 5, padding=2),
        nn.Tanh(),
        nn.Conv2d(64, 64, 3, padding=1),
        nn.Tanh(),
        nn.Conv2d(64, 32, 3, padding=1),
        nn.Tanh(),
        nn.Conv2d(32, factor**2, 3, padding=1),
        nn.PixelShuffle(factor),
    ).apply(initialise)


def initialise(layer: nn.Module) -> None:
    if isinstance(layer, nn.Conv2d):
        nn.init.orthogonal_(layer.weight)


def luminance(path: str, side: int) -> torch.Tensor:
    """Return a random crop (1, side, side) of a picture's luminance, as bytes."""
    with Image.open(path) as picture:
        width, height = picture.size
        if min(width, height) < side:
            raise MissingDataError(f"{path} is {width} x {height}.", f"Give a --crop smaller than {side}.")
        left, upper = random.randint(0, width - side), random.randint(0, height - side)
        return pil_to_tensor(picture.convert("YCbCr").getchannel("Y").crop((left, upper, left + side, upper + side)))


class SuperResolution(Benchmark):
    """One step = one Adam update of ESPCN on luminance crops and their bicubic reductions."""

    item = "image"
    same_shapes = True
    ignored: ClassVar[dict[str, int]] = {"--testBatchSize": 1, "--no-checks": 0}

    repeat: int = 25
    upscale_factor: int = flag(2, "--upscale_factor", "--upscale-factor", help="of both sides of a picture")
    crop: int = flag(256, help="pixels of a target's side, rounded down to a multiple of the factor")
    lr: float = flag(0.1, help="learning rate")

    def build(self, run: Run) -> None:
        if not 1 <= self.upscale_factor <= self.crop:
            raise CotenantError(
                f"--upscale_factor {self.upscale_factor} does not fit a crop of {self.crop}.", "Give one from 1 on."
            )
        self.model = run.place(espcn(self.upscale_factor))
        self.optimizer = run.adam(self.model.parameters(), lr=self.lr)

    def batches(self, run: Run) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        small = self.crop // self.upscale_factor
        side = small * self.upscale_factor

        def pair(target_b1hw: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            reduced = F.interpolate(target_b1hw, (small, small), mode="bicubic", antialias=True)
            return reduced.clamp(0, 1), target_b1hw

        if self.data is None:
            pixels = MEAN + SPREAD * torch.randn(self.batch_size, 1, side, side)
            return run.resident(*pair(pixels.clamp(0, 1)))
        crops = Images(Paths(images_below(run.files(), run.remedy)), partial(luminance, side=side), run.remedy)
        # Crops are copied as bytes; the device makes floats and reductions of them.
        return (pair(pixels.float() / 255) for pixels in run.loader(crops))

    def step(self, run: Run, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        reduced, target = batch
        loss = F.mse_loss(self.model(reduced), target)
        run.update(loss, self.optimizer)
        return loss


if __name__ == "__main__":
    main(SuperResolution)
