"""Fast neural style (Johnson, Alahi and Fei-Fei 2016): a network learns to repaint pictures in the style of one.

python main.py --batch-size 128 --repeat 25 --number 5 [--data workspace/data/ImageNet/train --workers 8]
"""

from collections.abc import Iterator
from functools import partial

import torch
from model import LossNetwork, gram, transformer_net
from torch.nn import functional as F

from cotenant.bench import Benchmark, Run, flag, main
from cotenant.bench.images import Images, class_folders, middle_square
from cotenant.errors import CotenantError

CONTENT = 2  # The content is compared at the end of the loss network's second slice, relu2_2.
MEAN, SPREAD = 0.45, 0.27  # Of a photograph's pixels.


class FastStyle(Benchmark):
    """One step = one Adam update of the transformer network by the content and style of its pictures."""

    item = "image"
    same_shapes = True

    batch_size: int = 128
    repeat: int = 25
    lr: float = flag(1e-3, help="learning rate")
    image_size: int = flag(64, help="pixels of a picture's side, a multiple of 4")
    # Small weights: Adam depends on their ratio only, and larger gradients overflow in fp16 from the first step on.
    content_weight: float = flag(1e-4, help="of the content loss")
    style_weight: float = flag(10.0, help="of the style loss")

    def build(self, run: Run) -> None:
        if self.image_size < 8 or self.image_size % 4:
            raise CotenantError(f"--image-size {self.image_size} cannot be halved twice.", "Give a multiple of 4.")
        self.model = run.place(transformer_net())
        self.optimizer = run.adam(self.model.parameters(), lr=self.lr)
        judge = LossNetwork()
        random = torch.Generator().manual_seed(self.seed)  # The same in all ranks, which learn one style.
        strokes = torch.rand(1, 3, self.image_size // 4, self.image_size // 4, generator=random)
        with torch.no_grad():
            style = F.interpolate(strokes, scale_factor=4, mode="bicubic")
            self.style = [run.to_device(gram(features)) for features in judge(style)]
        self.judge = run.place(judge)

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        if self.data is None:
            pixels = MEAN + SPREAD * torch.randn(self.batch_size, 3, self.image_size, self.image_size)
            return run.resident(pixels.clamp(0, 1))
        found = class_folders(run.files(), run.remedy)
        pictures = Images(found.paths, partial(middle_square, size=self.image_size), run.remedy)
        # Pixels are copied as bytes and become floats on the device.
        return (pixels.float() / 255 for pixels in run.loader(pictures))

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        painted = self.judge(self.model(batch))
        with torch.no_grad():
            # As far as relu4_3, as in the usual script, though only relu2_2 is compared.
            wanted = self.judge(batch)[CONTENT - 1]
        content = F.mse_loss(painted[CONTENT - 1], wanted)
        style = sum(
            (gram(features) - target).square().mean() for features, target in zip(painted, self.style, strict=True)
        )
        loss = self.content_weight * content + self.style_weight * style
        run.update(loss, self.optimizer)
        return loss


if __name__ == "__main__":
    main(FastStyle)
