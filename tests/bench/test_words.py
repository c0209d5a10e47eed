from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cotenant.bench import words
from cotenant.bench.words import read_words


def test_words_beyond_the_vocabulary_are_unknown(tmp_path: Path) -> None:
    path = tmp_path / "wiki.train.tokens"
    path.write_text("a a a b b c\n")
    assert read_words(path, 3).tolist() == [1, 1, 1, 2, 2, 0, 0]
    assert read_words(path, 100).tolist() == [1, 1, 1, 2, 2, 3, 4]


def test_pieces_of_a_file_join_without_a_seam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "wiki.train.tokens"
    path.write_text("".join(f" word{number % 17} word{number % 5} \n" for number in range(400)))
    whole = read_words(path, 100)
    monkeypatch.setattr(words, "PIECE_BYTES", 50)
    assert np.array_equal(read_words(path, 100), whole)
    assert len(whole) == 1200


def test_an_empty_text_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "wiki.train.tokens"
    path.touch()
    with pytest.raises(ValueError, match="it is empty"):
        read_words(path, 100)
