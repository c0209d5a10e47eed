"""COCO 2017: the pictures and their objects; captions and key points stay packed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from cotenant.datasets.real.real_set import ALL, VALIDATION, Half, RealSet, count_files, matching
from cotenant.datasets.real.sources import archives
from cotenant.datasets.unpacking import unpack

_ANNOTATIONS = "annotations_trainval2017.zip"
_PICTURE_BYTES = {"train2017": 19_300_000_000, "val2017": 815_000_000}
_OBJECT_BYTES = {"train2017": 470_000_000, "val2017": 20_000_000}


def _lay_out(splits: tuple[str, ...]) -> Callable[[Mapping[str, Path], Path], None]:
    wanted = "|".join(splits)
    place = matching({rf"(annotations/instances_(?:{wanted})\.json|(?:{wanted})/\d+\.jpg)": r"\1"})

    def lay_out(packed: Mapping[str, Path], folder: Path) -> None:
        for split in splits:
            unpack(packed[f"{split}.zip"], folder, place, _PICTURE_BYTES[split])
        unpack(packed[_ANNOTATIONS], folder, place, sum(_OBJECT_BYTES[split] for split in splits))

    return lay_out


def _count(splits: tuple[str, ...], folder: Path) -> dict[str, int]:
    return {split: count_files(folder / split, ".jpg") for split in splits}


def _half(splits: tuple[str, ...], links: Mapping[str, str]) -> Half:
    return Half(
        archives(_ANNOTATIONS, *(f"{split}.zip" for split in splits)),
        sum(_PICTURE_BYTES[split] + _OBJECT_BYTES[split] for split in splits),
        tuple(path for split in splits for path in (f"annotations/instances_{split}.json", split)),
        _lay_out(splits),
        partial(_count, splits),
        links,
    )


COCO = RealSet(
    name="coco",
    folder="coco",
    about="JPEG files of about 640 x 480, their objects in JSON",
    version=1,
    halves={
        ALL: _half(("train2017", "val2017"), {}),
        VALIDATION: _half(
            ("val2017",),
            {"train2017": "val2017", "annotations/instances_train2017.json": "instances_val2017.json"},
        ),
    },
)
