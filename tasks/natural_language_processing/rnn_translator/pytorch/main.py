"""English to German with GNMT version 2 (Wu et al. 2016): LSTM layers and attention over sentences of all lengths.

python main.py --batch-size 64 --number 10 [--dataset-dir workspace/data/wmt16]
"""

import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from model import BOS, EOS, GNMT, PAD, UNK
from torch.nn import functional as F

from cotenant.bench import Distributed, MissingDataError, Run, flag, main

SPECIALS = 4
LONGEST, BUCKET = 50, 10
SMOOTHING, CLIP_NORM = 0.1, 5.0
PIECE_BYTES = 1 << 24


class Batch(NamedTuple):
    """Sentence pairs, longest source first."""

    source_sb: torch.Tensor
    length_b: torch.Tensor
    """Lengths of the sources, on the host."""
    target_tb: torch.Tensor
    tokens: int
    """Words of both sides and a sentence's end for each, without padding."""


class Translator(Distributed):
    """One step = one Adam update on pairs of similar length; each target word is predicted from earlier ones."""

    item = "sentence pair"
    replicable = False  # Sentences are columns of a batch.
    padding = PAD
    ignored: ClassVar[dict[str, int]] = {"--target-bleu": 1, "--epochs": 1}

    number: int = 10
    data: Path | None = flag(None, "--data", "--dataset-dir", help="read WMT16's tokenised files here")
    words: int = flag(32_320, help="size of the vocabulary, special words included; the model's is a multiple of 8")
    hidden: int = flag(1024, help="units of every layer")
    dropout: float = flag(0.2, help="share of every layer's input that is dropped")
    lr: float = flag(1e-3, help="learning rate")
    count: Literal["pairs", "tokens"] = flag("pairs", help="what is counted: sentence pairs, or tokens of both sides")

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        if self.count == "tokens":
            self.item = "token"  # type: ignore[misc]  # Set per instance: its unit is a parameter here.

    def build(self, run: Run) -> None:
        self.model = self.distribute(run, GNMT(-(-self.words // 8) * 8, self.hidden, self.dropout))
        self.optimizer = run.adam(self.model.parameters(), lr=self.lr)

    def batches(self, run: Run) -> Iterator[Batch]:
        rng = np.random.default_rng(run.seed)
        if self.data is None:
            # The middle bucket: its mean length is the mean length of all buckets. The lengths are the same for
            # every seed, so that all tenants do equal work.
            length_b = np.linspace(21, 30, self.batch_size).round().astype(np.int64)
            sides = [(zipf(rng, self.words, (30, self.batch_size)), rng.permutation(length_b)) for _ in "st"]
            self.tell_tokens(run, sum(float(length_b.mean()) + 1 for _, length_b in sides))
            return itertools.repeat(self.place(run, *sides))
        corpus = read_corpus(run, self.words)
        run.uneven = True
        lengths_2n = np.stack([length_n for _, _, length_n in corpus])
        drawn = bucketed((lengths_2n.max(axis=0) - 1) // BUCKET, self.batch_size, rng)
        if self.cached_batch:
            first_b = next(drawn)
            lengths_2n, drawn = lengths_2n[:, first_b], itertools.repeat(first_b)
        self.tell_tokens(run, float(lengths_2n.mean(axis=1).sum()) + 2)
        return (self.place(run, *(sentences(side, chosen_b) for side in corpus)) for chosen_b in drawn)

    def tell_tokens(self, run: Run, of_pair: float) -> None:
        """Record the tokens of an item, unless items are tokens: their rate must not be multiplied again."""
        if self.count == "pairs":
            run.metrics["tokens_per_item"] = of_pair

    def place(self, run: Run, source, target) -> Batch:
        order_b = np.argsort(-source[1], kind="stable")
        source_sb, target_tb = (
            framed(words_tb[:, order_b], length_b[order_b]) for words_tb, length_b in (source, target)
        )
        target_tb = np.pad(target_tb, ((1, 0), (0, 0)), constant_values=BOS)
        length_b = torch.from_numpy(source[1][order_b] + 1)
        tokens = int(source[1].sum() + target[1].sum()) + 2 * len(order_b)
        return Batch(on_device(run, source_sb), length_b, on_device(run, target_tb), tokens)

    def items(self, batch: Batch) -> int:
        return batch.tokens if self.count == "tokens" else batch.source_sb.size(1)

    def step(self, run: Run, batch: Batch) -> torch.Tensor:
        logits_tbv = self.model(batch.source_sb, batch.length_b, batch.target_tb[:-1])
        loss = F.cross_entropy(
            logits_tbv.flatten(0, 1), batch.target_tb[1:].flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
        )
        run.update(loss, self.optimizer, clip_norm=CLIP_NORM)
        return loss


def on_device(run: Run, array: np.ndarray) -> torch.Tensor:
    tensor = torch.from_numpy(array)
    # A copy from unpinned memory may wait for earlier steps.
    return run.to_device(tensor.pin_memory() if run.chosen.is_accelerator else tensor)


def zipf(rng, words, shape):
    """Return random words; the one of rank r is about 1/r as frequent as the first."""
    return SPECIALS - 1 + ((words - SPECIALS + 1) ** rng.random(shape)).astype(np.int64)


def framed(words_tb, length_b):
    """Return each sentence's words, EOS after the last one, and padding to the length of the longest."""
    position_t = np.arange(length_b.max() + 1)[:, None]
    words_tb = np.pad(words_tb, ((0, 1), (0, 0)))[: len(position_t)]
    return np.where(position_t < length_b, words_tb, np.where(position_t == length_b, EOS, PAD)).astype(np.int64)


def sentences(side, chosen_b):
    """Return these sentences of one language, (t, b) words and (b) lengths."""
    number_w, begin_n, length_n = side
    # Beyond its end a sentence runs on into the next one, which `framed` cuts off.
    position_tb = begin_n[chosen_b] + np.arange(LONGEST)[:, None]
    return number_w.take(position_tb, mode="clip"), length_n[chosen_b]


def bucketed(bucket_n, batch_size, rng) -> Iterator[np.ndarray]:
    """Return the sentences of one batch after the other, each from one bucket, shuffled, full and without end."""
    members = [np.flatnonzero(bucket_n == bucket) for bucket in np.unique(bucket_n)]
    share = np.array([len(numbers) for numbers in members]) / len(bucket_n)
    left = [numbers[:0] for numbers in members]
    credit = np.zeros(len(members))
    while True:
        # Buckets take turns as often as their share says, so that few batches already have the corpus's mean length.
        credit += share
        turn = credit.argmax()
        credit[turn] -= 1
        while len(left[turn]) < batch_size:
            left[turn] = np.concatenate([left[turn], rng.permutation(members[turn])])
        yield left[turn][:batch_size]
        left[turn] = left[turn][batch_size:]


class Vocabulary(dict):
    """A word's number, UNK for any other word."""

    def __missing__(self, word: bytes) -> int:
        return UNK


def read_corpus(run: Run, words: int):
    """Return for English and German the numbers of all words, and begin and length of each kept sentence."""
    listed = run.read(Path.read_bytes, "vocab.bpe.32000").split()
    vocabulary = Vocabulary(zip(listed, range(SPECIALS, words), strict=False))
    reader = partial(read_sentences, vocabulary=vocabulary)
    sides = [run.read(reader, f"train.tok.clean.bpe.32000.{language}") for language in ("en", "de")]
    if len(sides[0][1]) != len(sides[1][1]):
        raise MissingDataError(
            f"{run.files()} has {len(sides[0][1])} English and {len(sides[1][1])} German lines.",
            "Make it again with ./download_datasets.sh.",
        )
    kept = np.logical_and.reduce([(length_n > 0) & (length_n <= LONGEST) for _, _, length_n in sides])
    if not kept.any():
        raise MissingDataError(f"{run.files()} has no sentence pair.", "Make it again with ./download_datasets.sh.")
    return [(number_w, begin_n[kept], length_n[kept]) for number_w, begin_n, length_n in sides]


def read_sentences(path: Path, vocabulary: Vocabulary):
    """Return the numbers of all words of a file, and for each line the index of its first word and its length."""
    vocabulary[b"</s>"] = EOS
    dtype, number_w = np.min_scalar_type(max(vocabulary.values())), []
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES) + file.readline():
            words = piece.replace(b"\n", b" </s> ").split()
            number_w.append(np.fromiter(map(vocabulary.__getitem__, words), dtype, len(words)))
    number_w = np.concatenate([np.zeros(0, dtype), *number_w])
    end_n = np.flatnonzero(number_w == EOS)
    begin_n = np.concatenate([[0], end_n + 1])[:-1]
    return number_w, begin_n, end_n - begin_n


if __name__ == "__main__":
    main(Translator)
