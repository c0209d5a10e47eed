"""WikiText-2's and WikiText-103's layout: running text with headings, a paragraph a line, words between blanks.

Fake sets have invented words that follow Zipf's law (Merity et al. 2016 describe the real sets).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice, product
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cotenant.datasets.dataset import ALL, VALIDATION, Dataset, File, Half, Recipe, published, seeded

# Without the end of a line, which readers count as a word of its own.
VOCABULARY = 33_277
# Measured on the files made, rounded up; larger vocabularies have longer words.
BYTES_PER_TOKEN = 4.4
BYTES_PER_TOKEN_OF_MANY = 4.9
_SPLITS = ("train", "valid", "test")
_PIECE = 1 << 20
_FREQUENT = ("the", ",", ".", "of", "<unk>", "and", "in", "to", "a", "=")
_ONSETS = ("", "b", "c", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v")
_ENDS = ("a", "an", "ar", "e", "el", "en", "er", "i", "in", "is", "o", "on", "or", "u", "un", "us")


def recipe(train: int, valid: int, test: int, vocabulary: int = VOCABULARY) -> Recipe:
    """Return the recipe of texts with this many tokens each, from a vocabulary of this many words."""
    counts, token_bytes = (train, valid, test), BYTES_PER_TOKEN if vocabulary == VOCABULARY else BYTES_PER_TOKEN_OF_MANY
    files = [File(f"wiki.{split}.tokens", split, n, (n, vocabulary)) for split, n in zip(_SPLITS, counts, strict=True)]
    return Recipe(round(sum(counts) * token_bytes), lambda: files)


def content(file: File) -> Iterator[bytes]:
    """Yield a text of as many tokens as `file` says, each line's end counted as one."""
    left, vocabulary = file.arguments
    random = seeded(*file.path.encode())
    words = spelled(vocabulary, _FREQUENT)
    while left > 0:
        piece = min(left, _PIECE)
        left -= piece
        yield "".join(_lines(words, random, piece)).encode()


def _lines(words: list[str], random: Generator, tokens: int) -> Iterator[str]:
    """Yield lines of `tokens` tokens in all: headings of two words between blank lines, five paragraphs each."""
    drawn = zipf_ranks(random, len(words), tokens).tolist()
    while tokens >= 9:
        heading = " ".join(words[rank] for rank in drawn[tokens - 2 : tokens])
        yield f" \n = {heading} = \n \n"
        tokens -= 7
        for length in random.integers(20, 180, 5).tolist():
            if tokens < 2:
                break
            first = max(tokens - 1 - length, 0)
            yield f" {' '.join([words[rank] for rank in drawn[first : tokens - 1]])} \n"
            tokens = first
    yield " \n" * tokens


def zipf_ranks(random: Generator, words: int, count: int) -> NDArray[np.int64]:
    """Return `count` ranks below `words`, the rank r with a probability of about 1 / (r + 1.5), by inversion."""
    return ((words + 1) ** random.random(count)).astype("i8") - 1


def spelled(count: int, frequent: tuple[str, ...] = ()) -> list[str]:
    """Return `count` different words: first the `frequent` ones, then words of one syllable, of two, and so on."""
    syllables = [onset + end for onset in _ONSETS for end in _ENDS]
    spellings = chain(frequent, *(map("".join, product(syllables, repeat=length)) for length in (1, 2, 3)))
    # The same letters can be split into syllables in two ways, so they are made unique.
    words = dict[str, None]()
    while len(words) < count:
        words |= dict.fromkeys(islice(spellings, count - len(words)))
    return list(words)


def _check(folder: Path) -> dict[str, int]:
    """Return the tokens of each split, the end of each line counted as one."""
    counts = {}
    for path in sorted(folder.glob("wiki.*.tokens")):
        with path.open("rb") as file:
            counts[path.name.split(".")[1]] = sum(len(line.split()) + 1 for line in file)
    return counts


def dataset(number: str, name: str, about: str, sizes: dict[str, Recipe], unpacked: int, of_validation: int) -> Dataset:
    """Return WikiText-2 or -103, whose files take `unpacked` bytes, those of the smaller half `of_validation`."""
    valid, archives = "wiki.valid.tokens", published(name)
    return Dataset(
        name=name,
        folder=f"wikitext-{number}",
        about=about,
        sizes=sizes,
        content=content,
        halves={
            ALL: Half(archives, unpacked, tuple(f"wiki.{split}.tokens" for split in _SPLITS)),
            VALIDATION: Half(archives, of_validation, (valid,), {"wiki.train.tokens": valid}),
        },
        rules={rf"wikitext-{number}/(wiki\.(?:train|valid|test)\.tokens)": r"\1"},
        check=_check,
    )


DATASET = dataset(
    "2",
    "wikitext",
    "running text, the published one Wikipedia's, 2 million tokens",
    {"small": recipe(200_000, 20_000, 20_000), "full": recipe(2_088_628, 217_646, 245_569)},
    13_300_000,
    1_200_000,
)
