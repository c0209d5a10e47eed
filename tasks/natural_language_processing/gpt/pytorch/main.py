"""GPT-2 (Radford et al. 2019, "Language models are unsupervised multitask learners"), learns the next token.

python main.py --batch-size 12 --precision bf16
"""

import math
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional as F

from cotenant.bench import Run, main
from cotenant.layers.data import zipf
from cotenant.layers.language import NextToken
from cotenant.layers.layers import PreNormLayer, initialised

TOKENS = 50_257


class GPT(nn.Module):
    """Tokens and learned positions, pre-norm layers with a causal mask, and the token embedding again as output."""

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
            # The sum of all layers' outputs grows with their number, so their last weights begin smaller.
            for last in (layer.attention.out, layer.feed_forward.out):
                nn.init.normal_(last.weight, std=0.02 / math.sqrt(2 * layers))

    def forward(self, tokens_bl):
        """Return the logits (b, l, v) of the token after each one."""
        x_blw = self.words(tokens_bl) + self.positions.weight[: tokens_bl.size(1)]
        return F.linear(self.norm(self.layers(x_blw)), self.words.weight)


class GPT2(NextToken):
    """One step = one AdamW update on whole sequences; every one of their tokens predicts the next one."""

    item = "token"

    batch_size = 12
    lr = 6e-4

    def build(self, run: Run) -> None:
        self.train(run, GPT(self.words, self.context, self.layers, self.width, self.heads))

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        # The table's last rows are padding: no token has them.
        return run.resident(zipf(min(self.words, TOKENS), self.batch_size, self.context + 1))

    def flops(self, batch: torch.Tensor) -> float:
        return self.dense_flops(batch, 12 * self.layers * self.width**2 + self.words * self.width)


if __name__ == "__main__":
    main(GPT2)
