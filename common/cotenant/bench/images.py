"""Image files: found in folders, read one by one, and sentences for those that are not there or are broken.

How a file is read is the benchmark's own function of its path; `decoders` has those that several of them share.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch
from PIL import Image
from torch.utils.data import Dataset

from cotenant.bench.outcome import MissingDataError, outcome_of

EXTENSIONS = (".jpeg", ".jpg", ".png")
Read = Callable[[str], torch.Tensor]

# For what is no whole image Pillow raises all of these but RuntimeError, which is torchvision's.
_BROKEN = (OSError, RuntimeError, SyntaxError, ValueError, Image.DecompressionBombError)

_PLACE = re.compile(r"^\S+, \S+\.cpp:\d+, ")
"""Where in its sources torchvision has raised something."""


class Paths:
    """Many paths in one piece of memory.

    Of as many strings each loader process would come to own a copy, by counting references to them.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        names = [os.fsencode(path) for path in paths]
        self._names = b"".join(names)
        self._ends = torch.tensor([0, *map(len, names)]).cumsum(0)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: int) -> str:
        start, end = self._ends[index : index + 2].tolist()
        return os.fsdecode(self._names[start:end])


class Images(Dataset[Any]):
    """The images of these files, each with its label where there are labels.

    Raises MissingDataError for one that cannot be decoded, naming it; `remedy` says how the set is made.
    """

    def __init__(self, paths: Paths, read: Read, remedy: str, labels: torch.Tensor | None = None) -> None:
        self.paths, self._read, self._remedy, self._labels = paths, read, remedy, labels

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        path = self.paths[index]
        try:
            image = self._read(path)
        except _BROKEN as error:
            if outcome_of(error)[0] != "failed":  # Memory ran out, and the file is as good as any.
                raise
            # In one line: of what a loader process raises, the last one is shown.
            reason = _PLACE.sub("", str(error).partition("\n")[0]).rstrip(".")
            raise MissingDataError(
                f"{path} cannot be decoded: {reason}.", f"Remove it, or move its set away first. {self._remedy}"
            ) from error
        return image if self._labels is None else (image, int(self._labels[index]))


@dataclass(frozen=True, slots=True)
class ClassFolders:
    """What lies in one folder per class: files, their labels, and the names that the labels count."""

    paths: Paths
    labels: torch.Tensor
    classes: list[str]


def class_folders(root: Path, remedy: str) -> ClassFolders:
    """Return the images in the folders of `root`, in the order of their names; labels count the folders from 0.

    Raises MissingDataError where there are none, or a folder among them is empty or unreadable.
    """
    try:
        with os.scandir(root) as entries:
            classes = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        _unreadable(error, remedy)
    if not classes:
        raise MissingDataError(f"{root} holds no folders of images, one for each class.", remedy)
    found = [images_below(root / name, remedy) for name in classes]
    labels = torch.arange(len(classes)).repeat_interleave(torch.tensor([len(paths) for paths in found]))
    return ClassFolders(Paths(path for paths in found for path in paths), labels, classes)


def images_below(folder: Path, remedy: str) -> list[str]:
    """Return the JPEG and PNG files anywhere below `folder`, by name. Raises MissingDataError where there are none."""
    found = [
        f"{place}/{name}"
        for place, _, names in os.walk(folder, onerror=lambda error: _unreadable(error, remedy), followlinks=True)
        for name in names
        if name.lower().endswith(EXTENSIONS)
    ]
    if not found:
        raise MissingDataError(f"{folder} holds no JPEG or PNG files.", remedy)
    return sorted(found)


def _unreadable(error: OSError, remedy: str) -> NoReturn:
    raise MissingDataError(f"{error.filename} cannot be read: {error.strerror}.", remedy) from error
