"""MNIST in its own idx files: digits written by a random hand."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cotenant.datasets.maker import Maker, Part, Recipe

SIDE = 28
DIGITS_PER_PIECE = 1000
_IMAGES, _LABELS = 0, 1
_SPLITS = ("train", "t10k")


def recipe(train: int, test: int) -> Recipe:
    """Return the recipe of a set with this many train and test images."""
    headers = 2 * (16 + 8)
    return Recipe((train + test) * (SIDE * SIDE + 1) + headers, partial(_parts, train, test))


def _parts(train: int, test: int) -> list[Part]:
    counts = tuple(zip(_SPLITS, (train, test), strict=True))
    images = [Part(f"{split}-images-idx3-ubyte", split, n, (_IMAGES, n)) for split, n in counts]
    labels = [Part(f"{split}-labels-idx1-ubyte", split, 0, (_LABELS, n)) for split, n in counts]
    return images + labels


def content(part: Part, seed: int) -> Iterator[bytes]:
    """Yield an idx file of images (n, 28, 28) or of labels (n,), both uint8."""
    import numpy as np

    from cotenant.datasets.drawing.strokes import draw_digits
    from cotenant.datasets.idx import idx_header

    kind, count = part.arguments
    split = _SPLITS.index(part.split)
    labels = np.random.default_rng([seed, split, _LABELS]).permutation(np.arange(count) % 10).astype(np.uint8)
    if kind == _LABELS:
        yield idx_header(labels.dtype, labels.shape)
        yield labels.tobytes()
        return
    yield idx_header(labels.dtype, (count, SIDE, SIDE))
    random = np.random.default_rng([seed, split, _IMAGES])
    for start in range(0, count, DIGITS_PER_PIECE):
        yield draw_digits(labels[start : start + DIGITS_PER_PIECE], random).tobytes()


MNIST = Maker(
    name="mnist",
    folder="mnist",
    about="28 x 28 digits in idx files",
    version=1,
    sizes={"small": recipe(6_000, 1_000), "full": recipe(60_000, 10_000)},
    content=content,
)
