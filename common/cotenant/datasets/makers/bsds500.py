"""BSDS500's layout: JPEG files of 481 x 321 pixels, lying or standing, in one folder per split."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from cotenant.datasets.maker import Maker, Part, Recipe
from cotenant.datasets.makers.imagenet import BYTES_PER_PIXEL

WIDTH, HEIGHT = 481, 321
STANDING_SHARE = 0.3


def recipe(pictures: Mapping[str, int]) -> Recipe:
    """Return the recipe of a set with this many pictures in each split."""
    estimated_bytes = round(sum(pictures.values()) * (WIDTH * HEIGHT * BYTES_PER_PIXEL + 1024))
    return Recipe(estimated_bytes, partial(_parts, pictures))


def _parts(pictures: Mapping[str, int]) -> Iterator[Part]:
    for number, (split, count) in enumerate(pictures.items(), 1):
        for index in range(count):
            name = 1000 * number + index
            yield Part(f"data/images/{split}/{name}.jpg", split, 1, (name,))


def content(part: Part, seed: int) -> Iterator[bytes]:
    """Yield one RGB JPEG file; no two show the same kind of scene."""
    import numpy as np

    from cotenant.datasets.drawing.photographs import Style, draw_photograph, encode_jpeg

    (name,) = part.arguments
    random = np.random.default_rng([seed, *part.path.encode()])
    standing = random.random() < STANDING_SHARE
    width, height = (HEIGHT, WIDTH) if standing else (WIDTH, HEIGHT)
    yield encode_jpeg(draw_photograph(Style.of_class(name, seed), random, width, height))


BSDS500 = Maker(
    name="bsds500",
    folder="BSDS500",
    about="481 x 321 JPEG files, train, val and test",
    version=1,
    sizes={
        "small": recipe({"train": 48, "val": 8, "test": 16}),
        "full": recipe({"train": 200, "val": 100, "test": 200}),
    },
    content=content,
)
