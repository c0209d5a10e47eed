"""MNIST in its own idx files: digits written by a random hand, or the published ones.

A digit is drawn by a pen that follows a skeleton, bent, slanted and scaled anew for each. An idx file is two zero
bytes, a type, the number of dimensions, the dimensions, the values, all big-endian.
Source: http://yann.lecun.com/exdb/mnist/
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cotenant.datasets.dataset import ALL, VALIDATION, Dataset, File, Half, Recipe, published, seeded
from cotenant.datasets.unpack import DamagedArchiveError

SIDE = 28
POINTS = 40
DIGITS_PER_PIECE = 1000
_IMAGES, _LABELS = 0, 1
_UINT8 = 8
_SPLITS = ("train", "t10k")
_SUFFIXES = ("images-idx3-ubyte", "labels-idx1-ubyte")
_TRAIN, _TEST = ([f"{split}-{suffix}" for suffix in _SUFFIXES] for split in _SPLITS)

# Corners of the ten digits in a unit box, x to the right and y down.
_SKELETONS: tuple[tuple[tuple[float, float], ...], ...] = (
    ((0.5, 0.0), (0.15, 0.2), (0.05, 0.55), (0.25, 0.95), (0.6, 1.0), (0.9, 0.7), (0.9, 0.3), (0.5, 0.0)),
    ((0.35, 0.2), (0.55, 0.0), (0.52, 0.5), (0.5, 1.0)),
    ((0.1, 0.2), (0.45, 0.0), (0.85, 0.2), (0.7, 0.5), (0.1, 0.95), (0.5, 0.9), (0.95, 0.95)),
    ((0.15, 0.1), (0.6, 0.0), (0.8, 0.25), (0.4, 0.47), (0.85, 0.7), (0.6, 1.0), (0.1, 0.9)),
    ((0.2, 0.0), (0.1, 0.55), (0.85, 0.5), (0.75, 0.1), (0.72, 0.5), (0.7, 1.0)),
    ((0.9, 0.0), (0.25, 0.05), (0.2, 0.45), (0.7, 0.45), (0.85, 0.75), (0.5, 1.0), (0.1, 0.9)),
    ((0.7, 0.0), (0.25, 0.4), (0.1, 0.8), (0.5, 1.0), (0.85, 0.75), (0.55, 0.55), (0.15, 0.75)),
    ((0.05, 0.05), (0.5, 0.05), (0.9, 0.05), (0.6, 0.5), (0.4, 1.0)),
    ((0.8, 0.15), (0.4, 0.0), (0.2, 0.25), (0.8, 0.7), (0.5, 1.0), (0.15, 0.75), (0.6, 0.45), (0.8, 0.15)),
    ((0.8, 0.25), (0.4, 0.5), (0.15, 0.25), (0.5, 0.0), (0.8, 0.2), (0.75, 0.6), (0.6, 1.0)),
)


def recipe(train: int, test: int) -> Recipe:
    """Return the recipe of a set with this many train and test images."""
    headers = 2 * (16 + 8)
    return Recipe((train + test) * (SIDE * SIDE + 1) + headers, partial(_files, train, test))


def _files(train: int, test: int) -> list[File]:
    counts = tuple(zip(_SPLITS, (train, test), strict=True))
    images = [File(f"{split}-{_SUFFIXES[_IMAGES]}", split, n, (_IMAGES, n)) for split, n in counts]
    labels = [File(f"{split}-{_SUFFIXES[_LABELS]}", split, 0, (_LABELS, n)) for split, n in counts]
    return images + labels


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
    """Return one image (n, 28, 28) per label (n,): four fifths background, on average 1/8 bright."""
    paths = _resample(np.stack([_evenly(np.array(skeleton)) for skeleton in _SKELETONS])[labels], random)
    pen = random.uniform(0.8, 1.25, (len(labels), 1, 1)).astype(np.float32)
    pixels = np.arange(SIDE, dtype=np.float32)
    columns = np.exp(-((pixels - paths[:, :, :1]) ** 2) / (2 * pen**2))
    rows = np.exp(-((pixels - paths[:, :, 1:]) ** 2) / (2 * pen**2))
    ink = rows.transpose(0, 2, 1) @ columns
    image: NDArray[np.uint8] = (255 * np.clip(0.7 * ink - 0.3, 0.0, 1.0)).astype(np.uint8)
    return image


def _evenly(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return POINTS points (POINTS, 2) at equal distances along the line through these corners."""
    lengths = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(corners, axis=0).T))])
    places = np.linspace(0.0, lengths[-1], POINTS)
    return np.stack([np.interp(places, lengths, corners[:, axis]) for axis in (0, 1)], axis=1)


def _resample(paths: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float32]:
    """Return the unit-box paths (n, POINTS, 2) in pixels: bent by slow waves, slanted, scaled."""
    n = len(paths)
    time = np.linspace(0.0, 1.0, POINTS)[None, :, None]
    waves = random.integers(1, 4, (n, 1, 2))
    bend = random.normal(0.0, 0.05, (n, 1, 2)) * np.sin(2 * np.pi * (waves * time + random.random((n, 1, 2))))
    centred = paths - 0.5 + bend
    centred[:, :, 0] += random.normal(-0.1, 0.15, (n, 1)) * centred[:, :, 1]
    extent = random.normal((13.0, 18.0), 1.2, (n, 1, 2))
    centre = random.normal(SIDE / 2 - 0.5, 0.6, (n, 1, 2))
    return (centred * extent + centre).astype(np.float32)


def idx_header(shape: tuple[int, ...]) -> bytes:
    """Return the header of an idx file of bytes."""
    return struct.pack(f">4s{len(shape)}I", bytes([0, 0, _UINT8, len(shape)]), *shape)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Return the bytes of an idx file as a writable array of its shape; raises ValueError where it is damaged."""
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
    rules={r"(\w+-(?:images-idx3|labels-idx1)-ubyte)": r"\1"},
    check=_check,
)
