"""Reads running text, with words separated by blanks as in WikiText, as numbers."""

from __future__ import annotations

import itertools
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PIECE_BYTES = 1 << 24


def read_words(path: Path, words: int) -> NDArray[np.int64]:
    """Return the text as ranks of its words by frequency, <unk> always first; ranks from `words` on become <unk>, 0.

    The end of a line is a word. Raises ValueError for an empty file, and OSError for an unreadable one.
    """
    number: defaultdict[bytes, int] = defaultdict(itertools.count().__next__)  # A new word gets the next number.
    unknown = number[b"<unk>"]
    pieces = []
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES) + file.readline():
            tokens = piece.replace(b"\n", b" <eos> ").split()
            pieces.append(np.fromiter(map(number.__getitem__, tokens), np.int64, len(tokens)))
    if not pieces:
        raise ValueError("it is empty")
    number_n = np.concatenate(pieces)
    count_v = np.bincount(number_n, minlength=len(number))
    count_v[unknown] = len(number_n)  # Rank 0, so that it is never cut off.
    rank_v = np.empty_like(count_v)
    rank_v[np.argsort(-count_v, kind="stable")] = np.arange(len(count_v))
    return np.where(rank_v < words, rank_v, 0)[number_n]
