"""A word language model on WikiText-2 (Zaremba et al. 2014): recurrent layers between two large tables of words.

python main.py --emsize 656 --nhid 656 --dropout 0.5 --model GRU [--data workspace/data/wikitext-2]
"""

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from model import Recurrent, Transformer
from torch.nn import functional as F

from cotenant.bench import Benchmark, MissingDataError, Run, flag, main
from cotenant.bench.words import read_words
from cotenant.errors import CotenantError
from cotenant.layers.data import zipf

CLIP_NORM = 0.25
HEADS = 2


class WordLanguageModel(Benchmark):
    """One step = one SGD update on the next 35 words of every sequence; the state goes on from batch to batch."""

    item = "sequence"
    ignored: ClassVar[dict[str, int]] = {"--epochs": 1}

    model: Literal["GRU", "LSTM", "RNN_TANH", "RNN_RELU", "Transformer"] = flag("GRU", help="the layers in between")
    words: int = flag(33_278, help="size of the vocabulary; in 16 bit the model's is a multiple of 8")
    emsize: int = flag(656, help="width of the embedding")
    nhid: int = flag(656, help="units of every layer")
    nlayers: int = flag(2, help="layers")
    nhead: int = flag(HEADS, help="heads of the Transformer's attention")
    dropout: float = flag(0.5, help="share that is dropped before, between and behind the layers")
    bptt: int = flag(35, help="words of one sequence")
    lr: float = flag(20.0, help="learning rate")

    def __init__(self, **parameters: Any) -> None:
        if parameters.get("model") != "Transformer":
            self.fixed = {"nhead": HEADS}  # Recurrent layers attend to nothing.
        super().__init__(**parameters)

    def build(self, run: Run) -> None:
        # Tensor cores want rows of 16 bytes, which are 8 values of fp16 or bf16.
        words = self.words if self.asked_precision in ("fp32", "tf32") else -(-self.words // 8) * 8
        if self.model == "Transformer":
            if self.emsize % self.nhead:
                raise CotenantError(f"--emsize {self.emsize} is no multiple of --nhead {self.nhead}.")
            network = Transformer(words, self.emsize, self.nhid, self.nlayers, self.nhead, self.dropout, self.bptt)
        else:
            network = Recurrent(self.model, words, self.emsize, self.nhid, self.nlayers, self.dropout)
        self.network = run.place(network)
        self.optimizer = run.sgd(self.network.parameters(), lr=self.lr)
        self.state: Any = None

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        """Return (bptt + 1, batch) words; the last row holds only the words to be predicted."""
        run.metrics["tokens_per_item"] = float(self.bptt)
        if self.data is None:
            return run.resident(zipf(self.words, self.bptt + 1, self.batch_size))
        word_n = run.read(partial(read_words, words=self.words), "wiki.train.tokens")
        rows = len(word_n) // self.batch_size
        if rows <= self.bptt:
            raise MissingDataError(
                f"{run.files()} has {len(word_n)} words: too few for {self.batch_size} sequences of {self.bptt}.",
                "Make it again with ./download_datasets.sh, or give a smaller --batch-size.",
            )
        # The whole text lives on the device, a column for each sequence; a batch is a view of its next rows.
        text_nb = run.to_device(
            torch.from_numpy(word_n[: rows * self.batch_size].reshape(self.batch_size, rows).T.copy())
        )
        starts = range(0, rows - self.bptt, self.bptt)
        first = len(starts) * run.world.rank // run.world.size  # Each rank begins at another place.
        return (text_nb[start : start + self.bptt + 1] for start in itertools.cycle([*starts[first:], *starts[:first]]))

    def items(self, batch: torch.Tensor) -> int:
        return batch.size(1)

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        logits_tbv, state = self.network(batch[:-1], self.state)
        self.state = detached(state)
        loss = F.cross_entropy(logits_tbv.flatten(0, 1), batch[1:].flatten())
        run.update(loss, self.optimizer, clip_norm=CLIP_NORM)
        return loss


def detached(state):
    """Return the state without its history; an LSTM's has two parts, a Transformer's none."""
    if isinstance(state, tuple):
        return tuple(part.detach() for part in state)
    return None if state is None else state.detach()


if __name__ == "__main__":
    main(WordLanguageModel)
