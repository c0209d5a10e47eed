"""Image files: which are found, their order, how they are decoded, and the messages about broken ones."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from cotenant.bench import MissingDataError, images
from cotenant.bench.images import (
    DECODERS,
    MEAN,
    STD,
    Images,
    Normalise,
    Paths,
    class_folders,
    crops_by_nvjpeg,
    encoded,
    fastest,
    files_and_labels,
    images_below,
    middle_square,
    random_box,
    times_ms,
    whole_image,
)
from cotenant.bench.loader import loader
from cotenant.bench.outcome import UnsupportedError, outcome_of

REMEDY = "Make them."


def touch(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_paths_come_back(names: list[str]) -> None:
    paths = Paths(names)
    assert [paths[index] for index in range(len(paths))] == names


def test_folders_are_classes_and_files_are_sorted(tmp_path: Path) -> None:
    touch(tmp_path, "b/2.jpg", "b/10.JPEG", "a/z/deep.png", "a/y.Jpg", "a/notes.txt", ".git/x.jpg", "loose.jpg")
    found = class_folders(tmp_path, REMEDY)
    assert found.classes == ["a", "b"]
    names = [os.path.relpath(found.paths[index], tmp_path) for index in range(len(found.paths))]
    assert names == ["a/y.Jpg", "a/z/deep.png", "b/10.JPEG", "b/2.jpg"]
    assert found.labels.tolist() == [0, 0, 1, 1]


def test_a_set_may_be_a_link(tmp_path: Path) -> None:
    touch(tmp_path, "set/a/1.jpg")
    (tmp_path / "link").symlink_to("set")
    (tmp_path / "classes").mkdir()
    (tmp_path / "classes" / "a").symlink_to("../set/a")
    assert images_below(tmp_path / "link", REMEDY) == [f"{tmp_path}/link/a/1.jpg"]
    assert class_folders(tmp_path / "classes", REMEDY).paths[0] == f"{tmp_path}/classes/a/1.jpg"


def test_what_is_not_there_or_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "x", "flat/1.jpg", "full/a/1.jpg", "full/b/1.txt", "closed/a/1.jpg", "closed/b/1.jpg")
    real = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("closed/b"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    for search, root, sentence in (
        (class_folders, "nowhere", r"/nowhere cannot be read: No such file or directory\. Make them\."),
        (class_folders, "x", r"/x cannot be read: Not a directory\. Make them\."),
        (class_folders, "flat", r"/flat holds no folders of images, one for each class\. Make them\."),
        (class_folders, "full", r"/full/b holds no JPEG or PNG files\. Make them\."),
        (class_folders, "closed", r"/b cannot be read: Permission denied\. Make them\."),
        (images_below, "closed", r"/b cannot be read: Permission denied\. Make them\."),
    ):
        with pytest.raises(MissingDataError, match=sentence):
            search(tmp_path / root, REMEDY)


def jpeg(path: Path) -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    return path.read_bytes()


READERS = {name: lambda path, crop=crop: crop(path, 8) for name, crop in DECODERS.items()} | {"whole": whole_image}


@pytest.mark.filterwarnings("ignore:The image decoding:DeprecationWarning")
@pytest.mark.parametrize("reader", READERS)
def test_a_broken_image_is_named_also_by_a_process(reader: str, tmp_path: Path) -> None:
    whole = jpeg(tmp_path / "0.jpg")
    Image.new("RGB", (60, 40)).save(tmp_path / "x.png")
    png = (tmp_path / "x.png").read_bytes()
    contents = {"cut": whole[: len(whole) // 2], "empty": b"", "text": b"no picture", "broken png": png[:45] + png[60:]}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "a folder").mkdir()
    assert READERS[reader](str(tmp_path / "0.jpg")).dtype == torch.uint8
    for path in (*(tmp_path / name for name in contents), tmp_path / "a folder", tmp_path / "gone"):
        images = Images(Paths([str(path)]), READERS[reader], REMEDY)
        # One of the errors comes from a loader process.
        with pytest.raises(MissingDataError) as raised:
            next(loader(images, 1, int(path.name == "cut"), 0))
        outcome, message, status = outcome_of(raised.value)
        assert (outcome, status) == ("missing_data", 1)
        assert message.startswith(f"{path} cannot be decoded: ")
        assert message.endswith(". Remove it, or move its set away first. Make them.")
        assert "\n" not in message


def test_memory_that_ran_out_is_no_broken_image() -> None:
    def read(path: str) -> torch.Tensor:
        raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")

    with pytest.raises(RuntimeError) as raised:
        Images(Paths(["x.jpg"]), read, REMEDY)[0]
    assert outcome_of(raised.value)[0] == "out_of_memory"


pytestmark = pytest.mark.filterwarnings("ignore:The image decoding:DeprecationWarning")


def slope(path: Path, width: int, height: int) -> str:
    """Save a picture whose red grows with the column and whose green grows with the row; return its path."""
    x, y = np.linspace(0, 255, width), np.linspace(0, 255, height)
    pixels = np.stack([np.tile(x, (height, 1)), np.tile(y[:, None], (1, width)), np.full((height, width), 99)], axis=2)
    Image.fromarray(pixels.astype(np.uint8)).save(path, quality=95)
    return str(path)


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(0, 2**32))
def test_a_box_lies_within_its_image(height: int, width: int, seed: int) -> None:
    random.seed(seed)
    top, left, box_height, box_width = random_box(height, width)
    assert 0 <= top <= top + box_height <= height
    assert 0 <= left <= left + box_width <= width
    assert box_height > 0
    assert box_width > 0


def test_boxes_are_as_large_and_as_wide_as_torchvisions() -> None:
    from torchvision.transforms import RandomResizedCrop

    random.seed(0)
    torch.manual_seed(0)
    image = torch.empty(3, 400, 500)
    ours = np.array([random_box(400, 500) for _ in range(3000)])
    theirs = np.array([RandomResizedCrop.get_params(image, (0.08, 1.0), (3 / 4, 4 / 3)) for _ in range(3000)])
    for quantile in (0.1, 0.5, 0.9):
        np.testing.assert_allclose(np.quantile(ours, quantile, axis=0), np.quantile(theirs, quantile, axis=0), atol=15)


@pytest.mark.parametrize("extent", [(500, 375), (1201, 800), (1001, 1999)])
def test_both_decoders_return_the_same_crops(extent: tuple[int, int], tmp_path: Path) -> None:
    path = slope(tmp_path / "x.jpg", *extent)
    for seed in range(6):
        crops = []
        for crop in DECODERS.values():
            random.seed(seed)
            crops.append(crop(path, 64))
        assert [(one.shape, one.dtype) for one in crops] == [((3, 64, 64), torch.uint8)] * 2
        assert (crops[0].int() - crops[1].int()).abs().max() <= 8


def test_the_batch_decoder_crops_like_the_single_file_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This runs on the processor, where torchvision decodes lists of files as well."""
    files = {str(slope(tmp_path / f"{width}.jpg", width, 300)): label for label, width in enumerate((500, 400, 301))}
    batch, labels = files_and_labels([(encoded(path), label) for path, label in files.items()])
    assert labels.tolist() == [0, 1, 2]
    random.seed(5)
    crops = crops_by_nvjpeg(batch, 64, torch.device("cpu"), REMEDY)
    random.seed(5)
    assert torch.equal(crops, torch.stack([DECODERS["torchvision"](path, 64) for path in files]))
    batch[1] = batch[1][:100]
    with pytest.raises(
        MissingDataError, match=r"nvJPEG cannot decode a file of this batch: .*Use --decoder auto, which"
    ):
        crops_by_nvjpeg(batch, 64, torch.device("cpu"), REMEDY)

    def without(*_: Any, **__: Any) -> None:
        raise RuntimeError("decode_jpegs_cuda: torchvision not compiled with nvJPEG support")

    monkeypatch.setattr(images, "decode_jpeg", without)
    with pytest.raises(UnsupportedError, match=r"not compiled with nvJPEG support\. Use --decoder auto\."):
        crops_by_nvjpeg(batch, 64, torch.device("cpu"), REMEDY)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 700), st.integers(1, 700), st.integers(1, 90), st.integers(0, 999))
def test_every_extent_can_be_cropped(width: int, height: int, size: int, seed: int) -> None:
    random.seed(seed)
    with tempfile.NamedTemporaryFile(suffix=".jpg") as file:
        Image.new("RGB", (width, height)).save(file.name)
        for crop in (*DECODERS.values(), middle_square):
            assert crop(file.name, size).shape == (3, size, size)


def test_half_of_the_crops_are_flipped(tmp_path: Path) -> None:
    path = slope(tmp_path / "x.jpg", 100, 80)
    for crop in DECODERS.values():
        random.seed(1)
        flipped = sum(int(one[0, 8, 0] > one[0, 8, -1]) for one in (crop(path, 16) for _ in range(60)))
        assert 15 < flipped < 45


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK", "P", "RGBA", "I;16"])
def test_every_kind_of_image_becomes_rgb_bytes(mode: str, tmp_path: Path) -> None:
    path = tmp_path / ("x.png" if mode in ("P", "RGBA", "I;16") else "x.jpg")
    if mode == "I;16":
        Image.fromarray(np.full((40, 50), 40_000, np.uint16)).save(path)
    else:
        Image.new("L", (50, 40), 156).convert("RGB").convert(mode).save(path, quality=95)
    image = whole_image(str(path))
    assert (image.shape, image.dtype) == ((3, 40, 50), torch.uint8)
    assert 152 <= image.float().mean() <= 160
    for crop in DECODERS.values():
        assert crop(str(path), 8).shape == (3, 8, 8)


def test_a_middle_square_is_the_middle(tmp_path: Path) -> None:
    picture = Image.new("L", (600, 200), 255)
    picture.paste(0, (200, 0, 400, 200))
    picture.save(tmp_path / "one.jpg", quality=95)
    square = middle_square(str(tmp_path / "one.jpg"), 64)
    assert (square.shape, square.dtype) == ((3, 64, 64), torch.uint8)
    assert square[:, :, 4:-4].max() < 20


def test_bytes_become_normalised_numbers() -> None:
    pixels = torch.randint(256, (4, 3, 5, 6), dtype=torch.uint8)
    mean, std = (torch.tensor(of_rgb).view(3, 1, 1) for of_rgb in (MEAN, STD))
    numbers = Normalise(torch.device("cpu"))(pixels)
    torch.testing.assert_close(numbers, (pixels / 255 - mean) / std, atol=1e-5, rtol=1e-5)


def test_timing_decoders_leaves_the_random_state_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = Paths(slope(tmp_path / f"{number}.jpg", 60, 50) for number in range(20))
    before = random.getstate()
    taken_ms = times_ms(paths, 16, "")
    assert taken_ms.keys() == DECODERS.keys()
    assert all(0 < taken < 1000 for taken in taken_ms.values())
    assert random.getstate() == before
    seen: list[str] = []
    monkeypatch.setitem(images.DECODERS, "pil", lambda path, size: seen.append(path) or torch.zeros(1))
    monkeypatch.setitem(images.DECODERS, "torchvision", lambda path, size: torch.zeros(1))
    times_ms(Paths(map(str, range(1000))), 16, "")
    assert seen == [str(number) for number in range(0, 1000, 125)] * images.ROUNDS


def test_another_decoder_is_taken_where_it_is_clearly_faster() -> None:
    for pil_ms, chosen in ((1.4, "torchvision"), (0.95, "torchvision"), (0.5, "pil")):
        assert fastest({"torchvision": 1.0, "pil": pil_ms}) == chosen
