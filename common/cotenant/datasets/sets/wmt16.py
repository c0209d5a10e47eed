"""WMT16 English-German as translators read it: tokenised sentences, a pair in the same line of two files.

The fake set has invented words of Zipf's law, some of them subwords, and sentences as long as the real ones, about
N(25, 10) words up to 50. The published texts are split into words and punctuation marks, not into subwords (byte-pair
encoding): the vocabulary is the most frequent words of both languages, in the files and with the names that
translators read. Rare words are unknown to them, so BLEU is not comparable with published models; speed is the same.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cotenant.datasets.dataset import ALL, RAW, VALIDATION, Dataset, File, Half, Recipe, count_lines, published, seeded
from cotenant.datasets.progress import shown_progress
from cotenant.datasets.sets.wikitext import spelled, zipf_ranks
from cotenant.datasets.unpack import DamagedArchiveError

# Four special words that no file lists make 32,320 of them, a multiple of 8.
VOCABULARY = 32_316
MEAN_WORDS, SPREAD_WORDS, LONGEST = 25, 10, 50
# The standard deviation of a German sentence's words from its English one's.
SPREAD_OF_PAIR = 3
# Measured on the files made, rounded up.
BYTES_PER_PAIR = 240
PAIRS_PER_PIECE = 50_000
_VOCABULARY_FILE, _ENGLISH, _GERMAN = 0, 1, 2
_LANGUAGES = ("en", "de")
_TRAIN, _TEST, _SMALL = "train.tok.clean.bpe.32000", "newstest2014.tok.bpe.32000", "newstest2013.tok.bpe.32000"
_LISTED = "vocab.bpe.32000"
_WORD = re.compile(r"\w+|[^\w\s]")
_SENTENCE = re.compile(r"<seg[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
# As long as the Moses scripts leave real sentences: a longer line is rarely one.
LONGEST_REAL = 80


def recipe(train: int, test: int) -> Recipe:
    """Return the recipe of a set with this many train and test pairs."""

    def files() -> Iterator[File]:
        for stem, split, pairs in ((_TRAIN, "train", train), (_TEST, "newstest2014", test)):
            yield File(f"{stem}.en", split, pairs, (_ENGLISH, pairs))
            yield File(f"{stem}.de", split, 0, (_GERMAN, pairs))
        yield File(_LISTED, "train", 0, (_VOCABULARY_FILE, VOCABULARY))

    return Recipe((train + test) * BYTES_PER_PAIR + VOCABULARY * 7, files)


def content(file: File) -> Iterator[bytes]:
    """Yield the sentences of one language, or the list of all words, a line each."""
    kind, count = file.arguments
    # Every fourth word is the beginning of one, as subwords are written.
    words = [word + "@@" * (rank % 4 == 3) for rank, word in enumerate(spelled(VOCABULARY))]
    if kind == _VOCABULARY_FILE:
        yield "".join(f"{word}\n" for word in words).encode()
        return
    # Each word once as it stands inside a line and once as it ends one.
    written = np.array([word + after for after in " \n" for word in words], dtype=object)
    stem = file.path.rpartition(".")[0]
    for first in range(0, count, PAIRS_PER_PIECE):
        pairs = min(PAIRS_PER_PIECE, count - first)
        # Both languages draw the same lengths, so that their sentences belong together.
        lengths = seeded(first, *stem.encode())
        length_n = lengths.normal(MEAN_WORDS, SPREAD_WORDS, pairs)
        if kind == _GERMAN:
            length_n += lengths.normal(0, SPREAD_OF_PAIR, pairs)
        length_n = length_n.round().clip(1, LONGEST).astype(int)
        ranks = zipf_ranks(seeded(first, *file.path.encode()), VOCABULARY, length_n.sum())
        ends = length_n.cumsum() - 1
        # No line ends with the beginning of a word.
        ranks[ends] += VOCABULARY - (ranks[ends] % 4 == 3)
        yield "".join(written[ranks].tolist()).encode()


def words_of(sentence: str) -> list[str]:
    """Return words and punctuation marks, one after the other."""
    return _WORD.findall(sentence)


def _prepare(folder: Path) -> None:
    """Write the training pairs (the smaller half: the pairs of newstest2013), the test set and the vocabulary."""
    raw = folder / RAW
    if (raw / "europarl.en").exists():
        counts = _tokenise([raw / "europarl", raw / "commoncrawl", raw / "news"], folder / _TRAIN)
    else:
        counts = _tokenise([raw / "newstest2013"], folder / _SMALL)
    for language in _LANGUAGES:
        marked = raw / f"newstest2014.{language}.sgm"
        if not marked.is_file():
            raise DamagedArchiveError(f"lacks the {language} side of newstest2014")
        sentences = [" ".join(html.unescape(text).split()) for text in _SENTENCE.findall(marked.read_text("utf-8"))]
        (raw / f"newstest2014.{language}").write_text("".join(f"{text}\n" for text in sentences), "utf-8")
    _tokenise([raw / "newstest2014"], folder / _TEST)
    frequent = (word for word, _ in counts.most_common(VOCABULARY))
    (folder / _LISTED).write_text("".join(f"{word}\n" for word in frequent), "utf-8")


def _tokenise(texts: list[Path], target: Path) -> Counter[str]:
    """Write the pairs of these texts as `target`.en and .de, and return the number of times that each word occurs.

    Pairs with an empty side, or one beyond LONGEST_REAL words, are left out.
    """
    counts: Counter[str] = Counter()
    with (
        target.with_name(f"{target.name}.en").open("w", encoding="utf-8", newline="\n") as english,
        target.with_name(f"{target.name}.de").open("w", encoding="utf-8", newline="\n") as german,
    ):
        for text in texts:
            for pair in _pairs(text):
                if all(0 < len(words) <= LONGEST_REAL for words in pair):
                    for words, file in zip(pair, (english, german), strict=True):
                        file.write(f"{' '.join(words)}\n")
                        counts.update(words)
    return counts


def _pairs(text: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the words of each English line and of the German one beside it."""
    paths = [text.with_name(f"{text.name}.{language}") for language in _LANGUAGES]
    for path in paths:
        if not path.is_file():
            raise DamagedArchiveError(f"lacks {path.name}")
    done = 0
    # A line ends at its line feed only: other signs that break lines stand inside of sentences.
    with (
        paths[0].open("rb") as english,
        paths[1].open("rb") as german,
        shown_progress(f"splitting {text.name}", sum(path.stat().st_size for path in paths), in_bytes=True) as reach,
    ):
        try:
            for pair in zip(english, german, strict=True):
                done += sum(map(len, pair))
                reach(done)
                yield words_of(pair[0].decode()), words_of(pair[1].decode())
        except ValueError as error:
            raise DamagedArchiveError(f"holds no parallel text in {text.name}: {error}") from error


def _check(folder: Path) -> dict[str, int]:
    return {path.name.partition(".")[0]: count_lines(path) for path in sorted(folder.glob("*.bpe.32000.en"))}


def _sides(stem: str) -> tuple[str, ...]:
    return tuple(f"{stem}.{language}" for language in _LANGUAGES)


# The last is WMT19's, which holds the test sets of the years before, too.
_ARCHIVES = published("wmt16")
_RULES = {
    r"training/europarl-v7\.de-en\.(de|en)": rf"{RAW}/europarl.\1",
    r"commoncrawl\.de-en\.(de|en)": rf"{RAW}/commoncrawl.\1",
    r"training-parallel-nc-v11/news-commentary-v11\.de-en\.(de|en)": rf"{RAW}/news.\1",
    r"dev/newstest2013\.(de|en)": rf"{RAW}/newstest2013.\1",
    r"dev/newstest2014-deen-src\.(de)\.sgm": rf"{RAW}/newstest2014.\1.sgm",
    r"dev/newstest2014-deen-ref\.(en)\.sgm": rf"{RAW}/newstest2014.\1.sgm",
}
DATASET = Dataset(
    name="wmt16",
    folder="wmt16",
    about="tokenised English-German sentence pairs",
    sizes={"small": recipe(20_000, 300), "full": recipe(4_500_000, 3_003)},
    content=content,
    halves={
        ALL: Half(_ARCHIVES, 2_900_000_000, (*_sides(_TRAIN), *_sides(_TEST), _LISTED)),
        VALIDATION: Half(
            _ARCHIVES[3:],
            8_000_000,
            (*_sides(_SMALL), *_sides(_TEST), _LISTED),
            dict(zip(_sides(_TRAIN), _sides(_SMALL), strict=True)),
        ),
    },
    rules=_RULES,
    check=_check,
    prepare=_prepare,
)
