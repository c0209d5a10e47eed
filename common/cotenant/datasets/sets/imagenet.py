"""ImageNet's layout: JPEG files in one folder per class.

The published set (ILSVRC 2012) is made from the official tar files, which must not be redistributed.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cotenant.datasets.dataset import ALL, RAW, VALIDATION, Dataset, File, Half, Recipe, count_pictures, published
from cotenant.datasets.drawing import BYTES_PER_PIXEL, photograph
from cotenant.datasets.unpack import DamagedArchiveError

_META, _TRUTH = "meta.mat", "ILSVRC2012_validation_ground_truth.txt"
_RULES = {
    r"(n\d{8})_(\d+\.JPEG)": r"train/\1/\1_\2",
    rf"ILSVRC2012_devkit_t12/data/({_META}|{_TRUTH})": rf"{RAW}/\1",
    r"(ILSVRC2012_val_\d{8}\.JPEG)": rf"{RAW}/\1",
}
# These have no URL: a person asks for them.
_ARCHIVES = published("imagenet")


def recipe(classes: int, train: int, val: int, width: int, height: int, jitter: int = 0) -> Recipe:
    """Return the recipe of a set with this many pictures in all, each of about this size in pixels.

    With `jitter`, width and height vary by up to so many pixels, and a quarter of the pictures stands upright.
    """

    def files() -> Iterator[File]:
        for split, count in (("train", train), ("val", val)):
            for index in range(count):
                number, label = divmod(index, classes)
                path = f"{split}/n{label:08d}/n{label:08d}_{number}.JPEG"
                yield File(path, split, 1, (label, width, height, jitter))

    return Recipe(round((train + val) * (width * height * BYTES_PER_PIXEL + 1024)), files)


def content(file: File) -> Iterator[bytes]:
    """Yield one RGB JPEG file, drawn in the style of its class."""
    label, width, height, jitter = file.arguments
    yield photograph(file.path, label, width, height, jitter=jitter, upright=0.25 if jitter else 0.0)


def _prepare(folder: Path) -> None:
    """Move each validation picture to the folder of its class, which the development kit tells."""
    classes = _val_classes(folder / RAW)
    for picture in sorted((folder / RAW).glob("*.JPEG")):
        number = int(picture.stem.rpartition("_")[2])
        if not 1 <= number <= len(classes):
            raise DamagedArchiveError(f"holds {picture.name}, and the development kit knows {len(classes)} pictures")
        target = folder / "val" / classes[number - 1] / picture.name
        target.parent.mkdir(parents=True, exist_ok=True)
        picture.rename(target)


def _val_classes(kit: Path) -> list[str]:
    """Return the class of each validation picture, in the order of their numbers."""
    from scipy.io import loadmat

    try:
        synsets = loadmat(io.BytesIO((kit / _META).read_bytes()), squeeze_me=True)["synsets"]
        class_of = {int(row["ILSVRC2012_ID"]): str(row["WNID"]) for row in synsets if int(row["num_children"]) == 0}
        return [class_of[int(number)] for number in (kit / _TRUTH).read_bytes().split()]
    except (FileNotFoundError, KeyError, ValueError, IndexError, TypeError) as error:
        raise DamagedArchiveError(f"does not name the classes of the validation pictures: {error!r}") from error


DATASET = Dataset(
    name="imagenet",
    folder="ImageNet",
    about="JPEG files in class folders, train and val",
    sizes={
        "small": recipe(classes=10, train=400, val=40, width=500, height=375, jitter=24),
        "full": recipe(classes=1000, train=102_400, val=2_560, width=512, height=512),
    },
    content=content,
    halves={
        ALL: Half(_ARCHIVES, 153_700_000_000, ("train", "val")),
        VALIDATION: Half(_ARCHIVES[1:], 6_700_000_000, ("val",), {"train": "val"}),
    },
    rules=_RULES,
    check=partial(count_pictures, "*"),
    prepare=_prepare,
    gated="https://image-net.org/download.php",
)
