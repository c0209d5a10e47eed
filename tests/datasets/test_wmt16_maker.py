"""The parallel text: pairs line by line, lengths and words as frequent as the real ones."""

import numpy as np
import pytest

from cotenant.datasets.makers import MAKERS, wmt16

EN, DE = "train.tok.clean.bpe.32000.en", "train.tok.clean.bpe.32000.de"


def made(name: str, train: int = 4000, seed: int = 0) -> bytes:
    part = next(part for part in wmt16.recipe(train, 50).parts() if part.path == name)
    return b"".join(wmt16.content(part, seed))


def lengths(name: str) -> np.ndarray:
    return np.array([len(line.split()) for line in made(name).splitlines()])


def test_the_files_are_those_that_translators_read():
    parts = list(wmt16.recipe(20, 3).parts())
    assert [part.path for part in parts] == [
        EN, DE, "newstest2014.tok.bpe.32000.en", "newstest2014.tok.bpe.32000.de", "vocab.bpe.32000",
    ]  # fmt: skip
    assert [(part.split, part.items) for part in parts[:4]] == [
        ("train", 20), ("train", 0), ("newstest2014", 3), ("newstest2014", 0),
    ]  # fmt: skip


def test_four_special_words_make_the_vocabulary_a_multiple_of_8():
    words = made("vocab.bpe.32000").split()
    assert len(words) + 4 == len(set(words)) + 4 == 32_320
    assert not {b"</s>", b"<s>", b"<unk>", b"<pad>"} & set(words)


def test_sentences_are_as_long_as_real_ones():
    english, german = lengths(EN), lengths(DE)
    assert len(english) == len(german) == 4000
    for length in (english, german):
        assert abs(length.mean() - 25) < 1
        assert 8.5 < length.std() < 10.5
        assert (length.min(), length.max()) == (1, 50)
    assert np.corrcoef(english, german)[0, 1] > 0.9
    assert (english != german).mean() > 0.5


@pytest.mark.parametrize("name", [EN, DE])
def test_words_are_known_and_follow_zipfs_law(name):
    rank = {word: rank for rank, word in enumerate(made("vocab.bpe.32000").split())}
    lines = made(name).splitlines()
    count = np.bincount([rank[word] for line in lines for word in line.split()], minlength=len(rank))
    assert 0.05 < count[0] / count.sum() < 0.09
    assert 5 < count[0] / count[9:11].mean() < 11
    assert count[10_000:].sum() / count.sum() > 0.08
    assert not any(line.endswith(b"@@") for line in lines)
    assert 0.2 < sum(line.count(b"@@ ") for line in lines) / count.sum() < 0.3


def test_a_file_is_decided_by_its_seed_and_name():
    files = [made(EN), made(DE), made(EN, seed=1), made("newstest2014.tok.bpe.32000.en", train=50)]
    assert files[0] == made(EN)
    assert len({text[:1000] for text in files}) == 4


def test_pieces_join_without_a_seam(monkeypatch):
    monkeypatch.setattr(wmt16, "PAIRS_PER_PIECE", 30)
    assert [len(made(name, train=100).splitlines()) for name in (EN, DE)] == [100, 100]
    assert len(set(made(EN, train=100).splitlines())) > 90


def test_sizes():
    assert MAKERS["wmt16"] is wmt16.WMT16
    counts = {name: [p.items for p in recipe.parts() if p.items] for name, recipe in wmt16.WMT16.sizes.items()}
    assert counts == {"small": [20_000, 300], "full": [4_500_000, 3_003]}
    recipe = wmt16.recipe(4000, 50)
    size = sum(len(b"".join(wmt16.content(part, 0))) for part in recipe.parts())
    assert 0.9 * recipe.estimated_bytes < size < recipe.estimated_bytes
