"""A language model that remembers, on WikiText-103's vocabulary: Transformer-XL (Dai et al. 2019).

python main.py --batch-size 8 --layers 16 --width 512 --heads 8 --inner 2048 --target 192 --memory 192 [--data FOLDER]
"""

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import torch
from model import Memory, TransformerXL

from cotenant.bench import Distributed, MissingDataError, Run, flag, main
from cotenant.bench.lamb import LAMB
from cotenant.bench.words import read_words
from cotenant.errors import CotenantError
from cotenant.layers.data import zipf

CLIP_NORM = 0.25


class LongMemory(Distributed):
    """One step = one update on the next words of every sequence; each layer's states are kept for the next."""

    item = "token"
    replicable = False  # Each row of a batch has a memory of its own.

    batch_size: int = 8
    words: int = flag(267_735, help="size of the vocabulary; in 16 bit the model's is a multiple of 8")
    layers: int = flag(16, help="layers (18 for the large model)")
    width: int = flag(512, help="units of every position (1024 for the large model)")
    heads: int = flag(8, help="heads of the attention (16 for the large model)")
    inner: int = flag(2048, help="units between the two products of a layer (4096 for the large model)")
    target: int = flag(192, help="words of a sequence that one step predicts (256 for the large model)")
    memory: int = flag(192, help="words before them whose states are kept (256 for the large model)")
    dropout: float = flag(0.1, help="share that is dropped (0.2 for the large model)")
    attention_dropout: float = flag(0.0, help="share of attention that is dropped (0.2 for the large model)")
    optim: Literal["lamb", "adam"] = flag("lamb", help="the optimizer (adam for the large model)")
    lr: float = flag(2.5e-4, help="learning rate")

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        if self.width % (2 * self.heads):
            raise CotenantError(f"--width {self.width} is no multiple of twice --heads {self.heads}.")

    def build(self, run: Run) -> None:
        # Tensor cores want rows of 16 bytes, which are 8 values of fp16 or bf16.
        self.model_words = self.words if self.asked_precision in ("fp32", "tf32") else -(-self.words // 8) * 8
        sizes = self.model_words, self.layers, self.width, self.heads, self.inner, self.target, self.memory
        self.model = self.distribute(run, TransformerXL(*sizes, self.dropout, self.attention_dropout))
        optimizer = LAMB if self.optim == "lamb" else run.adam
        self.optimizer = optimizer(self.model.parameters(), lr=self.lr)
        self.memories = run.place(Memory(self.layers, self.batch_size, self.memory, self.width))

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        """Return (batch, target + 1) words; the last of each row is only predicted."""
        if self.data is None:
            return run.resident(zipf(self.words, self.batch_size, self.target + 1))
        word_n = run.read(partial(read_words, words=self.words), "wiki.train.tokens")
        columns = len(word_n) // self.batch_size
        if columns <= self.target:
            raise MissingDataError(
                f"{run.files()} has {len(word_n)} words: too few for {self.batch_size} sequences of {self.target}.",
                "Make it again with ./download_datasets.sh, or give a smaller --batch-size.",
            )
        # The whole text lives on the device, a row for each sequence; a batch is a view of its next columns.
        text_bn = run.to_device(torch.from_numpy(word_n[: columns * self.batch_size].reshape(self.batch_size, columns)))
        starts = range(0, columns - self.target, self.target)
        first = len(starts) * run.world.rank // run.world.size  # Each rank begins at another place.
        places = itertools.cycle([*starts[first:], *starts[:first]])
        return (text_bn[:, start : start + self.target + 1] for start in places)

    def items(self, batch: torch.Tensor) -> int:
        return batch.size(0) * self.target

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        loss, next_lbmw = self.model(batch[:, :-1], self.memories.states_lbmw, batch[:, 1:])
        self.memories.keep(next_lbmw)
        run.update(loss, self.optimizer, clip_norm=CLIP_NORM)
        return loss

    def flops(self, batch: torch.Tensor) -> float:
        seen, width = self.memory + self.target, self.width
        by_word = 2 * width**2 + 2 * width * self.inner + (3 * seen + 1) * width
        layers = self.layers * (self.target * by_word + 2 * seen * width**2)
        words = self.target * width * self.model_words
        # All rows share the distances, and the sinusoids that they are computed from need no gradient.
        distances = self.layers * (seen + 1) * width**2
        return 2 * (3 * len(batch) * (layers + words) + 2 * distances)


if __name__ == "__main__":
    main(LongMemory)
