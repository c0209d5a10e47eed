"""WMT16 English-German: the published parallel texts, split into words and punctuation marks, a pair in the same line.

There are no subwords (byte-pair encoding): the vocabulary is the most frequent words of both languages, in the files
and with the names that translators read. Rare words are unknown to them, so BLEU is not what published models reach;
speed is the same, as the model's shape is and sentences are about as long.
"""

from __future__ import annotations

import html
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from cotenant.datasets.makers.wmt16 import VOCABULARY
from cotenant.datasets.progress import shown_bytes
from cotenant.datasets.real.real_set import ALL, VALIDATION, Half, RealSet, count_lines, matching
from cotenant.datasets.real.sources import archives
from cotenant.datasets.unpacking import DamagedArchiveError, unpack

_EUROPARL, _CRAWL = "training-parallel-europarl-v7.tgz", "training-parallel-commoncrawl.tgz"
_NEWS, _DEV = "training-parallel-nc-v11.tgz", "dev.tgz"
_RAW = ".raw"
_PLACE = matching(
    {
        r"training/europarl-v7\.de-en\.(de|en)": rf"{_RAW}/europarl.\1",
        r"commoncrawl\.de-en\.(de|en)": rf"{_RAW}/commoncrawl.\1",
        r"training-parallel-nc-v11/news-commentary-v11\.de-en\.(de|en)": rf"{_RAW}/news.\1",
        r"dev/newstest2013\.(de|en)": rf"{_RAW}/newstest2013.\1",
        r"dev/newstest2014-deen-src\.(de)\.sgm": rf"{_RAW}/newstest2014.\1.sgm",
        r"dev/newstest2014-deen-ref\.(en)\.sgm": rf"{_RAW}/newstest2014.\1.sgm",
    }
)
_UNPACKED_BYTES = {_EUROPARL: 620_000_000, _CRAWL: 680_000_000, _NEWS: 80_000_000, _DEV: 4_000_000}
_LANGUAGES = ("en", "de")
_VOCABULARY_FILE = "vocab.bpe.32000"
_TRAIN, _TEST, _SMALL = "train.tok.clean.bpe.32000", "newstest2014.tok.bpe.32000", "newstest2013.tok.bpe.32000"
_WORD = re.compile(r"\w+|[^\w\s]")
_SENTENCE = re.compile(r"<seg[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
# As long as the Moses scripts leave them: what is longer is rarely a sentence.
LONGEST_WORDS = 80


def words_of(sentence: str) -> list[str]:
    """Return words and punctuation marks, one after the other."""
    return _WORD.findall(sentence)


def _lay_out_all(packed: Mapping[str, Path], folder: Path) -> None:
    _unpack(packed, folder)
    raw = folder / _RAW
    counts = _tokenise([raw / "europarl", raw / "commoncrawl", raw / "news"], folder / _TRAIN)
    _finish(folder, counts)


def _lay_out_validation(packed: Mapping[str, Path], folder: Path) -> None:
    _unpack(packed, folder)
    _finish(folder, _tokenise([folder / _RAW / "newstest2013"], folder / _SMALL))


def _unpack(packed: Mapping[str, Path], folder: Path) -> None:
    for name, archive in packed.items():
        unpack(archive, folder, _PLACE, _UNPACKED_BYTES[name])


def _finish(folder: Path, counts: Counter[str]) -> None:
    """Write the test set and the vocabulary, and remove what is no longer needed."""
    raw = folder / _RAW
    for language in _LANGUAGES:
        marked = raw / f"newstest2014.{language}.sgm"
        if not marked.is_file():
            raise DamagedArchiveError(f"lacks the {language} side of newstest2014")
        found = [" ".join(html.unescape(one).split()) for one in _SENTENCE.findall(marked.read_text("utf-8"))]
        (raw / f"newstest2014.{language}").write_text("".join(f"{one}\n" for one in found), "utf-8")
    _tokenise([raw / "newstest2014"], folder / _TEST)
    frequent = (word for word, _ in counts.most_common(VOCABULARY))
    (folder / _VOCABULARY_FILE).write_text("".join(f"{word}\n" for word in frequent), "utf-8")
    shutil.rmtree(raw)


def _tokenise(texts: Iterable[Path], target: Path) -> Counter[str]:
    """Write the pairs of these texts as `target`.en and .de, and return how often each word is there.

    Pairs with an empty side, or one beyond LONGEST_WORDS, are left out.
    """
    counts: Counter[str] = Counter()
    with (
        target.with_name(f"{target.name}.en").open("w", encoding="utf-8", newline="\n") as english,
        target.with_name(f"{target.name}.de").open("w", encoding="utf-8", newline="\n") as german,
    ):
        for text in texts:
            for sides in _pairs(text):
                if all(0 < len(words) <= LONGEST_WORDS for words in sides):
                    for words, file in zip(sides, (english, german), strict=True):
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
        shown_bytes(f"splitting {text.name}", sum(path.stat().st_size for path in paths)) as reach,
    ):
        try:
            for pair in zip(english, german, strict=True):
                done += sum(map(len, pair))
                reach(done)
                yield words_of(pair[0].decode()), words_of(pair[1].decode())
        except ValueError as error:
            raise DamagedArchiveError(f"holds no parallel text in {text.name}: {error}") from error


def _count(folder: Path) -> dict[str, int]:
    return {path.name.partition(".")[0]: count_lines(path) for path in sorted(folder.glob("*.bpe.32000.en"))}


def _sides(stem: str) -> tuple[str, ...]:
    return tuple(f"{stem}.{language}" for language in _LANGUAGES)


WMT16 = RealSet(
    name="wmt16",
    folder="wmt16",
    about="tokenised English-German sentence pairs",
    version=1,
    halves={
        ALL: Half(
            archives(_EUROPARL, _CRAWL, _NEWS, _DEV),
            2_900_000_000,
            (*_sides(_TRAIN), *_sides(_TEST), _VOCABULARY_FILE),
            _lay_out_all,
            _count,
        ),
        VALIDATION: Half(
            archives(_DEV),
            8_000_000,
            (*_sides(_SMALL), *_sides(_TEST), _VOCABULARY_FILE),
            _lay_out_validation,
            _count,
            dict(zip(_sides(_TRAIN), _sides(_SMALL), strict=True)),
        ),
    },
)
