"""Shared parts of tasks of language models: their sizes as flags, and the step that learns the next token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from cotenant.bench import Benchmark, Distributed, Run, flag
from cotenant.layers.data import zipf
from cotenant.layers.decoder import DecoderSize
from cotenant.layers.layers import decayed

CLIP_NORM = 1.0


class LanguageModel(Benchmark):
    """A Transformer over sequences of `context` tokens; a task gives the sizes their defaults."""

    batch_size: int = flag(1, "--batch-size", "-b", help="sequences in one batch")
    context: int = flag(1024, help="tokens of a sequence, none of them padding")
    layers: int = flag(12, help="layers")
    width: int = flag(768, help="units of a token between layers")
    heads: int = flag(12, help="heads of each layer's attention")
    words: int = flag(50_304, help="rows of the table of tokens")


class DecoderModel(LanguageModel):
    """A decoder of Llama's form."""

    theta: ClassVar[float] = 10_000.0
    tied: ClassVar[bool] = False

    kv_heads: int = flag(32, help="heads of keys and values, each for as many of queries")
    inner: int = flag(11_008, help="units of a feed-forward layer")

    @property
    def size(self) -> DecoderSize:
        return DecoderSize(
            self.layers,
            self.width,
            self.heads,
            self.kv_heads,
            self.inner,
            self.words,
            self.context,
            self.theta,
            self.tied,
        )


class NextToken(Distributed, LanguageModel):
    """One step = one AdamW update on whole sequences; every one of their tokens predicts the next one."""

    lr: float = flag(3e-4, help="learning rate")

    def train(self, run: Run, model: nn.Module) -> None:
        """Place the model; the matrices among its weights decay."""
        self.model = self.distribute(run, model)
        self.optimizer = run.adamw(decayed(self.model, 0.1), lr=self.lr, betas=(0.9, 0.95))

    def batches(self, run: Run) -> Iterator[Tensor]:
        """Return (sequences, context + 1) tokens: each but the last is input, each but the first is predicted."""
        return run.resident(zipf(self.words, self.batch_size, self.context + 1))

    def items(self, batch: Tensor) -> int:
        return self.batch_size * self.context

    def loss(self, batch: Tensor) -> Tensor:
        logits_blv = self.model(batch[:, :-1])
        return F.cross_entropy(logits_blv.flatten(0, 1), batch[:, 1:].flatten())

    def step(self, run: Run, batch: Tensor) -> Tensor:
        loss = self.loss(batch)
        run.update(loss, self.optimizer, clip_norm=CLIP_NORM)
        return loss

    def dense_flops(self, batch: Tensor, weights: float) -> float:
        """Return the operations of a step whose tokens go through `weights` weights, all of them trained."""
        attention = 12 * self.layers * self.width * self.context  # 4 for scores and values, times 3 with the backward
        return self.items(batch) * (6 * weights + attention)
