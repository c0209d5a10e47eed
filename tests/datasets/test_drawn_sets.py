"""The sets that are drawn, MNIST, ImageNet and BSDS500, have the formats and the looks of the real ones."""

import io
import itertools
import struct
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from cotenant.datasets.dataset import File
from cotenant.datasets.sets import bsds500, find_dataset, imagenet, ml_20m, mnist
from datasets.conftest import items_of


def mnist_file(name: str, seed: int = 0, train: int = 1500, test: int = 20) -> bytes:
    file = next(file for file in mnist.recipe(train, test).files() if file.path == name)
    return b"".join(mnist.content(file, seed))


@pytest.fixture(scope="module")
def images() -> bytes:
    return mnist_file("train-images-idx3-ubyte")


@pytest.fixture(scope="module")
def labels() -> bytes:
    return mnist_file("train-labels-idx1-ubyte")


def test_mnist_headers_and_labels(images, labels):
    assert struct.unpack(">4I", images[:16]) == (2051, 1500, 28, 28)
    assert struct.unpack(">2I", labels[:8]) == (2049, 1500)
    assert (len(images), len(labels)) == (16 + 1500 * 784, 8 + 1500)
    assert Counter(labels[8:]) == dict.fromkeys(range(10), 150)
    assert labels[8:18] != bytes(range(10))


def test_mnist_looks_like_mnist(images):
    digits = np.frombuffer(images[16:], np.uint8).reshape(-1, 28, 28)
    assert 0.11 < digits.mean() / 255 < 0.15
    assert 0.28 < (digits / 255).std() < 0.33
    assert 0.75 < (digits == 0).mean() < 0.87
    border = np.concatenate([digits[:, 0], digits[:, -1], digits[:, :, 0], digits[:, :, -1]])
    assert border.mean() / 255 < 0.005
    assert len(np.unique(digits, axis=0)) == 1500


def test_mnist_images_show_their_labels(images, labels):
    pixels, digits = np.frombuffer(images[16:], np.uint8).reshape(-1, 784) / 255, np.frombuffer(labels[8:], np.uint8)
    means = np.stack([pixels[:1000][digits[:1000] == digit].mean(axis=0) for digit in range(10)])
    nearest = ((pixels[1000:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == digits[1000:]).mean() > 0.6


def picture(path: str, label: int, width: int = 500, height: int = 375, jitter: int = 0) -> bytes:
    return b"".join(imagenet.content(File(path, "train", 1, (label, width, height, jitter)), 0))


def bsds(number: int) -> bytes:
    return b"".join(bsds500.content(File(f"data/images/train/{number}.jpg", "train", 1, (number,)), 0))


def test_a_picture_is_a_jpeg_of_its_size_with_light_and_detail():
    with Image.open(io.BytesIO(picture("train/a", 0, 512, 500))) as image:
        assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (512, 500))
        pixels = np.asarray(image, dtype=float)
    luminance = np.asarray(Image.open(io.BytesIO(bsds(1000))).convert("L"), dtype=float)
    for values in (pixels, luminance):
        assert values.std() > 15
        assert np.abs(np.diff(values, axis=1)).mean() > 1
    assert len(np.unique(pixels[..., 0])) > 100


def test_pictures_take_what_photographs_take():
    sizes = [len(picture(f"train/{index}", index % 3)) for index in range(12)]
    assert 30_000 < min(sizes) < np.mean(sizes) < max(sizes) < 110_000


def test_pictures_lie_and_stand_and_vary():
    sizes = {Image.open(io.BytesIO(picture(f"{i}", 0, 60, 40, 5))).size for i in range(20)}
    assert len(sizes) > 10
    assert any(width < height for width, height in sizes)
    shapes = Counter(Image.open(io.BytesIO(bsds(number))).size for number in range(24))
    assert shapes.keys() == {(481, 321), (321, 481)}
    assert shapes[481, 321] > shapes[321, 481]


def test_the_files_of_a_set():
    paths = [file.path for file in imagenet.recipe(3, 7, 3, 8, 8).files()]
    assert paths[:4] == [
        "train/n00000000/n00000000_0.JPEG",
        "train/n00000001/n00000001_0.JPEG",
        "train/n00000002/n00000002_0.JPEG",
        "train/n00000000/n00000000_1.JPEG",
    ]
    assert sum(path.startswith("val/") for path in paths) == 3
    assert [file.path for file in bsds500.recipe({"train": 2, "test": 1}).files()] == [
        "data/images/train/1000.jpg",
        "data/images/train/1001.jpg",
        "data/images/test/2000.jpg",
    ]
    for dataset in (imagenet.DATASET, bsds500.DATASET):
        files = list(dataset.sizes["full"].files())
        assert len({file.path for file in files}) == len(files)


@pytest.mark.parametrize("name", ["mnist", "imagenet", "coco", "ml_20m", "wmt16", "wikitext", "bsds500"])
def test_seed_and_path_decide_the_bytes(name):
    """The labels of MNIST, the first annotations, and so on; COCO's pictures, too."""
    dataset = find_dataset(name)
    assert (dataset.name, list(dataset.sizes)) == (name, ["small", "full"])
    files = list(dataset.sizes["small"].files())
    chosen = {"mnist": files[3:], "coco": files[2:4], "ml_20m": ml_20m.recipe(2_000, 2, 300, 200).files()}.get(
        name, files[:2]
    )

    def start(file: File, seed: int) -> bytes:
        return b"".join(itertools.islice(dataset.content(file, seed), 2))

    first = [start(file, 0) for file in chosen]
    assert first == [start(file, 0) for file in chosen]
    assert len({*first, start(chosen[0], 1)}) == len(chosen) + 1


def test_the_sizes_are_the_published_ones():
    assert items_of(mnist.DATASET, "small") == {"train": 6_000, "t10k": 1_000}
    assert items_of(mnist.DATASET, "full") == {"train": 60_000, "t10k": 10_000}
    assert items_of(imagenet.DATASET, "small") == {"train": 400, "val": 40}
    assert items_of(imagenet.DATASET, "full") == {"train": 102_400, "val": 2_560}
    assert items_of(bsds500.DATASET, "small") == {"train": 48, "val": 8, "test": 16}
    assert items_of(bsds500.DATASET, "full") == {"train": 200, "val": 100, "test": 200}


def test_estimates_cover_what_is_made():
    recipe = mnist.recipe(30, 20)
    assert recipe.estimated_bytes == sum(len(b"".join(mnist.content(file, 0))) for file in recipe.files())
    for dataset, size in ((imagenet.DATASET, "small"), (imagenet.DATASET, "full"), (bsds500.DATASET, "full")):
        files = list(dataset.sizes[size].files())
        sample = [len(b"".join(dataset.content(file, 0))) for file in files[:: len(files) // 16]]
        estimated = dataset.sizes[size].estimated_bytes / len(files)
        assert 0.75 * estimated < np.mean(sample) < estimated
