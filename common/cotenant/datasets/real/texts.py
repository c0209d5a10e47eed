"""Texts and tables as they are published: WikiText-2 and 103, ML-20M, SQuAD 1.1, and the recordings of LJSpeech."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from cotenant.datasets.real.real_set import ALL, VALIDATION, Half, RealSet, count_files, count_lines, matching
from cotenant.datasets.real.sources import archives
from cotenant.datasets.unpacking import DamagedArchiveError, unpack


def _unpacked(rules: Mapping[str, str], expected_bytes: int) -> Callable[[Mapping[str, Path], Path], None]:
    """Return what takes the members that match out of every archive."""
    place = matching(rules)

    def lay_out(packed: Mapping[str, Path], folder: Path) -> None:
        for archive in packed.values():
            unpack(archive, folder, place, expected_bytes)

    return lay_out


def _count_tokens(folder: Path) -> dict[str, int]:
    """Return the tokens of each split, the end of each line counted as one."""
    counts = {}
    for path in sorted(folder.glob("wiki.*.tokens")):
        with path.open("rb") as file:
            counts[path.name.split(".")[1]] = sum(len(line.split()) + 1 for line in file)
    return counts


def _wikitext(name: str, folder: str, about: str, train_bytes: int) -> RealSet:
    valid = "wiki.valid.tokens"
    every = ("wiki.train.tokens", valid, "wiki.test.tokens")
    source = archives(f"{folder}-v1.zip")
    all_bytes = train_bytes + 2_500_000
    return RealSet(
        name=name,
        folder=folder,
        about=about,
        version=1,
        halves={
            ALL: Half(
                source,
                all_bytes,
                every,
                _unpacked({rf"{folder}/(wiki\.(?:train|valid|test)\.tokens)": r"\1"}, all_bytes),
                _count_tokens,
            ),
            VALIDATION: Half(
                source,
                1_200_000,
                (valid,),
                _unpacked({rf"{folder}/(wiki\.valid\.tokens)": r"\1"}, 1_200_000),
                _count_tokens,
                {"wiki.train.tokens": valid},
            ),
        },
    )


WIKITEXT = _wikitext("wikitext", "wikitext-2", "running text of Wikipedia, 2 million tokens", 10_800_000)
WIKITEXT_103 = _wikitext("wikitext_103", "wikitext-103", "running text of Wikipedia, 103 million tokens", 540_000_000)

ML_20M = RealSet(
    name="ml_20m",
    folder="ml-20m",
    about="MovieLens ratings, ratings.csv",
    version=1,
    halves={
        ALL: Half(
            archives("ml-20m.zip"),
            534_000_000,
            ("ratings.csv",),
            _unpacked({r"ml-20m/(ratings\.csv)": r"\1"}, 534_000_000),
            lambda folder: {"ratings": count_lines(folder / "ratings.csv") - 1},
        )
    },
)


def _copied(packed: Mapping[str, Path], folder: Path) -> None:
    for name, path in packed.items():
        shutil.copyfile(path, folder / name)


def _count_questions(folder: Path) -> dict[str, int]:
    counts = {}
    for path in sorted(folder.glob("*-v1.1.json")):
        try:
            articles = json.loads(path.read_bytes())["data"]
            questions = sum(len(part["qas"]) for article in articles for part in article["paragraphs"])
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedArchiveError(f"is no list of questions: {error!r}") from error
        counts[path.name.partition("-")[0]] = questions
    return counts


_SQUAD_TRAIN, _SQUAD_DEV = "train-v1.1.json", "dev-v1.1.json"
SQUAD = RealSet(
    name="squad",
    folder="squad",
    about="SQuAD 1.1: questions on paragraphs, in JSON",
    version=1,
    halves={
        ALL: Half(
            archives(_SQUAD_TRAIN, _SQUAD_DEV), 35_142_551, (_SQUAD_TRAIN, _SQUAD_DEV), _copied, _count_questions
        ),
        VALIDATION: Half(
            archives(_SQUAD_DEV), 4_854_279, (_SQUAD_DEV,), _copied, _count_questions, {_SQUAD_TRAIN: _SQUAD_DEV}
        ),
    },
)

LJSPEECH = RealSet(
    name="ljspeech",
    folder="LJSpeech-1.1",
    about="13,100 sentences read aloud, WAV files and their text",
    version=1,
    halves={
        ALL: Half(
            archives("LJSpeech-1.1.tar.bz2"),
            3_800_000_000,
            ("metadata.csv", "wavs"),
            _unpacked({r"LJSpeech-1\.1/(metadata\.csv|README|wavs/[\w-]+\.wav)": r"\1"}, 3_800_000_000),
            lambda folder: {"train": count_files(folder / "wavs", ".wav")},
        )
    },
)
