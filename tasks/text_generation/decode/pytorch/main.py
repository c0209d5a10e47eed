"""Writing text with a decoder of Llama 2's shape (Touvron et al. 2023): one token a step. Nothing is trained.

python main.py --batch-size 1 --precision bf16
"""

from collections.abc import Iterator

import torch
from torch import nn

from cotenant.bench import Run, flag, main
from cotenant.layers.data import zipf
from cotenant.layers.decoder import Decoder
from cotenant.layers.language import DecoderModel
from cotenant.layers.layers import initialised


class Text(nn.Module):
    """The text written so far: keys and values of all layers, the last token of each sequence, and its place."""

    def __init__(self, model: Decoder, prompt_bl: torch.Tensor) -> None:
        super().__init__()
        self.caches = model.caches(len(prompt_bl))
        self.register_buffer("last_b1", prompt_bl[:, -1:].clone(), persistent=False)
        self.register_buffer("at_1", prompt_bl.new_tensor([prompt_bl.size(1) - 1]), persistent=False)


class Decode(DecoderModel):
    """One step = the next token of every sequence: the likeliest one, which the next step reads."""

    item = "token"
    serves = True

    batch_size = 1
    context: int = flag(
        256, help="tokens of a sequence that are kept and looked at; the first half is the prompt", least=2
    )
    layers, width, heads, kv_heads, inner = 32, 4096, 32, 32, 11_008
    words = 32_000

    def build(self, run: Run) -> None:
        self.model = run.freeze(lambda: initialised(Decoder(self.size)))
        self.prompt = max(1, self.context // 2)
        prompt_bl = run.to_device(zipf(self.words, self.batch_size, self.prompt))
        self.text = run.place(Text(self.model, prompt_bl))
        with torch.inference_mode():
            self.model(prompt_bl, self.text.caches)

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        """Return the last token of every sequence, (sequences, 1), which a step replaces by the next one."""
        return run.resident(self.text.last_b1)

    @torch.inference_mode()
    def step(self, run: Run, batch: torch.Tensor) -> None:
        at_1 = self.text.at_1
        logits_b1v = self.model(batch, self.text.caches, at_1)
        batch.copy_(logits_b1v.argmax(dim=-1))
        # At the end of the context a new text begins after the same prompt, so that all steps take equally long.
        at_1.copy_((at_1 + 1 - self.prompt) % (self.context - self.prompt) + self.prompt)

    def flops(self, batch: torch.Tensor) -> float:
        weights = self.layers * self.size.weights_of_layer + self.words * self.width
        return self.batch_size * (2 * weights + 4 * self.layers * self.width * self.context)


if __name__ == "__main__":
    main(Decode)
