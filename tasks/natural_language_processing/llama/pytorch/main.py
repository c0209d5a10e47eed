"""A decoder of Llama 3.2's shape (Grattafiori et al. 2024, "The Llama 3 herd of models") learns the next token.

python main.py --batch-size 4 --precision bf16
"""

from collections.abc import Iterator

import torch
from torch.nn import functional as F

from cotenant.bench import Benchmark, Run, flag
from cotenant.blocks.data import zipf
from cotenant.blocks.decoder import Decoder, Size
from cotenant.blocks.layers import decayed, initialised

CLIP_NORM = 1.0
THETA = 500_000.0


class Llama(Benchmark):
    """One step = one AdamW update on whole sequences; every one of their tokens predicts the next one."""

    item = "token"

    batch_size: int = flag(4, "--batch-size", "-b", help="sequences in one batch")
    context: int = flag(2048, help="tokens of a sequence")
    layers: int = flag(16, help="layers")
    width: int = flag(2048, help="units of a token between layers")
    heads: int = flag(32, help="heads of queries")
    kv_heads: int = flag(8, help="heads of keys and values, each for as many of queries")
    inner: int = flag(8192, help="units of a feed-forward layer")
    words: int = flag(128_256, help="rows of the table of tokens, which is the output's, too")
    lr: float = flag(3e-4, help="learning rate")

    def build(self, run: Run) -> None:
        self.size = Size(
            self.layers, self.width, self.heads, self.kv_heads, self.inner, self.words, self.context, THETA, tied=True
        )
        with run.device:
            model = initialised(Decoder(self.size))
        self.model = run.place(model)
        self.optimizer = run.adamw(decayed(self.model, 0.1), lr=self.lr, betas=(0.9, 0.95))

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        """Return (sequences, context + 1) tokens: each but the last is input, each but the first is predicted."""
        return run.resident(zipf(self.words, self.batch_size, self.context + 1))

    def items(self, batch: torch.Tensor) -> int:
        return self.batch_size * self.context

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        logits_blv = self.model(batch[:, :-1])
        loss = F.cross_entropy(logits_blv.flatten(0, 1), batch[:, 1:].flatten())
        run.update(loss, self.optimizer, clip_norm=CLIP_NORM)
        return loss

    def flops(self, batch: torch.Tensor) -> float:
        weights = self.layers * self.size.weights_of_layer + self.words * self.width
        return self.items(batch) * (6 * weights + 12 * self.layers * self.width * self.context)


if __name__ == "__main__":
    Llama.main()
