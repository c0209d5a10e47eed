"""MNIST in its own idx files: digits written by a random hand, or the published ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from cotenant.datasets.dataset import ALL, VALIDATION, Dataset, File, Half, Recipe, published
from cotenant.datasets.drawing import SIDE, draw_digits
from cotenant.datasets.idx import idx_header, read_idx
from cotenant.datasets.unpack import DamagedArchiveError
from cotenant.errors import CotenantError

DIGITS_PER_PIECE = 1000
_IMAGES, _LABELS = 0, 1
_SPLITS = ("train", "t10k")
_SUFFIXES = ("images-idx3-ubyte", "labels-idx1-ubyte")
_TRAIN, _TEST = ([f"{split}-{suffix}" for suffix in _SUFFIXES] for split in _SPLITS)
_URLS = ("https://storage.googleapis.com/cvdf-datasets/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/")


def recipe(train: int, test: int) -> Recipe:
    """Return the recipe of a set with this many train and test images."""
    headers = 2 * (16 + 8)
    return Recipe((train + test) * (SIDE * SIDE + 1) + headers, partial(_files, train, test))


def _files(train: int, test: int) -> list[File]:
    counts = tuple(zip(_SPLITS, (train, test), strict=True))
    images = [File(f"{split}-{_SUFFIXES[_IMAGES]}", split, n, (_IMAGES, n)) for split, n in counts]
    labels = [File(f"{split}-{_SUFFIXES[_LABELS]}", split, 0, (_LABELS, n)) for split, n in counts]
    return images + labels


def content(file: File, seed: int) -> Iterator[bytes]:
    """Yield an idx file of images (n, 28, 28) or of labels (n,), both uint8."""
    kind, count = file.arguments
    split = _SPLITS.index(file.split)
    labels = np.random.default_rng([seed, split, _LABELS]).permutation(np.arange(count) % 10).astype(np.uint8)
    if kind == _LABELS:
        yield idx_header(labels.dtype, labels.shape)
        yield labels.tobytes()
        return
    yield idx_header(labels.dtype, (count, SIDE, SIDE))
    random = np.random.default_rng([seed, split, _IMAGES])
    for start in range(0, count, DIGITS_PER_PIECE):
        yield draw_digits(labels[start : start + DIGITS_PER_PIECE], random).tobytes()


def _check(folder: Path) -> dict[str, int]:
    counts = {}
    for images in sorted(folder.glob(f"*-{_SUFFIXES[_IMAGES]}")):
        split = images.name.partition("-")[0]
        try:
            pixels, labels = read_idx(images).shape, read_idx(folder / f"{split}-{_SUFFIXES[_LABELS]}").shape
        except CotenantError as error:
            raise DamagedArchiveError(f"holds no idx files: {error.sentence}") from error
        if pixels[:1] != labels:
            raise DamagedArchiveError(f"holds images and labels of the shapes {pixels} and {labels}")
        counts[split] = labels[0]
    return counts


_ARCHIVES = tuple(
    published(f"{name}.gz", size_bytes, sha256, *_URLS)
    for name, size_bytes, sha256 in (
        (_TRAIN[0], 9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        (_TRAIN[1], 28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        (_TEST[0], 1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        (_TEST[1], 4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    )
)
DATASET = Dataset(
    name="mnist",
    folder="mnist",
    about="28 x 28 digits in idx files",
    sizes={"small": recipe(6_000, 1_000), "full": recipe(60_000, 10_000)},
    content=content,
    halves={
        ALL: Half(_ARCHIVES, 54_950_048, (*_TRAIN, *_TEST)),
        VALIDATION: Half(_ARCHIVES[2:], 7_850_024, tuple(_TEST), dict(zip(_TRAIN, _TEST, strict=True))),
    },
    rules={r"(\w+-(?:images-idx3|labels-idx1)-ubyte)": r"\1"},
    check=_check,
)
