"""A decoder of Llama 3.2's shape (Grattafiori et al. 2024, "The Llama 3 herd of models") learns the next token.

python main.py --batch-size 4 --precision bf16
"""

import torch

from cotenant.bench import Run, main
from cotenant.layers.decoder import Decoder
from cotenant.layers.language import DecoderModel, NextToken
from cotenant.layers.layers import initialised


class Llama(DecoderModel, NextToken):
    """One step = one AdamW update on whole sequences; every one of their tokens predicts the next one."""

    item = "token"
    theta = 500_000.0
    tied = True

    batch_size = 4
    context = 2048
    layers, width, heads, kv_heads, inner = 16, 2048, 32, 8, 8192
    words = 128_256

    def build(self, run: Run) -> None:
        with run.device:
            model = initialised(Decoder(self.size))
        self.train(run, model)

    def flops(self, batch: torch.Tensor) -> float:
        return self.dense_flops(batch, self.layers * self.size.weights_of_layer + self.words * self.width)


if __name__ == "__main__":
    main(Llama)
