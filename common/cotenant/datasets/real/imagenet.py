"""ImageNet (ILSVRC 2012): class folders, out of the official tar files, which nobody may hand on."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from cotenant.datasets.real.real_set import ALL, VALIDATION, Half, RealSet, count_files, matching
from cotenant.datasets.real.sources import archives
from cotenant.datasets.unpacking import (
    DamagedArchiveError,
    Member,
    Place,
    explained_damage,
    of_tar,
    opened_tar,
    unpack,
    write,
)

_TRAIN, _VAL, _KIT = "ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar", "ILSVRC2012_devkit_t12.tar.gz"
_TRAIN_BYTES, _VAL_BYTES, _KIT_BYTES = 147_000_000_000, 6_700_000_000, 20_000_000
_VAL_NAME = re.compile(r"(ILSVRC2012_val_(\d{8})\.JPEG)")
_CLASS = re.compile(r"(n\d{8})\.tar")


def _lay_out_all(packed: Mapping[str, Path], folder: Path) -> None:
    with explained_damage(), opened_tar(packed[_TRAIN]) as outer:
        place = matching({r"(n\d{8})_(\d+\.JPEG)": r"train/\1/\1_\2"})
        write(_of_classes(outer), folder, place, _TRAIN_BYTES, _TRAIN)
    _lay_out_val(packed, folder)


def _of_classes(outer: tarfile.TarFile) -> Iterator[Member]:
    """Yield the pictures in the tar files of the classes that lie in the one tar file."""
    for member in of_tar(outer):
        if member.is_file and _CLASS.fullmatch(member.name.removeprefix("./")):
            with member.open() as file, tarfile.open(fileobj=file, mode="r|") as inner:
                yield from of_tar(inner)


def _lay_out_val(packed: Mapping[str, Path], folder: Path) -> None:
    unpack(packed[_VAL], folder, _val_place(_val_classes(packed[_KIT])), _VAL_BYTES)


def _val_place(classes: list[str]) -> Place:
    """Return the place of the picture that has a number: the folder of its class."""

    def place(name: str) -> str | None:
        found = _VAL_NAME.fullmatch(name.removeprefix("./"))
        if found is None:
            return None
        number = int(found[2])
        if not 1 <= number <= len(classes):
            raise DamagedArchiveError(f"holds {name}, and the development kit knows {len(classes)} pictures")
        return f"val/{classes[number - 1]}/{found[1]}"

    return place


def _val_classes(kit: Path) -> list[str]:
    """Return the class of each validation picture, in the order of their numbers, from the development kit."""
    from scipy.io import loadmat

    found: dict[str, bytes] = {}
    with explained_damage(), opened_tar(kit) as tar:
        for member in of_tar(tar):
            name = member.name.rpartition("/")[2]
            if member.is_file and name in ("meta.mat", "ILSVRC2012_validation_ground_truth.txt"):
                with member.open() as file:
                    found[name] = file.read(_KIT_BYTES)
    try:
        synsets = loadmat(io.BytesIO(found["meta.mat"]), squeeze_me=True)["synsets"]
        class_of = {int(one["ILSVRC2012_ID"]): str(one["WNID"]) for one in synsets if int(one["num_children"]) == 0}
        return [class_of[int(number)] for number in found["ILSVRC2012_validation_ground_truth.txt"].split()]
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise DamagedArchiveError(f"does not name the classes of the validation pictures: {error!r}") from error


def _count(splits: tuple[str, ...], folder: Path) -> dict[str, int]:
    return {split: count_files(folder / split, ".jpeg") for split in splits}


IMAGENET = RealSet(
    name="imagenet",
    folder="ImageNet",
    about="JPEG files in class folders, train and val",
    version=1,
    halves={
        ALL: Half(
            archives(_TRAIN, _VAL, _KIT),
            _TRAIN_BYTES + _VAL_BYTES,
            ("train", "val"),
            _lay_out_all,
            partial(_count, ("train", "val")),
        ),
        VALIDATION: Half(
            archives(_VAL, _KIT), _VAL_BYTES, ("val",), _lay_out_val, partial(_count, ("val",)), {"train": "val"}
        ),
    },
    gated="https://image-net.org/download.php",
)
