"""Every fake set has the published number of items, a true estimate of its size, and bytes that the path decides."""

import itertools
from collections import Counter

import numpy as np
import pytest

from cotenant.datasets.dataset import Dataset, File
from cotenant.datasets.sets import NAMES, coco, find_dataset, ml_20m

ITEMS = {
    "mnist": ({"train": 6_000, "t10k": 1_000}, {"train": 60_000, "t10k": 10_000}),
    "imagenet": ({"train": 400, "val": 40}, {"train": 102_400, "val": 2_560}),
    "coco": ({"train2017": 240, "val2017": 40}, {"train2017": 118_287, "val2017": 5_000}),
    "ml_20m": ({"ratings": 400_000}, {"ratings": 20_000_263}),
    "wmt16": ({"train": 20_000, "newstest2014": 300}, {"train": 4_500_000, "newstest2014": 3_003}),
    "wikitext": (
        {"train": 200_000, "valid": 20_000, "test": 20_000},
        {"train": 2_088_628, "valid": 217_646, "test": 245_569},
    ),
    "wikitext_103": (
        {"train": 400_000, "valid": 20_000, "test": 20_000},
        {"train": 103_227_021, "valid": 217_646, "test": 245_569},
    ),
    "bsds500": ({"train": 48, "val": 8, "test": 16}, {"train": 200, "val": 100, "test": 200}),
}


def size_of(dataset: Dataset, file: File) -> int:
    return sum(map(len, dataset.content(file)))


def test_the_items_of_each_size():
    for name in NAMES:
        dataset = find_dataset(name)
        assert (dataset.name, list(dataset.sizes)) == (name, ["small", "full"])
        for recipe, expected in zip(dataset.sizes.values(), ITEMS[name], strict=True):
            items: Counter[str] = Counter()
            for file in recipe.files():
                items[file.split] += file.items
            assert items == expected


@pytest.mark.parametrize("name", NAMES)
def test_the_path_decides_the_bytes(name):
    """A few files of each set have the same bytes each time: MNIST's labels, COCO's pictures, and others."""
    dataset = find_dataset(name)
    files = list(dataset.sizes["small"].files())
    chosen = {"mnist": files[3:], "coco": files[2:4], "ml_20m": ml_20m.recipe(2_000, 2, 300, 200).files()}.get(
        name, files[:2]
    )

    def start(file: File) -> bytes:
        return b"".join(itertools.islice(dataset.content(file), 2))

    made = [start(file) for file in chosen]
    assert [start(file) for file in chosen] == made
    assert len({*made}) == len(chosen)


@pytest.mark.slow
def test_estimates_cover_what_is_made():
    for name, least in (("mnist", 1.0), ("wmt16", 0.9), ("wikitext", 0.9), ("wikitext_103", 0.9)):
        dataset = find_dataset(name)
        recipe = dataset.sizes["small"]
        assert least <= sum(size_of(dataset, file) for file in recipe.files()) / recipe.estimated_bytes <= 1
    for name, size in (("imagenet", "small"), ("imagenet", "full"), ("bsds500", "full")):
        dataset = find_dataset(name)
        files = list(dataset.sizes[size].files())
        sample = np.mean([size_of(dataset, file) for file in files[:: len(files) // 16]])
        assert 0.75 < sample / (dataset.sizes[size].estimated_bytes / len(files)) < 1
    recipe = coco.recipe(20, 4)
    assert 0.7 < sum(size_of(coco.DATASET, file) for file in recipe.files()) / recipe.estimated_bytes < 1
