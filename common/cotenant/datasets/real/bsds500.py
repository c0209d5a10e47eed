"""BSDS500: its pictures, without the drawn boundaries and the programs that come with them.

Source: https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/resources.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from cotenant.datasets.real.real_set import ALL, VALIDATION, Half, RealSet, count_files, matching
from cotenant.datasets.real.sources import archives
from cotenant.datasets.unpacking import unpack

_BYTES = {"train": 15_000_000, "val": 8_000_000, "test": 15_000_000}


def _lay_out(splits: tuple[str, ...]) -> Callable[[Mapping[str, Path], Path], None]:
    place = matching({rf"BSR/BSDS500/(data/images/(?:{'|'.join(splits)})/\w+\.jpg)": r"\1"})

    def lay_out(packed: Mapping[str, Path], folder: Path) -> None:
        for archive in packed.values():
            unpack(archive, folder, place, sum(_BYTES[split] for split in splits))

    return lay_out


def _count(splits: tuple[str, ...], folder: Path) -> dict[str, int]:
    return {split: count_files(folder / "data" / "images" / split, ".jpg") for split in splits}


def _half(splits: tuple[str, ...], links: Mapping[str, str]) -> Half:
    return Half(
        archives("BSR_bsds500.tgz"),
        sum(_BYTES[split] for split in splits),
        tuple(f"data/images/{split}" for split in splits),
        _lay_out(splits),
        partial(_count, splits),
        links,
    )


BSDS500 = RealSet(
    name="bsds500",
    folder="BSDS500",
    about="481 x 321 JPEG files, train, val and test",
    version=1,
    halves={
        ALL: _half(("train", "val", "test"), {}),
        VALIDATION: _half(("val",), {"data/images/train": "val"}),
    },
)
