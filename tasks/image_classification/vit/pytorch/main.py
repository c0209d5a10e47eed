"""A vision Transformer (Dosovitskiy et al. 2021, "An image is worth 16x16 words"): ViT-B/16 on ImageNet's shape.

python main.py --batch-size 256 --precision bf16
"""

from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional as F

from cotenant.bench import Distributed, Run, flag, main
from cotenant.errors import CotenantError
from cotenant.layers.layers import PreNormLayer, decayed
from cotenant.layers.patches import patches

CLASSES = 1000
EPS = 1e-6


class ViT(nn.Module):
    """A class token and patches, pre-norm layers, and the class from that token's output."""

    def __init__(self, size: int, patch: int, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.patch = patch
        self.into = nn.Linear(3 * patch**2, width)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.empty(1, (size // patch) ** 2 + 1, width).normal_(std=0.02))
        self.layers = nn.Sequential(*(PreNormLayer(width, heads, eps=EPS) for _ in range(layers)))
        self.norm = nn.LayerNorm(width, eps=EPS)
        self.out = nn.Linear(width, CLASSES)
        nn.init.zeros_(self.out.weight)

    def forward(self, x_bchw):
        """Return the classes' logits (b, 1000)."""
        x_blw = self.into(patches(x_bchw, self.patch))
        x_blw = torch.cat((self.token.expand(len(x_blw), -1, -1), x_blw), dim=1) + self.places
        return self.out(self.norm(self.layers(x_blw)[:, 0]))


class VisionTransformer(Distributed):
    """One step = one AdamW update on a batch of images."""

    item = "image"

    batch_size: int = 256
    size: int = flag(224, help="pixels of an image's side")
    patch: int = flag(16, help="pixels of a patch's side")
    layers: int = flag(12, help="layers")
    width: int = flag(768, help="units of a patch between layers")
    heads: int = flag(12, help="heads of each layer's attention")
    lr: float = flag(1e-3, help="learning rate")

    def build(self, run: Run) -> None:
        if self.size % self.patch:
            raise CotenantError(f"--size {self.size} is no multiple of --patch {self.patch}.")
        self.model = self.distribute(run, ViT(self.size, self.patch, self.layers, self.width, self.heads))
        self.optimizer = run.adamw(decayed(self.model, 0.3), lr=self.lr)

    def batches(self, run: Run) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        images = torch.randn(self.batch_size, 3, self.size, self.size)
        return run.resident(images, torch.randint(CLASSES, (self.batch_size,)))

    def step(self, run: Run, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        images, labels = batch
        loss = F.cross_entropy(self.model(images), labels)
        run.update(loss, self.optimizer, clip_norm=1.0)
        return loss

    def flops(self, batch: tuple[torch.Tensor, torch.Tensor]) -> float:
        squares, w = (self.size // self.patch) ** 2, self.width
        tokens = squares + 1
        # Forward, and backward by weights and by input; the first layer needs no gradient of its input.
        layers = tokens * (6 * 12 * w**2 + 12 * w * tokens) * self.layers
        return self.batch_size * (squares * 4 * 3 * self.patch**2 * w + layers + 6 * CLASSES * w)


if __name__ == "__main__":
    main(VisionTransformer)
