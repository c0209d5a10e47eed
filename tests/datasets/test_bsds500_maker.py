"""BSDS500's layout, the shape of its pictures, and what they take."""

import io
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from cotenant.datasets.maker import Part
from cotenant.datasets.makers import bsds500, find_maker
from cotenant.datasets.making import ensure
from cotenant.datasets.manifest import present

MAKER = bsds500.BSDS500


def picture(number: int, split: str = "train", seed: int = 0) -> bytes:
    return b"".join(MAKER.content(Part(f"data/images/{split}/{number}.jpg", split, 1, (number,)), seed))


@pytest.mark.parametrize("size, train, val, test", [("small", 48, 8, 16), ("full", 200, 100, 200)])
def test_the_splits_lie_in_folders(size, train, val, test):
    parts = list(MAKER.sizes[size].parts())
    assert Counter(part.split for part in parts) == {"train": train, "val": val, "test": test}
    assert Counter(part.path.rpartition("/")[0] for part in parts) == {
        f"data/images/{split}": count for split, count in (("train", train), ("val", val), ("test", test))
    }
    assert len({part.path.rpartition("/")[2] for part in parts}) == len(parts)
    assert all(part.items == 1 and part.path.endswith(".jpg") for part in parts)


def test_pictures_lie_or_stand():
    shapes = Counter()
    for number in range(24):
        with Image.open(io.BytesIO(picture(number))) as image:
            assert (image.format, image.mode) == ("JPEG", "RGB")
            shapes[image.size] += 1
    assert shapes.keys() == {(481, 321), (321, 481)}
    assert shapes[481, 321] > shapes[321, 481]


def test_estimates_cover_what_is_made():
    sizes = [len(picture(number)) for number in range(1000, 1016)]
    estimated = MAKER.sizes["full"].estimated_bytes / 500
    assert 0.75 * estimated < np.mean(sizes) < estimated
    assert 2e6 < MAKER.sizes["small"].estimated_bytes < 10e6


def test_luminance_has_light_and_detail():
    pixels = np.asarray(Image.open(io.BytesIO(picture(1000))).convert("L"), dtype=float)
    assert pixels.std() > 15
    assert np.abs(np.diff(pixels, axis=1)).mean() > 1


def test_a_picture_is_decided_by_seed_and_path():
    first = picture(1)
    assert first == picture(1)
    assert len({first, picture(2), picture(1, "test"), picture(1, seed=1)}) == 4


def test_the_set_is_made_and_found(tmp_path, monkeypatch):
    tiny = replace(MAKER, sizes=dict.fromkeys(("small", "full"), bsds500.recipe({"train": 2, "test": 1})))
    monkeypatch.setattr("cotenant.datasets.manifest.find_maker", lambda name: {"bsds500": tiny}[name])
    ensure(tmp_path, tiny, "small", processes=1)
    assert present(tmp_path, "bsds500", "small")
    made = sorted(str(path.relative_to(tmp_path / "BSDS500")) for path in tmp_path.rglob("*.jpg"))
    assert made == ["data/images/test/2000.jpg", "data/images/train/1000.jpg", "data/images/train/1001.jpg"]


def test_it_has_a_name():
    assert find_maker("bsds500") is MAKER
