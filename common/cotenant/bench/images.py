"""Image files: found in folders, decoded, cropped, and errors for missing or broken ones.

Pixels are bytes (3, height, width). They become numbers on the device: a quarter of the traffic, and one pass.
"""

from __future__ import annotations

import math
import os
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import interpolate
from torch.utils.data import Dataset
from torchvision.io import ImageReadMode, decode_image, decode_jpeg, read_file
from torchvision.transforms.v2.functional import to_dtype

from cotenant.bench.chrono import clock_ns
from cotenant.bench.outcome import MissingDataError, UnsupportedError, reason_of

EXTENSIONS = (".jpeg", ".jpg", ".png")
Read = Callable[[str], Tensor]

# Pillow raises any of these for a broken file, except RuntimeError, which is torchvision's.
_BROKEN = (OSError, RuntimeError, SyntaxError, ValueError, Image.DecompressionBombError)

_PLACE = re.compile(r"^\S+, \S+\.cpp:\d+, ")
"""The place in torchvision's sources at the start of its error messages."""


class Paths:
    """Many paths in one piece of memory.

    Each loader process would copy a list of strings page by page, as counting references writes to them.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._names = np.array([os.fsencode(path) for path in paths], np.bytes_)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: int) -> str:
        return os.fsdecode(self._names[index])


class Images(Dataset[Any]):
    """The images of these files, each with its label if there are labels.

    Raises MissingDataError, with the file's name, for one that cannot be decoded; `remedy` says how the set is made.
    """

    def __init__(self, paths: Paths, read: Read, remedy: str, labels: Tensor | None = None) -> None:
        self.paths, self._read, self._remedy, self._labels = paths, read, remedy, labels

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        path = self.paths[index]
        try:
            image = self._read(path)
        except _BROKEN as error:
            # In one line, as only the last line of an error in a loader process is shown.
            reason = _PLACE.sub("", reason_of(error))
            raise MissingDataError(
                f"{path} cannot be decoded: {reason}.", f"Remove it, or move its set away first. {self._remedy}"
            ) from error
        return image if self._labels is None else (image, int(self._labels[index]))


@dataclass(frozen=True, slots=True)
class ClassFolders:
    """The contents of one folder per class: files, labels, and the class names in the order of the labels."""

    paths: Paths
    labels: Tensor
    classes: list[str]


def class_folders(root: Path, remedy: str) -> ClassFolders:
    """Return the images in the folders of `root`, in the order of their names; labels count the folders from 0.

    Raises MissingDataError if there are no folders, or if one of them is empty or unreadable.
    """
    try:
        with os.scandir(root) as entries:
            classes = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        _unreadable(error, remedy)
    if not classes:
        raise MissingDataError(f"{root} holds no folders of images, one for each class.", remedy)
    files = [images_below(root / name, remedy) for name in classes]
    labels = torch.arange(len(classes)).repeat_interleave(torch.tensor([len(paths) for paths in files]))
    return ClassFolders(Paths(path for paths in files for path in paths), labels, classes)


def images_below(folder: Path, remedy: str) -> list[str]:
    """Return the JPEG and PNG files anywhere below `folder`, by name. Raises MissingDataError if there are none."""
    files = [
        f"{place}/{name}"
        for place, _, names in os.walk(folder, onerror=lambda error: _unreadable(error, remedy), followlinks=True)
        for name in names
        if name.lower().endswith(EXTENSIONS)
    ]
    if not files:
        raise MissingDataError(f"{folder} holds no JPEG or PNG files.", remedy)
    return sorted(files)


def _unreadable(error: OSError, remedy: str) -> NoReturn:
    raise MissingDataError(f"{error.filename} cannot be read: {error.strerror}.", remedy) from error


MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's pixels
LEAST_AREA, LARGEST_RATIO, TRIES = 0.08, 4 / 3, 10
SAMPLES, ROUNDS = 8, 3
CLEARLY = 0.9
"""The usual decoder stays unless another one takes less than this share of its time."""


class Normalise:
    """Turns bytes (batch, 3, height, width) on a device into numbers, normalised by ImageNet's mean and deviation."""

    def __init__(self, device: torch.device) -> None:
        self._mean, self._std = (255 * torch.tensor(of_rgb, device=device).view(3, 1, 1) for of_rgb in (MEAN, STD))

    def __call__(self, pixels_b3hw: Tensor) -> Tensor:
        # Subtracting from bytes at once is slower on a CPU.
        return pixels_b3hw.float().sub_(self._mean).div_(self._std)


def whole_image(path: str) -> Tensor:
    """Return the whole image, (3, height, width)."""
    image = decode_image(path, ImageReadMode.RGB)
    # A PNG file may have 16 bits.
    return image if image.dtype == torch.uint8 else to_dtype(image, torch.uint8, scale=True)


def crop_by_torchvision(path: str, size: int) -> Tensor:
    """Return a random part of the image, flipped or not, as (3, size, size)."""
    return _random_crop(whole_image(path), size)


def _random_crop(image: Tensor, size: int) -> Tensor:
    top, left, height, width = random_box(image.size(1), image.size(2))
    part = image[None, :, top : top + height, left : left + width]
    # Devices resize floats only.
    numbers = part.float() if part.is_cuda else part
    crop = interpolate(numbers, (size, size), mode="bilinear", antialias=True)[0]
    return crop.flip(2) if random.random() < 0.5 else crop


encoded: Read = read_file
"""Reads a file as it is, (bytes), for benchmarks that decode on a device."""


def files_and_labels(samples: list[tuple[Tensor, int]]) -> tuple[list[Tensor], Tensor]:
    """Return a batch of encoded images, of different sizes, and their labels (batch)."""
    files, labels = zip(*samples, strict=True)
    return list(files), torch.tensor(labels)


def crops_by_nvjpeg(files: list[Tensor], size: int, device: torch.device, remedy: str) -> Tensor:
    """Return a random part of each JPEG file, flipped or not, decoded on the device, as (files, 3, size, size).

    Raises MissingDataError for a file that is no JPEG, and UnsupportedError if torchvision was built without nvJPEG.
    """
    try:
        images = decode_jpeg(files, ImageReadMode.RGB, device=device)
    except RuntimeError as error:
        reason = _PLACE.sub("", reason_of(error))
        if "compiled" in reason:
            raise UnsupportedError(
                f"torchvision cannot decode on a device: {reason}.", "Use --decoder auto."
            ) from error
        raise MissingDataError(
            f"nvJPEG cannot decode a file of this batch: {reason}.", f"Use --decoder auto, which names it. {remedy}"
        ) from error
    return torch.stack([_random_crop(image, size) for image in images])


def crop_by_pil(path: str, size: int) -> Tensor:
    """Return a random part of the image, flipped or not, as (3, size, size)."""
    with Image.open(path) as image:
        width, height = image.size
        top, left, part_height, part_width = random_box(height, width)
        if (shrink := min(part_height, part_width) // size) > 1:
            # The decoder leaves out frequencies too high for this size: for a photograph, most of the work.
            image.draft("RGB", (width // shrink, height // shrink))
        left_x, right_x = (x * image.width / width for x in (left, left + part_width))
        upper_y, lower_y = (y * image.height / height for y in (top, top + part_height))
        box = (left_x, upper_y, right_x, lower_y)
        crop = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR, box)
    if random.random() < 0.5:
        crop = crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return _pixels(crop)


def middle_square(path: str, size: int) -> Tensor:
    """Return the largest square in the middle of the image, decoded whole, as (3, size, size)."""
    with Image.open(path) as image:
        side, (width, height) = min(image.size), image.size
        left, upper = (width - side) / 2, (height - side) / 2
        square = (left, upper, left + side, upper + side)
        return _pixels(image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR, square))


def random_box(height: int, width: int) -> tuple[int, int, int, int]:
    """Return top, left, height and width of 8 % to 100 % of an image, its sides in proportions from 3:4 to 4:3.

    Like torchvision's RandomResizedCrop, draw a box again if it does not fit; after TRIES, take the whole image.
    """
    span = math.log(LARGEST_RATIO)
    for _ in range(TRIES):
        area, ratio = height * width * random.uniform(LEAST_AREA, 1), math.exp(random.uniform(-span, span))
        box_height, box_width = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
        if 0 < box_height <= height and 0 < box_width <= width:
            return random.randint(0, height - box_height), random.randint(0, width - box_width), box_height, box_width
    return 0, 0, height, width


DECODERS = {"torchvision": crop_by_torchvision, "pil": crop_by_pil}
USUAL = "torchvision"


def times_ms(paths: Paths, size: int, remedy: str) -> dict[str, float]:
    """Return the milliseconds each decoder takes for a crop of some of these files: the best of a few rounds.

    Raises MissingDataError for a file that cannot be decoded. Leaves the random generator as it was.
    """
    chosen = range(0, len(paths), max(1, len(paths) // SAMPLES))[:SAMPLES]
    state, best = random.getstate(), dict.fromkeys(DECODERS, math.inf)
    for _ in range(ROUNDS):
        for name, crop in DECODERS.items():
            random.setstate(state)  # The same crops for each.
            images = Images(paths, partial(crop, size=size), remedy)
            start_ns = clock_ns()
            for index in chosen:
                images[index]
            best[name] = min(best[name], (clock_ns() - start_ns) / len(chosen) / 1e6)
    random.setstate(state)
    return best


def fastest(taken_ms: dict[str, float]) -> str:
    """Return the decoder to take: the usual one, unless another is clearly faster."""
    name = min(taken_ms, key=taken_ms.__getitem__)
    return name if taken_ms[name] < CLEARLY * taken_ms[USUAL] else USUAL


def _pixels(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)
