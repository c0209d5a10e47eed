"""The running text: WikiText's lines, exactly as many tokens as declared, words as frequent as in real text."""

from collections import Counter

import pytest

from cotenant.datasets.maker import Part
from cotenant.datasets.makers import MAKERS, wikitext


def made(tokens: int, path: str = "wiki.train.tokens", seed: int = 0) -> str:
    return b"".join(wikitext.content(Part(path, "train", tokens, (tokens,)), seed)).decode()


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


@pytest.mark.parametrize("tokens", [0, 1, 2, 6, 7, 8, 9, 10, 11, 27, 500, 501, 502, 5003])
def test_a_text_has_exactly_its_tokens(tokens):
    assert tokens_in(made(tokens)) == tokens


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


def test_words_are_different_and_frequent_ones_come_first():
    words = wikitext.spelled(33_277, ("the", "a"))
    assert len(set(words)) == len(words) == 33_277
    assert words[:2] == ["the", "a"]
    assert all(word.isalpha() for word in words)


def test_a_text_is_decided_by_its_seed_and_name():
    assert made(500) == made(500)
    assert len({made(500), made(500, seed=1), made(500, path="wiki.valid.tokens")}) == 3


def test_sizes():
    assert MAKERS["wikitext"] is wikitext.WIKITEXT
    sizes = wikitext.WIKITEXT.sizes
    assert [part.path for part in sizes["full"].parts()] == [
        "wiki.train.tokens",
        "wiki.valid.tokens",
        "wiki.test.tokens",
    ]
    counts = {name: [part.items for part in recipe.parts()] for name, recipe in sizes.items()}
    assert counts == {"small": [200_000, 20_000, 20_000], "full": [2_088_628, 217_646, 245_569]}
    size = sum(len(b"".join(wikitext.content(part, 0))) for part in sizes["small"].parts())
    assert 0.9 * sizes["small"].estimated_bytes < size < sizes["small"].estimated_bytes
