"""ImageNet's layout: JPEG files in one folder per class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from cotenant.datasets.maker import Maker, Part, Recipe

# Measured at quality 90 on the pictures that `drawing.photographs` draws, rounded up.
BYTES_PER_PIXEL = 0.37


@dataclass(frozen=True, slots=True)
class Pictures:
    """How many pictures, of how many classes, and how large.

    `jitter` pixels of width and height vary from picture to picture, and with it a quarter stands upright.
    """

    classes: int
    train: int
    val: int
    width: int
    height: int
    jitter: int = 0


def recipe(pictures: Pictures) -> Recipe:
    """Return the recipe of a set of these pictures."""
    total = pictures.train + pictures.val
    estimated_bytes = round(total * (pictures.width * pictures.height * BYTES_PER_PIXEL + 1024))
    return Recipe(estimated_bytes, partial(_parts, pictures))


def _parts(pictures: Pictures) -> Iterator[Part]:
    for split, count in (("train", pictures.train), ("val", pictures.val)):
        for index in range(count):
            number, label = divmod(index, pictures.classes)
            path = f"{split}/n{label:08d}/n{label:08d}_{number}.JPEG"
            yield Part(path, split, 1, (label, pictures.width, pictures.height, pictures.jitter))


def content(part: Part, seed: int) -> Iterator[bytes]:
    """Yield one RGB JPEG file, drawn in the style of its class."""
    import numpy as np

    from cotenant.datasets.drawing.photographs import Style, draw_photograph, encode_jpeg

    label, width, height, jitter = part.arguments
    # Seeded by the path, so a picture does not depend on which worker draws it, or after which one.
    random = np.random.default_rng([seed, *part.path.encode()])
    if jitter:
        width += int(random.integers(-jitter, jitter + 1))
        height += int(random.integers(-jitter, jitter + 1))
        if random.random() < 0.25:
            width, height = height, width
    yield encode_jpeg(draw_photograph(Style.of_class(label, seed), random, width, height))


IMAGENET = Maker(
    name="imagenet",
    folder="ImageNet",
    about="JPEG files in class folders, train and val",
    version=1,
    sizes={
        "small": recipe(Pictures(classes=10, train=400, val=40, width=500, height=375, jitter=24)),
        "full": recipe(Pictures(classes=1000, train=102_400, val=2_560, width=512, height=512)),
    },
    content=content,
)
