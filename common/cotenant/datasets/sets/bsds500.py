"""BSDS500's layout: JPEG files of 481 x 321 pixels, lying or standing, in one folder per split.

Of the published set only the pictures are taken, without the drawn boundaries and programs that come with them.
Source: https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/resources.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from cotenant.datasets.dataset import ALL, VALIDATION, Dataset, File, Half, Recipe, count_pictures, published
from cotenant.datasets.drawing import BYTES_PER_PIXEL, photograph

WIDTH, HEIGHT = 481, 321
_ARCHIVES = published("bsds500")


def recipe(pictures: Mapping[str, int]) -> Recipe:
    """Return the recipe of a set with this many pictures in each split."""

    def files() -> Iterator[File]:
        for number, (split, count) in enumerate(pictures.items(), 1):
            for name in range(1000 * number, 1000 * number + count):
                yield File(f"data/images/{split}/{name}.jpg", split, 1, (name,))

    return Recipe(round(sum(pictures.values()) * (WIDTH * HEIGHT * BYTES_PER_PIXEL + 1024)), files)


def content(file: File) -> Iterator[bytes]:
    """Yield one RGB JPEG file; no two show the same kind of scene."""
    (name,) = file.arguments
    yield photograph(file.path, name, WIDTH, HEIGHT, upright=0.3)


DATASET = Dataset(
    name="bsds500",
    folder="BSDS500",
    about="481 x 321 JPEG files, train, val and test",
    sizes={
        "small": recipe({"train": 48, "val": 8, "test": 16}),
        "full": recipe({"train": 200, "val": 100, "test": 200}),
    },
    content=content,
    halves={
        ALL: Half(_ARCHIVES, 38_000_000, ("data/images/train", "data/images/val", "data/images/test")),
        VALIDATION: Half(_ARCHIVES, 8_000_000, ("data/images/val",), {"data/images/train": "val"}),
    },
    rules={r"BSR/BSDS500/(data/images/(?:train|val|test)/\w+\.jpg)": r"\1"},
    check=partial(count_pictures, "data/images/*"),
)
