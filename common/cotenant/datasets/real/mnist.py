"""MNIST: idx files, unpacked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cotenant.datasets.real.real_set import ALL, VALIDATION, Half, RealSet
from cotenant.datasets.real.sources import archives
from cotenant.datasets.unpacking import DamagedArchiveError, unpack_gzip
from cotenant.errors import CotenantError

_IMAGES, _LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"
_TRAIN = (f"train-{_IMAGES}", f"train-{_LABELS}")
_TEST = (f"t10k-{_IMAGES}", f"t10k-{_LABELS}")
_LARGEST_BYTES = 47_040_016


def _lay_out(packed: Mapping[str, Path], folder: Path) -> None:
    for name, archive in packed.items():
        unpack_gzip(archive, folder / name.removesuffix(".gz"), _LARGEST_BYTES)


def _count(folder: Path) -> dict[str, int]:
    from cotenant.datasets.idx import read_idx

    counts = {}
    for images in sorted(folder.glob(f"*-{_IMAGES}")):
        split = images.name.partition("-")[0]
        try:
            pixels, labels = read_idx(images).shape, read_idx(folder / f"{split}-{_LABELS}").shape
        except CotenantError as error:
            raise DamagedArchiveError(f"holds no idx files: {error.sentence}") from error
        if pixels[:1] != labels:
            raise DamagedArchiveError(f"holds images and labels of the shapes {pixels} and {labels}")
        counts[split] = labels[0]
    return counts


def _gzipped(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}.gz" for name in names)


MNIST = RealSet(
    name="mnist",
    folder="mnist",
    about="28 x 28 digits in idx files",
    version=1,
    halves={
        ALL: Half(archives(*_gzipped(_TRAIN + _TEST)), 54_950_048, _TRAIN + _TEST, _lay_out, _count),
        VALIDATION: Half(
            archives(*_gzipped(_TEST)),
            7_850_024,
            _TEST,
            _lay_out,
            _count,
            links=dict(zip(_TRAIN, _TEST, strict=True)),
        ),
    },
)
