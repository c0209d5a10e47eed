"""MNIST in its own idx files: digits of a font, each turned, slanted and scaled anew, or the published ones.

An idx file is two zero bytes, a type, the number of dimensions, the dimensions, the values, all big-endian.
Source: http://yann.lecun.com/exdb/mnist/
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from cotenant.datasets.dataset import ALL, VALIDATION, Dataset, File, Half, Recipe, published, seeded
from cotenant.datasets.unpack import DamagedArchiveError

SIDE = 28
DIGITS_PER_PIECE = 1000
_IMAGES, _LABELS = 0, 1
_UINT8 = 8
_SPLITS = ("train", "t10k")
_SUFFIXES = ("images-idx3-ubyte", "labels-idx1-ubyte")
_TRAIN, _TEST = ([f"{split}-{suffix}" for suffix in _SUFFIXES] for split in _SPLITS)


def recipe(train: int, test: int) -> Recipe:
    """Return the recipe of a set with this many train and test images."""
    headers = 2 * (16 + 8)
    files = [
        File(f"{split}-{suffix}", split, n if kind == _IMAGES else 0, (kind, n))
        for kind, suffix in enumerate(_SUFFIXES)
        for split, n in zip(_SPLITS, (train, test), strict=True)
    ]
    return Recipe((train + test) * (SIDE * SIDE + 1) + headers, lambda: files)


def content(file: File) -> Iterator[bytes]:
    """Yield an idx file of images (n, 28, 28) or of labels (n,), both uint8."""
    kind, count = file.arguments
    split = _SPLITS.index(file.split)
    labels = seeded(split, _LABELS).permutation(np.arange(count) % 10).astype(np.uint8)
    if kind == _LABELS:
        yield idx_header(labels.shape)
        yield labels.tobytes()
        return
    yield idx_header((count, SIDE, SIDE))
    random = seeded(split, _IMAGES)
    for start in range(0, count, DIGITS_PER_PIECE):
        yield draw_digits(labels[start : start + DIGITS_PER_PIECE], random).tobytes()


def draw_digits(labels: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
    """Return one image (n, 28, 28) per label (n,): three quarters background, on average 1/8 bright."""
    middle, font = SIDE / 2, ImageFont.load_default(27)
    glyphs = [Image.new("L", (SIDE, SIDE)) for _ in range(10)]
    for digit, glyph in enumerate(glyphs):
        ImageDraw.Draw(glyph).text((middle, middle), str(digit), 255, font, anchor="mm")
    images = []
    for label in labels:
        x, y = middle + random.normal(0.0, 0.6, 2)
        width, height = random.normal(1.0, 0.08, 2)
        slant, turn = random.normal((0.1, 0.0), (0.15, 0.1))
        # The source of each pixel, with the glyph's middle at x, y.
        places = (width, slant, middle - width * x - slant * y, turn, height, middle - turn * x - height * y)
        images.append(glyphs[label].transform((SIDE, SIDE), Image.Transform.AFFINE, places, Image.Resampling.BILINEAR))
    return np.stack(images)


def idx_header(shape: tuple[int, ...]) -> bytes:
    """Return the header of an idx file of bytes."""
    return struct.pack(f">4s{len(shape)}I", bytes([0, 0, _UINT8, len(shape)]), *shape)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Return the bytes of an idx file as a writable array of its shape; raises ValueError if it is damaged."""
    data = bytearray(path.read_bytes())
    start = 4 + 4 * int.from_bytes(data[3:4])
    shape = [int.from_bytes(data[at : at + 4]) for at in range(4, start, 4)]
    if data[:3] != bytes([0, 0, _UINT8]) or len(data) != start + math.prod(shape):
        raise ValueError(f"it is not a complete idx file: {len(data):,} bytes for the shape {shape}")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def _check(folder: Path) -> dict[str, int]:
    counts = {}
    for images in sorted(folder.glob(f"*-{_SUFFIXES[_IMAGES]}")):
        split = images.name.partition("-")[0]
        try:
            pixels, labels = read_idx(images).shape, read_idx(folder / f"{split}-{_SUFFIXES[_LABELS]}").shape
        except (OSError, ValueError) as error:
            raise DamagedArchiveError(f"holds no idx files: of {split} {error}") from error
        if pixels[:1] != labels:
            raise DamagedArchiveError(f"holds images and labels of the shapes {pixels} and {labels}")
        counts[split] = labels[0]
    return counts


_ARCHIVES = published("mnist")
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
    version=2,
    rules={r"(\w+-(?:images-idx3|labels-idx1)-ubyte)": r"\1"},
    check=_check,
)
