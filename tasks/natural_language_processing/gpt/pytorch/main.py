"""GPT-2 (Radford et al. 2019, "Language models are unsupervised multitask learners"), learns the next token.

python main.py --batch-size 12 --precision bf16
"""

import math
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional as F

from cotenant.bench import Benchmark, Run, flag
from cotenant.blocks.data import zipf
from cotenant.blocks.layers import PreNormLayer, decayed, initialised

CLIP_NORM = 1.0
TOKENS = 50_257


class GPT(nn.Module):
    """Tokens and learned positions, pre-norm layers that look back only, and the table of tokens once more."""

    def __init__(self, words: int, context: int, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(context, width)
        self.layers = nn.Sequential(
            *(PreNormLayer(width, heads, causal=True, approximate="tanh") for _ in range(layers))
        )
        self.norm = nn.LayerNorm(width)
        initialised(self)
        for layer in self.layers:
            # What layers add to one another grows with their number: their last weights are the smaller for it.
            for last in (layer.attention.out, layer.feed_forward.out):
                nn.init.normal_(last.weight, std=0.02 / math.sqrt(2 * layers))

    def forward(self, tokens_bl):
        """Return the logits (b, l, v) of the token after each one."""
        x_blw = self.words(tokens_bl) + self.positions.weight[: tokens_bl.size(1)]
        return F.linear(self.norm(self.layers(x_blw)), self.words.weight)


class LanguageModel(Benchmark):
    """One step = one AdamW update on whole sequences; every one of their tokens predicts the next one."""

    item = "token"

    batch_size: int = flag(12, "--batch-size", "-b", help="sequences in one batch")
    context: int = flag(1024, help="tokens of a sequence")
    layers: int = flag(12, help="layers")
    width: int = flag(768, help="units of a token between layers")
    heads: int = flag(12, help="heads of each layer's attention")
    words: int = flag(50_304, help="rows of the table of tokens; 50,257 padded to a multiple of 64")
    lr: float = flag(6e-4, help="learning rate")

    def build(self, run: Run) -> None:
        self.model = run.place(GPT(self.words, self.context, self.layers, self.width, self.heads))
        self.optimizer = run.adamw(decayed(self.model, 0.1), lr=self.lr, betas=(0.9, 0.95))

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        """Return (sequences, context + 1) tokens: each but the last is input, each but the first is predicted."""
        return run.resident(zipf(min(self.words, TOKENS), self.batch_size, self.context + 1))

    def items(self, batch: torch.Tensor) -> int:
        return self.batch_size * self.context

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        logits_blv = self.model(batch[:, :-1])
        loss = F.cross_entropy(logits_blv.flatten(0, 1), batch[:, 1:].flatten())
        run.update(loss, self.optimizer, clip_norm=CLIP_NORM)
        return loss

    def flops(self, batch: torch.Tensor) -> float:
        weights = 12 * self.layers * self.width**2 + self.words * self.width
        attention = 12 * self.layers * self.width * self.context  # 4 for scores and values, times 3 with the backward
        return self.items(batch) * (6 * weights + attention)


if __name__ == "__main__":
    LanguageModel.main()
