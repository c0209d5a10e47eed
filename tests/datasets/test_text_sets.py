"""The made texts: WikiText's lines, with the exact number of tokens, and WMT16's pairs, with real word frequencies."""

from collections import Counter

import numpy as np

from cotenant.datasets.dataset import File
from cotenant.datasets.sets import wikitext, wmt16


def made(tokens: int) -> str:
    file = File("wiki.train.tokens", "train", tokens, (tokens, wikitext.VOCABULARY))
    return b"".join(wikitext.content(file)).decode()


def tokens_in(text: str) -> int:
    return len(text.split()) + text.count("\n")


def test_lines_are_paragraphs_between_headings():
    lines = made(5000).split("\n")
    assert lines.pop() == ""
    assert all(line.startswith(" ") and line.endswith(" ") for line in lines)
    headings = [number for number, line in enumerate(lines) if line.startswith(" = ") and line.endswith(" = ")]
    assert len(headings) > 5
    assert all(lines[number - 1] == lines[number + 1] == " " for number in headings)
    lengths = [len(line.split()) for line in lines[:-1] if line.strip() and not line.startswith(" = ")]
    assert 60 < sum(lengths) / len(lengths) < 140


def test_a_text_has_exactly_its_tokens():
    for tokens in (0, 1, 2, 6, 7, 8, 9, 10, 11, 27, 500, 501, 502, 5003):
        assert tokens_in(made(tokens)) == tokens
    assert [file.path for file in wikitext.DATASET.sizes["full"].files()] == [
        "wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens",
    ]  # fmt: skip


def test_pieces_join_without_a_seam(monkeypatch):
    monkeypatch.setattr(wikitext, "_PIECE", 100)
    text = made(1030)
    assert tokens_in(text) == 1030
    assert all(line.startswith(" ") and line.endswith(" ") for line in text.split("\n")[:-1])


def test_words_follow_zipfs_law():
    count = Counter(made(200_000).split())
    total = sum(count.values())
    assert 0.05 < count["the"] / total < 0.09
    assert count["the"] > count[","] > count["."] > count["<unk>"] > 0
    assert 10_000 < len(count) <= 33_278
    ordered = [number for _, number in count.most_common()]
    assert 5 < ordered[0] / ordered[9] < 12


# WMT16

EN, DE = "train.tok.clean.bpe.32000.en", "train.tok.clean.bpe.32000.de"


def sentences(name: str, train: int = 4000) -> bytes:
    file = next(file for file in wmt16.recipe(train, 50).files() if file.path == name)
    return b"".join(wmt16.content(file))


def test_sentences_are_as_long_as_real_ones():
    english, german = (np.array([len(line.split()) for line in sentences(name).splitlines()]) for name in (EN, DE))
    assert len(english) == len(german) == 4000
    for length in (english, german):
        assert abs(length.mean() - 25) < 1
        assert 8.5 < length.std() < 10.5
        assert (length.min(), length.max()) == (1, 50)
    assert np.corrcoef(english, german)[0, 1] > 0.9
    assert (english != german).mean() > 0.5


def test_words_of_sentences_are_known_and_follow_zipfs_law():
    rank = {word: rank for rank, word in enumerate(sentences("vocab.bpe.32000").split())}
    # With four special words the vocabulary is a multiple of 8.
    assert len(rank) + 4 == len(sentences("vocab.bpe.32000").split()) + 4 == 32_320
    assert not {b"</s>", b"<s>", b"<unk>", b"<pad>"} & rank.keys()
    for name in (EN, DE):
        lines = sentences(name).splitlines()
        count = np.bincount([rank[word] for line in lines for word in line.split()], minlength=len(rank))
        assert 0.05 < count[0] / count.sum() < 0.09
        assert 5 < count[0] / count[9:11].mean() < 11
        assert count[10_000:].sum() / count.sum() > 0.08
        assert not any(line.endswith(b"@@") for line in lines)
        assert 0.2 < sum(line.count(b"@@ ") for line in lines) / count.sum() < 0.3


def test_pieces_of_sentences_join_without_a_seam(monkeypatch):
    monkeypatch.setattr(wmt16, "PAIRS_PER_PIECE", 30)
    assert [len(sentences(name, train=100).splitlines()) for name in (EN, DE)] == [100, 100]
    assert len(set(sentences(EN, train=100).splitlines())) > 90
