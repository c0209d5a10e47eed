"""Low-rank adaptation (Hu et al. 2022, "LoRA") of a decoder of Llama 3.1's shape, 8 billion weights that stay frozen.

python main.py --batch-size 8 --precision bf16
"""

import itertools

import torch
from torch import nn

from cotenant.bench import Run, flag, main
from cotenant.layers.decoder import Decoder
from cotenant.layers.language import DecoderModel, NextToken
from cotenant.layers.layers import initialised

SCALE = 2.0
"""The factor of the added part: alpha is twice the rank."""


class Adapter(nn.Module):
    """Adds a product of two thin matrices to each adapted range of a linear layer's outputs."""

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
        """Return a layer's output for x, with the learned addition."""
        parts = list(y.split(self.sizes, dim=-1))
        lows = self.down(x).chunk(len(self.ups), dim=-1)
        for index, up, low in zip(itertools.compress(range(len(parts)), self.adapted), self.ups, lows, strict=True):
            parts[index] = parts[index] + SCALE * up(low)
        return torch.cat(parts, dim=-1)


class Adapted(nn.Module):
    """A frozen decoder and the adapters of its linear layers; only the adapters are parameters of this module."""

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
        self.frozen = (decoder,)  # In a tuple, so that it is no submodule.

    def _hang(self, adapter: Adapter, linear: nn.Linear) -> None:
        self.adapters.append(adapter)
        linear.register_forward_hook(lambda _, given, made: adapter(given[0], made))

    def forward(self, tokens_bl):
        """Return the logits (b, l, v) of the token after each one."""
        return self.frozen[0](tokens_bl)


class LoRA(DecoderModel, NextToken):
    """One step = one AdamW update of the adapters on whole sequences, through all layers and back."""

    item = "token"
    replicable = False  # The frozen weights are no part of the model.
    theta = 500_000.0

    batch_size = 8
    context = 512
    layers, width, heads, kv_heads, inner = 32, 4096, 32, 8, 14_336
    words = 128_256
    rank: int = flag(8, help="rank of an adapter")

    def build(self, run: Run) -> None:
        decoder = run.freeze(lambda: initialised(Decoder(self.size)))
        self.model = self.distribute(run, Adapted(decoder, self.rank))
        self.optimizer = run.adamw(self.model.parameters(), lr=self.lr, weight_decay=0.0)

    def flops(self, batch: torch.Tensor) -> float:
        w, kv, size = self.width, self.kv_heads * self.size.head, self.size
        frozen = self.layers * size.weights_of_layer + self.words * w
        # The inputs of the adapters of q, v, o, gate, up and down, then their outputs.
        thin = self.layers * self.rank * (5 * w + self.inner + 3 * w + kv + 2 * self.inner)
        # Frozen weights have no gradients, and the first layer's first product needs no gradient of its input.
        unneeded = 2 * frozen + 2 * w * (w + 2 * kv) + 2 * w * 2 * self.rank
        return self.dense_flops(batch, frozen + thin) - self.items(batch) * unneeded


if __name__ == "__main__":
    main(LoRA)
