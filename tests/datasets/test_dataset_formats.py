"""The files have the formats that readers of the real sets expect, and the same bytes every time."""

import io
import struct
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from cotenant.datasets.maker import Part
from cotenant.datasets.makers import MAKERS, imagenet, mnist


def mnist_file(name: str, seed: int = 0, train: int = 1500, test: int = 20) -> bytes:
    part = next(part for part in mnist.recipe(train, test).parts() if part.path == name)
    return b"".join(mnist.content(part, seed))


def test_mnist_headers():
    images, labels = mnist_file("train-images-idx3-ubyte"), mnist_file("train-labels-idx1-ubyte")
    assert struct.unpack(">4I", images[:16]) == (2051, 1500, 28, 28)
    assert struct.unpack(">2I", labels[:8]) == (2049, 1500)
    assert (len(images), len(labels)) == (16 + 1500 * 784, 8 + 1500)


def test_mnist_looks_like_mnist():
    images = np.frombuffer(mnist_file("train-images-idx3-ubyte")[16:], np.uint8).reshape(-1, 28, 28)
    assert 0.11 < images.mean() / 255 < 0.15
    assert 0.28 < (images / 255).std() < 0.33
    assert 0.75 < (images == 0).mean() < 0.87
    border = np.concatenate([images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1]])
    assert border.mean() / 255 < 0.005
    assert len(np.unique(images, axis=0)) == 1500


def test_mnist_labels_are_uniform_and_shuffled():
    labels = mnist_file("train-labels-idx1-ubyte")[8:]
    assert Counter(labels) == dict.fromkeys(range(10), 150)
    assert labels[:10] != bytes(range(10))


def test_mnist_images_show_their_labels():
    images = np.frombuffer(mnist_file("train-images-idx3-ubyte")[16:], np.uint8).reshape(-1, 784) / 255
    labels = np.frombuffer(mnist_file("train-labels-idx1-ubyte")[8:], np.uint8)
    means = np.stack([images[:1000][labels[:1000] == digit].mean(axis=0) for digit in range(10)])
    nearest = ((images[1000:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == labels[1000:]).mean() > 0.6


@pytest.mark.parametrize("name", ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"])
def test_mnist_is_decided_by_its_seed(name):
    assert mnist_file(name) == mnist_file(name) != mnist_file(name, seed=1)


def test_mnist_splits_differ():
    assert mnist_file("train-images-idx3-ubyte", train=20) != mnist_file("t10k-images-idx3-ubyte", train=20)


def picture(path: str, label: int, width: int = 500, height: int = 375, jitter: int = 0, seed: int = 0) -> bytes:
    return b"".join(imagenet.content(Part(path, "train", 1, (label, width, height, jitter)), seed))


def test_a_picture_is_a_jpeg_of_its_size():
    with Image.open(io.BytesIO(picture("train/a", 0, 512, 512))) as image:
        image.load()
        assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (512, 512))


def test_pictures_take_what_photographs_take():
    sizes = [len(picture(f"train/{index}", index % 3)) for index in range(12)]
    assert 30_000 < min(sizes) < np.mean(sizes) < max(sizes) < 110_000


def test_a_picture_has_light_and_detail():
    pixels = np.asarray(Image.open(io.BytesIO(picture("train/a", 0))), dtype=float)
    assert pixels.std() > 15
    assert np.abs(np.diff(pixels, axis=1)).mean() > 1
    assert len(np.unique(pixels[..., 0])) > 100


def test_jitter_varies_the_size():
    sizes = {Image.open(io.BytesIO(picture(f"{i}", 0, 60, 40, 5))).size for i in range(20)}
    assert len(sizes) > 10
    assert any(width < height for width, height in sizes)


def test_a_picture_is_decided_by_seed_path_and_class():
    first = picture("train/a", 0)
    assert first == picture("train/a", 0)
    assert len({first, picture("train/b", 0), picture("train/a", 1), picture("train/a", 0, seed=1)}) == 4


def test_class_folders():
    paths = [part.path for part in imagenet.recipe(imagenet.Pictures(3, 7, 3, 8, 8)).parts()]
    assert paths[:4] == [
        "train/n00000000/n00000000_0.JPEG",
        "train/n00000001/n00000001_0.JPEG",
        "train/n00000002/n00000002_0.JPEG",
        "train/n00000000/n00000000_1.JPEG",
    ]
    assert sum(path.startswith("val/") for path in paths) == 3
    assert len(set(paths)) == 10


def test_the_sizes_are_the_published_ones():
    def counts(name: str, size: str) -> dict[str, int]:
        items: Counter[str] = Counter()
        for part in MAKERS[name].sizes[size].parts():
            items[part.split] += part.items
        return dict(items)

    assert counts("mnist", "small") == {"train": 6_000, "t10k": 1_000}
    assert counts("mnist", "full") == {"train": 60_000, "t10k": 10_000}
    assert counts("imagenet", "small") == {"train": 400, "val": 40}
    assert counts("imagenet", "full") == {"train": 102_400, "val": 2_560}


def test_estimates_cover_what_is_made():
    recipe = mnist.recipe(30, 20)
    assert recipe.estimated_bytes == sum(len(b"".join(mnist.content(part, 0))) for part in recipe.parts())
    for size in ("small", "full"):
        parts = list(MAKERS["imagenet"].sizes[size].parts())
        sample = [len(b"".join(imagenet.content(part, 0))) for part in parts[:: len(parts) // 20]]
        estimated = MAKERS["imagenet"].sizes[size].estimated_bytes / len(parts)
        assert 0.75 * estimated < np.mean(sample) < estimated
