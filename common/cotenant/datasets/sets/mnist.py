"""MNIST in its own idx files: digits written by a random hand, or the published ones.

A digit is drawn by a pen that follows a skeleton, bent, slanted and scaled anew for each. An idx file is two zero
bytes, a type, the number of dimensions, the dimensions, the values, all big-endian.
Source: http://yann.lecun.com/exdb/mnist/
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cotenant.datasets.dataset import ALL, VALIDATION, Dataset, File, Half, Recipe, published
from cotenant.datasets.unpack import DamagedArchiveError
from cotenant.errors import CotenantError

SIDE = 28
POINTS = 40
DIGITS_PER_PIECE = 1000
_IMAGES, _LABELS = 0, 1
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


_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: "i2", 0x0C: "i4", 0x0D: "f4", 0x0E: "f8"}
_MAX_DIMENSIONS = 8
_GZIP_MAGIC = b"\x1f\x8b"


def idx_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of an idx file; raises ValueError for a type or shape that the format cannot hold."""
    code = {name: code for code, name in _TYPES.items()}.get(dtype.str[1:])
    if code is None:
        raise ValueError(f"idx files cannot hold {dtype}")
    if not 1 <= len(shape) <= _MAX_DIMENSIONS or not all(0 < extent < 2**32 for extent in shape):
        raise ValueError(f"idx files cannot hold the shape {shape}")
    return struct.pack(f">HBB{len(shape)}I", 0, code, len(shape), *shape)


def read_idx(path: Path | str) -> NDArray[Any]:
    """Return the array of an idx file, plain or gzipped: writable, in the processor's own byte order.

    Raises CotenantError where the file is missing, unreadable, or not of the length that it declares.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP_MAGIC):
            data = gzip.decompress(data)
    except FileNotFoundError:
        remedy = f"Make the set first: python -m cotenant.datasets mnist --root {path.absolute().parent.parent}"
        raise CotenantError(f"There is no {path}.", remedy) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(path, f"its gzip stream is broken ({error})") from None
    except OSError as error:
        raise CotenantError(f"{path} cannot be read: {error.strerror}.", "Mend its permissions or its disk.") from None
    return _decode(data, path)


def _decode(data: bytes, path: Path) -> NDArray[Any]:
    """Return the array that these bytes of an idx file declare."""
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _TYPES or not 1 <= data[3] <= _MAX_DIMENSIONS:
        raise _damaged(path, f"it begins with {data[:4].hex(' ') or 'nothing'}, which is no idx header")
    start = 4 + 4 * data[3]
    if len(data) < start:
        raise _damaged(path, f"it ends inside its header, after {len(data)} bytes")
    shape = struct.unpack_from(f">{data[3]}I", data, 4)
    dtype = np.dtype(_TYPES[data[2]]).newbyteorder(">")
    expected = start + math.prod(shape) * dtype.itemsize
    if 0 in shape or len(data) != expected:
        raise _damaged(path, f"it declares the shape {shape}, of {expected:,} bytes in all, and has {len(data):,}")
    values = np.frombuffer(data, dtype, offset=start).reshape(shape)
    return values.astype(dtype.newbyteorder("="))


def _damaged(path: Path, why: str) -> CotenantError:
    folder = path.absolute().parent
    return CotenantError(
        f"{path} is not a complete idx file: {why}.",
        f"Move {folder} away, then make the set: python -m cotenant.datasets mnist --root {folder.parent}",
    )


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
