"""The drawn sets, MNIST, ImageNet and BSDS500, have the formats and the looks of the real ones."""

import io
import struct
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from cotenant.datasets.dataset import File
from cotenant.datasets.sets import bsds500, imagenet, mnist


def mnist_file(name: str) -> bytes:
    file = next(file for file in mnist.recipe(1500, 20).files() if file.path == name)
    return b"".join(mnist.content(file))


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
    assert 0.26 < (digits / 255).std() < 0.33
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
    return b"".join(imagenet.content(File(path, "train", 1, (label, width, height, jitter))))


def bsds(number: int) -> bytes:
    return b"".join(bsds500.content(File(f"data/images/train/{number}.jpg", "train", 1, (number,))))


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


def test_no_two_files_of_a_set_have_one_path():
    paths = [file.path for file in imagenet.recipe(3, 7, 3, 8, 8).files()]
    assert paths[2:4] == ["train/n00000002/n00000002_0.JPEG", "train/n00000000/n00000000_1.JPEG"]
    for dataset in (imagenet.DATASET, bsds500.DATASET):
        files = list(dataset.sizes["full"].files())
        assert len({file.path for file in files}) == len(files)


def test_idx_files(tmp_path):
    path, whole = tmp_path / "file", mnist.idx_header((3, 2, 2)) + bytes(range(12))
    path.write_bytes(whole)
    digits = mnist.read_idx(path)
    np.testing.assert_array_equal(digits, np.arange(12).reshape(3, 2, 2))
    assert digits.dtype == np.uint8
    assert digits.flags.writeable
    cut = [b"", b"\0\0\x08", b"\0\0\x08\x01", whole[:10], whole[:-1]]
    for data in (*cut, whole + b"x", b"\0\0\x0d" + whole[3:], b"foreign"):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="it is not a complete idx file"):
            mnist.read_idx(path)
