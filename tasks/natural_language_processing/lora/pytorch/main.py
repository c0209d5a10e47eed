"""Low-rank adaptation (Hu et al. 2022, "LoRA") of a decoder of Llama 3.1's shape, 8 billion weights that stay frozen.

python main.py --batch-size 8 --precision bf16
"""

import itertools
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional as F

from cotenant.bench import Benchmark, Run, flag
from cotenant.blocks.data import zipf
from cotenant.blocks.decoder import Decoder, Size
from cotenant.blocks.layers import initialised

CLIP_NORM = 1.0
THETA = 500_000.0
SCALE = 2.0
"""What is added counts twice: alpha is twice the rank."""


class Adapter(nn.Module):
    """For each of some ranges of a linear layer's outputs, a product of two thin matrices that is added to it."""

    def __init__(self, width: int, sizes: list[int], adapted: list[bool], rank: int) -> None:
        super().__init__()
        self.sizes, self.adapted = sizes, adapted
        self.down = nn.Linear(width, rank * sum(adapted), bias=False)
        self.ups = nn.ModuleList(
            nn.Linear(rank, size, bias=False) for size, is_adapted in zip(sizes, adapted, strict=True) if is_adapted
        )
        for up in self.ups:
            nn.init.zeros_(up.weight)  # At first nothing is added.

    def forward(self, x, y):
        """Return what a layer made of x, and what is learned to be added."""
        parts = list(y.split(self.sizes, dim=-1))
        lows = self.down(x).chunk(len(self.ups), dim=-1)
        for index, up, low in zip(itertools.compress(range(len(parts)), self.adapted), self.ups, lows, strict=True):
            parts[index] = parts[index] + SCALE * up(low)
        return torch.cat(parts, dim=-1)


class Adapted(nn.Module):
    """A decoder whose linear layers are frozen, and the adapters that hang on them, which alone are its parameters."""

    def __init__(self, decoder: Decoder, rank: int) -> None:
        super().__init__()
        self.adapters = nn.ModuleList()
        for layer in decoder.layers:
            attention, gated = layer.attention, layer.feed_forward
            inner = gated.out.in_features
            for linear, sizes, adapted in (
                (attention.qkv, attention.sizes, [True, False, True]),
                (attention.out, [attention.out.out_features], [True]),
                (gated.gate_up, [inner, inner], [True, True]),
                (gated.out, [gated.out.out_features], [True]),
            ):
                self._hang(Adapter(linear.in_features, sizes, adapted, rank), linear)
        self.frozen = (decoder,)  # In a tuple: it is none of its modules.

    def _hang(self, adapter: Adapter, linear: nn.Linear) -> None:
        self.adapters.append(adapter)
        linear.register_forward_hook(lambda _, given, made: adapter(given[0], made))

    def forward(self, tokens_bl):
        """Return the logits (b, l, v) of the token after each one."""
        return self.frozen[0](tokens_bl)


class LoRA(Benchmark):
    """One step = one AdamW update of the adapters on whole sequences, through all layers and back."""

    item = "token"

    batch_size: int = flag(8, "--batch-size", "-b", help="sequences in one batch")
    context: int = flag(512, help="tokens of a sequence, none of them padding")
    rank: int = flag(8, help="rank of an adapter")
    layers: int = flag(32, help="layers")
    width: int = flag(4096, help="units of a token between layers")
    heads: int = flag(32, help="heads of queries")
    kv_heads: int = flag(8, help="heads of keys and values, each for as many of queries")
    inner: int = flag(14_336, help="units of a feed-forward layer")
    words: int = flag(128_256, help="tokens that there are")
    lr: float = flag(3e-4, help="learning rate")

    def build(self, run: Run) -> None:
        self.size = Size(
            self.layers, self.width, self.heads, self.kv_heads, self.inner, self.words, self.context, THETA
        )
        self.decoder = run.freeze(lambda: initialised(Decoder(self.size)))
        self.model = run.place(Adapted(self.decoder, self.rank))
        self.optimizer = run.adamw(self.model.parameters(), lr=self.lr, weight_decay=0.0)

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        """Return (sequences, context + 1) tokens: each but the last is input, each but the first is predicted."""
        return run.resident(zipf(self.words, self.batch_size, self.context + 1))

    def items(self, batch: torch.Tensor) -> int:
        return self.batch_size * self.context

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        logits_blv = self.model(batch[:, :-1])
        loss = F.cross_entropy(logits_blv.float().flatten(0, 1), batch[:, 1:].flatten())
        run.update(loss, self.optimizer, clip_norm=CLIP_NORM)
        return loss

    def flops(self, batch: torch.Tensor) -> float:
        w, kv, size = self.width, self.kv_heads * self.size.head, self.size
        frozen = self.layers * size.weights_of_layer + self.words * w
        # q, v, o, gate, up, down: what goes into each, and what comes out.
        thin = self.layers * self.rank * (5 * w + self.inner + 3 * w + kv + 2 * self.inner)
        attention = 12 * self.layers * w * self.context
        # Frozen weights have no gradients: forward, and by the input, which the first layer's first product needs not.
        unneeded = 2 * w * (w + 2 * kv) + 2 * w * 2 * self.rank
        return self.items(batch) * (4 * frozen + 6 * thin - unneeded + attention)


if __name__ == "__main__":
    LoRA.main()
