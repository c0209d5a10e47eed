"""Reading prompts with a decoder of Llama 2's shape (Touvron et al. 2023): all their tokens in a step, untrained.

python main.py --batch-size 1 --context 2048 --precision bf16
"""

from collections.abc import Iterator

import torch

from cotenant.bench import Benchmark, Run, flag
from cotenant.blocks.data import zipf
from cotenant.blocks.decoder import Decoder, Size
from cotenant.blocks.layers import initialised


class Prefill(Benchmark):
    """One step = the prompts' keys and values into the cache, and the first token of each answer."""

    item = "token"
    serves = True

    batch_size: int = flag(1, "--batch-size", "-b", help="prompts that are read side by side")
    context: int = flag(2048, help="tokens of a prompt")
    layers: int = flag(32, help="layers")
    width: int = flag(4096, help="units of a token between layers")
    heads: int = flag(32, help="heads of queries")
    kv_heads: int = flag(32, help="heads of keys and values, each for as many of queries")
    inner: int = flag(11_008, help="units of a feed-forward layer")
    words: int = flag(32_000, help="tokens that there are")

    def build(self, run: Run) -> None:
        self.size = Size(self.layers, self.width, self.heads, self.kv_heads, self.inner, self.words, self.context)
        self.model = run.freeze(lambda: initialised(Decoder(self.size)))
        self.caches = run.place(self.model.caches(self.batch_size))
        self.first_b1 = run.to_device(torch.zeros(self.batch_size, 1, dtype=torch.int64))

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        """Return (prompts, context) tokens."""
        return run.resident(zipf(self.words, self.batch_size, self.context))

    def items(self, batch: torch.Tensor) -> int:
        return self.batch_size * self.context

    @torch.inference_mode()
    def step(self, run: Run, batch: torch.Tensor) -> None:
        self.first_b1.copy_(self.model(batch, self.caches).argmax(dim=-1))

    def flops(self, batch: torch.Tensor) -> float:
        layers = self.layers * (2 * self.size.weights_of_layer + 4 * self.width * self.context)
        return self.items(batch) * layers + self.batch_size * 2 * self.words * self.width


if __name__ == "__main__":
    Prefill.main()
