"""Auto-encoding variational Bayes on MNIST digits (Kingma and Welling 2013): a small dense network.

python main.py --batch-size 128 --repeat 50 --number 30 [--data workspace/data/mnist]
"""

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from cotenant.bench import Benchmark, Run, flag, main
from cotenant.datasets.sets.mnist import read_idx

SIDE = 28
PIXELS = SIDE * SIDE


class VAE(nn.Module):
    """784-400-(20, 20)-400-784."""

    def __init__(self, hidden: int, latent: int) -> None:
        super().__init__()
        self.encoder = nn.Linear(PIXELS, hidden)
        self.mean = nn.Linear(hidden, latent)
        self.log_variance = nn.Linear(hidden, latent)
        self.hidden = nn.Linear(latent, hidden)
        self.decoder = nn.Linear(hidden, PIXELS)

    def forward(self, x_bp: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the logits of the reconstruction, and mean and log-variance of the code."""
        h_bh = F.relu(self.encoder(x_bp))
        mean_bz, log_variance_bz = self.mean(h_bh), self.log_variance(h_bh)
        z_bz = mean_bz + torch.randn_like(mean_bz) * (0.5 * log_variance_bz).exp()
        return self.decoder(F.relu(self.hidden(z_bz))), mean_bz, log_variance_bz


class AutoEncoder(Benchmark):
    """One step = one Adam update on a batch of 28 x 28 digits."""

    item = "image"

    batch_size: int = 128
    lr: float = flag(1e-3, help="learning rate")
    hidden: int = flag(400, help="units of the encoder and of the decoder")
    latent: int = flag(20, help="dimensions of the code")

    def build(self, run: Run) -> None:
        self.model = run.place(VAE(self.hidden, self.latent))
        self.optimizer = run.adam(self.model.parameters(), lr=self.lr)

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        if self.data is None:
            # Digits are mostly background: a fifth of the pixels is bright.
            return run.resident((torch.rand(self.batch_size, PIXELS) - 0.8).clamp(min=0) * 5)
        pixels = run.read(read_digits, "train-images-idx3-ubyte")
        return (image.float() / 255 for (image,) in run.loader(torch.utils.data.TensorDataset(pixels)))

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        logits, mean, log_variance = self.model(batch)
        reconstruction = F.binary_cross_entropy_with_logits(logits, batch, reduction="sum")
        divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()
        loss = reconstruction + divergence
        run.update(loss, self.optimizer)
        return loss

    def flops(self, batch: torch.Tensor) -> float:
        first, others = PIXELS * self.hidden, (3 * self.latent + PIXELS) * self.hidden
        # Forward, and backward by weights and by input; the first layer needs no gradient of its input.
        return 2 * len(batch) * (2 * first + 3 * others)


def read_digits(path: Path) -> torch.Tensor:
    """Return the digits of MNIST's file as bytes, (digits, 784)."""
    digits = read_idx(path)
    if digits.shape[1:] != (SIDE, SIDE):
        raise ValueError(f"it holds bytes of the shape {digits.shape}, not digits of {SIDE} x {SIDE}")
    return torch.from_numpy(digits).view(-1, PIXELS)


if __name__ == "__main__":
    main(AutoEncoder)
