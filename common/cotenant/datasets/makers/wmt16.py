"""WMT16 English-German as translators read it: tokenised sentences of subwords, a pair in the same line of two files.

Words are invented and follow Zipf's law; sentences are as long as the real ones, about N(25, 10) words up to 50.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cotenant.datasets.maker import Maker, Part, Recipe

# Four special words that no file lists make 32,320 of them, a multiple of 8.
VOCABULARY = 32_316
MEAN_WORDS, SPREAD_WORDS, LONGEST = 25, 10, 50
# By how many words a German sentence differs from its English one.
SPREAD_OF_PAIR = 3
# Measured on what is made, rounded up.
BYTES_PER_PAIR = 240
PAIRS_PER_PIECE = 50_000
_VOCABULARY_PART, _ENGLISH, _GERMAN = 0, 1, 2
_TRAIN, _TEST = "train.tok.clean.bpe.32000", "newstest2014.tok.bpe.32000"
_LISTED = "vocab.bpe.32000"


def recipe(train: int, test: int) -> Recipe:
    """Return the recipe of a set with this many train and test pairs."""
    estimated_bytes = (train + test) * BYTES_PER_PAIR + VOCABULARY * 7
    return Recipe(estimated_bytes, partial(_parts, train, test))


def _parts(train: int, test: int) -> Iterator[Part]:
    for stem, split, pairs in ((_TRAIN, "train", train), (_TEST, "newstest2014", test)):
        yield Part(f"{stem}.en", split, pairs, (_ENGLISH, pairs))
        yield Part(f"{stem}.de", split, 0, (_GERMAN, pairs))
    yield Part(_LISTED, "train", 0, (_VOCABULARY_PART, VOCABULARY))


def content(part: Part, seed: int) -> Iterator[bytes]:
    """Yield the sentences of one language, or the list of all words, a line each."""
    import numpy as np

    from cotenant.datasets.makers.wikitext import spelled, zipf_ranks

    kind, count = part.arguments
    # Every fourth word is the beginning of one, as subwords are written.
    words = [word + "@@" * (rank % 4 == 3) for rank, word in enumerate(spelled(VOCABULARY))]
    if kind == _VOCABULARY_PART:
        yield "".join(f"{word}\n" for word in words).encode()
        return
    # Each word once inside a line and once at its end.
    written = np.array([word + after for after in " \n" for word in words], dtype=object)
    stem = part.path.rpartition(".")[0]
    for first in range(0, count, PAIRS_PER_PIECE):
        pairs = min(PAIRS_PER_PIECE, count - first)
        # Both languages draw the same lengths, so that their sentences belong together.
        lengths = np.random.default_rng([seed, first, *stem.encode()])
        length_n = lengths.normal(MEAN_WORDS, SPREAD_WORDS, pairs)
        if kind == _GERMAN:
            length_n += lengths.normal(0, SPREAD_OF_PAIR, pairs)
        length_n = length_n.round().clip(1, LONGEST).astype(int)
        ranks = zipf_ranks(np.random.default_rng([seed, first, *part.path.encode()]), VOCABULARY, length_n.sum())
        ends = length_n.cumsum() - 1
        # No line ends with the beginning of a word.
        ranks[ends] += VOCABULARY - (ranks[ends] % 4 == 3)
        yield "".join(written[ranks].tolist()).encode()


WMT16 = Maker(
    name="wmt16",
    folder="wmt16",
    about="tokenised English-German sentence pairs",
    version=1,
    sizes={"small": recipe(20_000, 300), "full": recipe(4_500_000, 3_003)},
    content=content,
)
