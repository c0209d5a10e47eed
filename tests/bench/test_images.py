"""Image files: which are found, in what order, and what is said of those that are not there."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cotenant.bench import MissingDataError
from cotenant.bench.images import DECODERS, Images, Paths, class_folders, decode, images_below
from cotenant.bench.loader import loader
from cotenant.bench.outcome import outcome_of

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


@pytest.mark.parametrize(
    "names, root, sentence",
    [
        (["x"], "nowhere", r"/nowhere cannot be read: No such file or directory\. Make them\."),
        (["x"], "x", r"/x cannot be read: Not a directory\. Make them\."),
        (["x/1.jpg"], "x", r"/x holds no folders of images, one for each class\. Make them\."),
        (["x/a/1.jpg", "x/b/1.txt"], "x", r"/x/b holds no JPEG or PNG files\. Make them\."),
    ],
)
def test_what_is_not_there_is_named(names: list[str], root: str, sentence: str, tmp_path: Path) -> None:
    touch(tmp_path, *names)
    with pytest.raises(MissingDataError, match=sentence):
        class_folders(tmp_path / root, REMEDY)


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "a/1.jpg", "b/1.jpg")
    real = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("/b"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    for search in (class_folders, images_below):
        with pytest.raises(MissingDataError, match=r"/b cannot be read: Permission denied\. Make them\."):
            search(tmp_path, REMEDY)


def jpeg(path: Path) -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    return path.read_bytes()


READERS = {name: lambda path, crop=crop: crop(path, 8) for name, crop in DECODERS.items()} | {"whole": decode}


@pytest.mark.filterwarnings("ignore:The image decoding:DeprecationWarning")
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("fault", ["cut", "empty", "text", "gone", "a folder", "broken png"])
def test_a_broken_image_is_named_also_by_a_process(reader: str, fault: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.jpg" for number in range(5)]
    for path in paths:
        whole = jpeg(path)
    Image.new("RGB", (60, 40)).save(tmp_path / "x.png")
    png = (tmp_path / "x.png").read_bytes()
    contents = {"cut": whole[: len(whole) // 2], "empty": b"", "text": b"no picture", "broken png": png[:45] + png[60:]}
    paths[2].unlink()
    if fault == "a folder":
        paths[2].mkdir()
    elif fault != "gone":
        paths[2].write_bytes(contents[fault])
    images = Images(Paths(map(str, paths)), READERS[reader], REMEDY)
    assert images[1].dtype == torch.uint8
    with pytest.raises(MissingDataError) as raised:
        for _ in itertools.islice(loader(images, 1, 1, 0), 5):
            pass
    outcome, message, status = outcome_of(raised.value)
    assert (outcome, status) == ("missing_data", 1)
    assert message.startswith(f"{paths[2]} cannot be decoded: ")
    assert message.endswith(". Remove it, or move its set away first. Make them.")
    assert "\n" not in message


def test_memory_that_ran_out_is_no_broken_image(tmp_path: Path) -> None:
    def read(path: str) -> torch.Tensor:
        raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")

    with pytest.raises(RuntimeError) as raised:
        Images(Paths(["x.jpg"]), read, REMEDY)[0]
    assert outcome_of(raised.value)[0] == "out_of_memory"


def test_labels_come_along(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        jpeg(tmp_path / name / "1.jpg")
    found = class_folders(tmp_path, REMEDY)
    images = Images(found.paths, lambda path: torch.ones(2), REMEDY, found.labels)
    _, labels = next(loader(images, 4, 0, 0))
    assert sorted(labels.tolist()) == [0, 0, 1, 1]
    assert labels.dtype == torch.int64
