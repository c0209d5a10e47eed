"""A diffusion Transformer on ImageNet's latents (Peebles and Xie 2023): DiT-XL/2 at 256 x 256 pixels.

python main.py --batch-size 64 --precision bf16
"""

from collections.abc import Iterator

import torch
from diffusion import Diffusion
from model import CHANNELS, CLASSES, WAVES, DiT
from torch import nn

from cotenant.bench import Distributed, Run, flag, main
from cotenant.bench.parallel import local
from cotenant.errors import CotenantError

UNCLASSED = 0.1
"""The share of images that are trained without their class, so that generating may omit the class."""
EMA = 0.9999


class DiffusionTransformer(Distributed):
    """One step = one AdamW update on noisy latents of a batch, and the running average of the weights."""

    item = "image"

    batch_size: int = 64
    side: int = flag(32, help="latent pixels of an image's side: an eighth of the image's own")
    patch: int = flag(2, help="latent pixels of a patch's side")
    layers: int = flag(28, help="layers")
    width: int = flag(1152, help="units of a patch between layers")
    heads: int = flag(16, help="heads of each layer's attention")
    lr: float = flag(1e-4, help="learning rate")

    def build(self, run: Run) -> None:
        if self.side % self.patch or self.width % 4:
            raise CotenantError(
                f"--side {self.side} is cut into patches of --patch {self.patch}, and --width {self.width} into four.",
                "Give a side that is a multiple of the patch, and a width that is a multiple of 4.",
            )
        with run.device:
            model = DiT(self.layers, self.width, self.heads, self.patch, self.side)
        self.model = self.distribute(run, model)
        self.trained = [local(weight).detach() for weight in self.model.parameters()]
        average = nn.ParameterList(nn.Parameter(part.detach().clone(), requires_grad=False) for part in self.trained)
        run.place(average)
        self.averaged = list(average)
        self.diffusion = run.place(Diffusion())
        self.optimizer = run.adamw(self.model.parameters(), lr=self.lr, weight_decay=0.0)

    def batches(self, run: Run) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Return latents (b, 4, side, side) and classes (b,)."""
        latents = torch.randn(self.batch_size, CHANNELS, self.side, self.side)
        return run.resident(latents, torch.randint(CLASSES, (self.batch_size,)))

    def step(self, run: Run, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        latents_bchw, class_b = batch
        unclassed_b = torch.rand(class_b.shape, device=class_b.device) < UNCLASSED
        loss = self.diffusion(self.model, latents_bchw, class_b.masked_fill(unclassed_b, CLASSES))
        run.update(loss, self.optimizer)
        torch._foreach_lerp_(self.averaged, self.trained, 1 - EMA)
        return loss

    def flops(self, batch: tuple[torch.Tensor, torch.Tensor]) -> float:
        patches, w, latents = (self.side // self.patch) ** 2, self.width, CHANNELS * self.patch**2
        # Forward, and backward by weights and by input; the first layers need no gradient of their input.
        of_patch = 6 * (12 * self.layers * w**2 + 2 * latents * w) + 4 * latents * w
        of_image = 6 * (6 * self.layers + 3) * w**2 + 4 * WAVES * w
        attention = 12 * self.layers * w * patches**2  # 4 for scores and values, times 3 with the backward
        return self.batch_size * (patches * of_patch + of_image + attention)


if __name__ == "__main__":
    main(DiffusionTransformer)
