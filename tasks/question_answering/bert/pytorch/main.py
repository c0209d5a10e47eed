"""Answers as spans of a text with BERT (Devlin et al. 2019), fine-tuned as on SQuAD 1.1: sequences of 384 word pieces.

python main.py --batch-size 16 --layers 12 --width 768 --heads 12 --inner 3072
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from model import POSITIONS, BertForSpans
from torch.nn import functional as F

from cotenant.bench import Distributed, Run, flag, main
from cotenant.errors import CotenantError
from cotenant.layers.layers import decayed

PAD, CLASSIFY, SEPARATE, FIRST_WORD = 0, 101, 102, 104
"""The padding word of shorter sequences, the special word in front, the one after question and context, and the
first number after all special words."""
MEAN_QUESTION, SPREAD_QUESTION, MEAN_ANSWER = 12, 4, 4
"""Word pieces of SQuAD's questions and answers (Rajpurkar et al. 2016)."""
CLIP_NORM, WEIGHT_DECAY = 1.0, 0.01

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class Bert(Distributed):
    """One step = one AdamW update: in the context of each question, find the first and the last word of the answer."""

    item = "sequence"
    padding = PAD

    batch_size: int = 16
    words: int = flag(30_522, help="size of the vocabulary, special words included", least=FIRST_WORD + 1)
    sequence: int = flag(384, help="word pieces of a question and its context, none of them padding", least=16)
    layers: int = flag(12, help="layers (24 for the large model)")
    width: int = flag(768, help="units of every position (1024 for the large model)")
    heads: int = flag(12, help="heads of the attention (16 for the large model)")
    inner: int = flag(3072, help="units between the two products of a layer (4096 for the large model)")
    dropout: float = flag(0.1, help="share that is dropped, of attention as well")
    lr: float = flag(3e-5, help="learning rate")

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        if self.sequence > POSITIONS:
            raise CotenantError(f"--sequence {self.sequence} is more than the model's {POSITIONS} positions.")

    def build(self, run: Run) -> None:
        model = BertForSpans(self.words, self.layers, self.width, self.heads, self.inner, self.dropout)
        self.model = self.distribute(run, model)
        self.optimizer = torch.optim.AdamW(decayed(self.model, WEIGHT_DECAY), lr=self.lr, fused=True)

    def batches(self, run: Run) -> Iterator[Batch]:
        rng = np.random.default_rng(run.seed)
        rows, length = self.batch_size, self.sequence
        # Zipf's law: the word of rank r is about 1/r as frequent as the first.
        word_bl = FIRST_WORD - 1 + ((self.words - FIRST_WORD + 1) ** rng.random((rows, length))).astype(np.int64)
        question_b = rng.normal(MEAN_QUESTION, SPREAD_QUESTION, rows).round().clip(1, length // 4).astype(np.int64)
        context_b = question_b + 2  # Its beginning: after the first special word, the question and a separator.
        word_bl[:, 0] = CLASSIFY
        word_bl[:, -1] = word_bl[np.arange(rows), context_b - 1] = SEPARATE
        kind_bl = (np.arange(length) >= context_b[:, None]).astype(np.int64)
        start_b = rng.integers(context_b, length - 1)
        end_b = np.minimum(start_b + rng.geometric(1 / MEAN_ANSWER, rows) - 1, length - 2)
        return run.resident(*map(torch.from_numpy, (word_bl, kind_bl, np.stack([start_b, end_b], axis=1))))

    def texts(self, batch: Batch) -> tuple[torch.Tensor]:
        return batch[:1]

    def step(self, run: Run, batch: Batch) -> torch.Tensor:
        word_bl, kind_bl, answer_b2 = batch
        # Over positions, for the beginning and for the end, and the mean of both.
        loss = F.cross_entropy(self.model(word_bl, kind_bl), answer_b2)
        run.update(loss, self.optimizer, clip_norm=CLIP_NORM)
        return loss

    def flops(self, batch: Batch) -> float:
        rows, length = batch[0].shape
        layer = 4 * self.width**2 + 2 * self.width * self.inner + 2 * length * self.width
        return 3 * 2 * rows * length * (self.layers * layer + 2 * self.width)


if __name__ == "__main__":
    main(Bert)
