"""Reading prompts with a decoder of Llama 2's shape (Touvron et al. 2023): all their tokens in a step, untrained.

python main.py --batch-size 1 --context 2048 --precision bf16
"""

from collections.abc import Iterator

import torch

from cotenant.bench import Run, main
from cotenant.layers.data import zipf
from cotenant.layers.decoder import Decoder
from cotenant.layers.language import DecoderModel
from cotenant.layers.layers import initialised


class Prefill(DecoderModel):
    """One step = the prompts' keys and values into the cache, and the first token of each answer."""

    item = "token"
    serves = True

    batch_size = 1
    context = 2048
    layers, width, heads, kv_heads, inner = 32, 4096, 32, 32, 11_008
    words = 32_000

    def build(self, run: Run) -> None:
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
    main(Prefill)
