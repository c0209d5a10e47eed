"""Real sets from folders of one's own: archives, and sets unpacked."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from cotenant.datasets import local
from cotenant.datasets.making import ensure
from cotenant.datasets.manifest import read_manifest
from cotenant.errors import CotenantError
from datasets.miniature import jpeg
from datasets.real_sets import FAKE, get, tree


def own_archives(folder: Path, server) -> Path:
    folder.mkdir(parents=True)
    for path, content in server.files.items():
        (folder / path[1:]).write_bytes(content)
    return folder


@pytest.mark.parametrize("below", ["", "mnist"])
def test_archives_of_ones_own_are_used_and_left(order, server, tmp_path, below):
    wanted = order(local=tmp_path / "mine")
    own_archives(tmp_path / "mine" / below, server)
    before = tree(tmp_path / "mine")
    get(wanted)
    assert server.requests == []
    assert tree(tmp_path / "mine") == before
    manifest = read_manifest(wanted.folder)
    assert manifest is not None
    assert manifest.sources[0].source == str(tmp_path / "mine" / below / "train-images-idx3-ubyte.gz")
    assert manifest.sources[0].verified_by == "the sha256 recorded by a library"


def test_what_is_not_in_ones_own_folder_is_fetched(order, server, tmp_path):
    wanted = order(local=tmp_path / "mine")
    own_archives(tmp_path / "mine", server)
    (tmp_path / "mine" / "t10k-labels-idx1-ubyte.gz").unlink()
    get(wanted)
    assert [path for path, _ in server.requests] == ["/t10k-labels-idx1-ubyte.gz"]


def test_a_wrong_archive_of_ones_own_is_named_and_left(order, server, tmp_path):
    wanted = order(local=tmp_path / "mine")
    own_archives(tmp_path / "mine", server)
    wrong = tmp_path / "mine" / "t10k-labels-idx1-ubyte.gz"
    wrong.write_bytes(bytes(wrong.stat().st_size))
    with pytest.raises(CotenantError, match=f"{wrong} is not the file: its sha256 is .* Replace it"):
        get(wanted)
    assert wrong.exists()
    assert server.requests == []


def test_a_folder_that_is_not_there(order, tmp_path):
    with pytest.raises(CotenantError, match=r"none, where the data should come from, is no folder\. Name another"):
        get(order(local=tmp_path / "none"))


@pytest.mark.parametrize("can_link", [True, False])
@pytest.mark.parametrize("below", ["", "BSDS500", "bsds500"])
def test_an_unpacked_set_is_taken_as_it_is(order, server, tmp_path, monkeypatch, below, can_link):
    place = tmp_path / "mine" / below
    for split in ("train", "val", "test"):
        (place / "data" / "images" / split).mkdir(parents=True)
        (place / "data" / "images" / split / "1.jpg").write_bytes(jpeg(1))
    (place / "data" / "other").write_text("not ours")
    if not can_link:

        def link(*_):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

        monkeypatch.setattr(local.os, "link", link)
    wanted = order("bsds500", local=tmp_path / "mine")
    get(wanted)
    manifest = read_manifest(wanted.folder)
    assert manifest is not None
    assert (manifest.taken_from, manifest.sources, manifest.splits["val"]) == (str(place), (), 1)
    assert not (wanted.folder / "data" / "other").exists()
    one = "data/images/val/1.jpg"
    assert (place / one).samefile(wanted.folder / one) == can_link
    assert server.requests == []


def test_a_folder_of_an_unpacked_set_that_cannot_be_read_is_named(order, tmp_path, monkeypatch):
    images = tmp_path / "mine" / "data" / "images"
    for folder in ("train/first", "train/second", "val", "test"):
        (images / folder).mkdir(parents=True)
        (images / folder / "1.jpg").write_bytes(jpeg(1))
    scandir, closed = os.scandir, images / "train" / "second"

    def refusing(place="."):
        if place == str(closed):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), place)
        return scandir(place)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(CotenantError, match=rf"{closed} cannot be read: Permission denied\. Mend its permissions"):
        get(order("bsds500", local=tmp_path / "mine"))
    assert read_manifest(order("bsds500").folder) is None


def test_an_unpacked_set_that_is_wrong_is_refused(order, tmp_path):
    (tmp_path / "mine").mkdir()
    for name in order().wanted.paths:
        (tmp_path / "mine" / name).write_bytes(b"no idx file")
    with pytest.raises(CotenantError, match=r"mine holds no idx files: .* Name another folder with --from DIR"):
        get(order(local=tmp_path / "mine"))
    assert read_manifest(order().folder) is None


def test_a_fake_set_is_not_taken_for_the_real_one(order, server, tmp_path):
    ensure(tmp_path / "fakes", FAKE, "small", processes=1)
    get(order(local=tmp_path / "fakes"))
    manifest = read_manifest(order().folder)
    assert manifest is not None
    assert (manifest.taken_from, manifest.splits["train"]) == (None, 6)


def test_a_half_is_not_taken_for_the_whole(order, server, tmp_path):
    half = replace(order(half="validation"), root=tmp_path / "halves")
    get(half)
    assert (half.folder / "train-images-idx3-ubyte").exists()
    get(order(local=tmp_path / "halves"))
    manifest = read_manifest(order().folder)
    assert manifest is not None
    assert (manifest.half, manifest.taken_from) == ("all", None)
