"""Getting real sets: when, from which source, obstacles, the parts kept; a person's own archives and sets."""

import errno
import json
import os
import shutil
from dataclasses import replace

import pytest

from cotenant.datasets import disk
from cotenant.datasets import real as real_sets
from cotenant.datasets.dataset import read_manifest
from cotenant.datasets.obtain import added_bytes, obtain
from cotenant.datasets.request import SetRequest
from cotenant.datasets.sets.mnist import DATASET, recipe
from cotenant.errors import EXIT_FOREIGN_FILES, CotenantError
from datasets import loopback
from datasets.conftest import tree
from datasets.loopback import status
from datasets.miniature import bsds500, jpeg, tar

BSDS = "/BSR_bsds500.tgz"
FAKE = replace(DATASET, sizes={"small": recipe(20, 10), "full": recipe(40, 20)})


def standing(request):
    return read_manifest(request.folder)


def fake(root, size="small"):
    return SetRequest(root, FAKE, size, processes=1)


def test_a_set_is_fetched_once_and_its_manifest_tells_it_all(real, server, capsys):
    request = real("bsds500")
    obtain(request)
    assert server.paths() == [BSDS]
    assert sorted(path.name for path in request.root.iterdir()) == [".locks", "BSDS500"]
    written = json.loads((request.folder / "manifest.json").read_text())
    (source,) = written.pop("sources")
    assert source == {
        "file": "BSR_bsds500.tgz",
        "source": server.url(BSDS),
        "bytes": len(server.files[BSDS]),
        "sha256": source["sha256"],
        "verified_by": None,
    }
    assert written == {
        "name": "bsds500",
        "size": "full",
        "kind": "real",
        "seed": 0,
        "version": 1,
        "files": 6,
        "bytes": 3 * (len(jpeg(1)) + len(jpeg(2))),
        "splits": {"train": 2, "val": 2, "test": 2},
        "half": "all",
        "taken_from": None,
    }
    shown = capsys.readouterr().err
    assert "BSR_bsds500.tgz: could not be verified, as no recorded checksum of it is known" in shown
    assert f"its sha256, {source['sha256']}, is kept in the manifest, and later runs compare with it" in shown
    obtain(request)
    assert server.paths() == [BSDS]
    assert capsys.readouterr().err == f"bsds500: present (real, all) in {request.folder}\n"


def test_a_file_without_a_digest_must_match_an_earlier_run(real, server, capsys):
    obtain(real("bsds500", "validation"))
    request, first = real("bsds500"), server.files[BSDS]
    server.files[BSDS] = tar({"BSR/BSDS500/data/images/train/1.jpg": jpeg(7)}, "w:gz")
    with pytest.raises(CotenantError, match=r"it (has|sends) .* bytes"):
        obtain(request)
    assert standing(request).half == "validation"
    server.files[BSDS] = first
    capsys.readouterr()
    obtain(request)
    assert "could not be verified" not in capsys.readouterr().err
    assert standing(request).sources[0].verified_by == "the sha256 recorded by an earlier run"


def test_the_whole_set_replaces_and_serves_its_half(real, server):
    obtain(real(half="validation"))
    assert standing(real()).half == "validation"
    assert sorted(server.paths()) == ["/t10k-images-idx3-ubyte.gz", "/t10k-labels-idx1-ubyte.gz"]
    obtain(real())
    assert (standing(real()).half, len(standing(real()).sources)) == ("all", 4)
    server.requests.clear()
    obtain(real(half="validation"))
    assert server.requests == []
    # Another version is laid out again.
    obtain(replace(real(), dataset=replace(real().dataset, version=2)))
    assert standing(real()).version == 2


def test_a_real_set_replaces_a_fake_one_but_never_vice_versa(real, server, capsys):
    root = real().root
    obtain(fake(root, "full"))
    server.answers["/t10k-labels-idx1-ubyte.gz"] = [status(404)]
    with pytest.raises(CotenantError):
        obtain(real())
    assert standing(real()).kind == "fake"
    obtain(real())
    assert standing(real()).kind == "real"
    assert "mnist: the fake set that stood there has been replaced" in capsys.readouterr().err
    before = tree(root / "mnist"), (root / "mnist" / "manifest.json").read_bytes()
    with pytest.raises(CotenantError) as caught:
        obtain(fake(root))
    assert str(caught.value) == (
        f"{root}/mnist holds the real set, which a fake one never replaces. Use it with FAKE_DATASET=0,"
        " or give another place with --root DIR or DATA_DIRECTORY for fake sets."
    )
    assert (tree(root / "mnist"), (root / "mnist" / "manifest.json").read_bytes()) == before


@pytest.mark.parametrize(
    ("kind", "remedy"), [("real", "Move the folder away, then name it with --from DIR"), ("fake", "Move")]
)
def test_a_persons_own_folder_or_link_is_left_alone(real, server, tmp_path, kind, remedy):
    request = real() if kind == "real" else fake(real().root)
    request.folder.mkdir(parents=True)
    (request.folder / "mine").write_text("mine")
    with pytest.raises(CotenantError, match=rf"may be your own\. {remedy}") as caught:
        obtain(request)
    assert caught.value.exit_status == EXIT_FOREIGN_FILES
    assert server.requests == []
    assert tree(request.root) == ["mnist/mine"]
    request.folder.rename(tmp_path / "elsewhere")
    request.folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CotenantError, match="symbolic link"):
        obtain(request)
    assert tree(tmp_path / "elsewhere") == ["mine"]
    # An empty folder holds no files of a person.
    request.folder.unlink()
    request.folder.mkdir()
    obtain(request)
    assert standing(request).kind == kind


def test_an_interrupted_download_is_kept_and_resumed(real, server):
    server.answers["/train-images-idx3-ubyte.gz"] = [loopback.cut(100), status(404)]
    with pytest.raises(CotenantError, match="error: 404"):
        obtain(real())
    assert tree(real().arriving) == ["train-images-idx3-ubyte.gz"]
    obtain(real(half="validation"))
    assert tree(real().arriving) == ["train-images-idx3-ubyte.gz"]
    server.requests.clear()
    obtain(real())
    assert server.ranges()[0] == "bytes=100-"
    assert not real().arriving.parent.exists()


def test_two_gigabytes_are_the_most_unasked(real, server):
    def sized(request):
        halves = {
            name: replace(half, unpacked_bytes=3_000_000_000 if name == "all" else 10)
            for name, half in request.dataset.halves.items()
        }
        return replace(request, dataset=replace(request.dataset, halves=halves))

    with pytest.raises(CotenantError) as caught:
        obtain(sized(real()))
    assert "mnist (real, all) writes 3.0 GB below" in str(caught.value)
    assert "no more than 2.0 GB are written without being asked. Ask with --size full" in str(caught.value)
    assert "USE_VALIDATION=1 takes the smaller half." in str(caught.value)
    assert added_bytes(sized(real())) == 0
    assert added_bytes(sized(real(size="full"))) > 3_000_000_000
    assert not real().root.exists()
    assert server.requests == []
    obtain(sized(real(size="full")))
    assert real().folder.is_dir()
    assert added_bytes(sized(real(size="full"))) == 0


def test_too_small_a_disk_is_found_before_writing(real, server, monkeypatch):
    request = real()
    monkeypatch.setattr(disk, "free_disk_bytes", lambda path: 10)
    with pytest.raises(CotenantError, match=r"mnist \(full\) needs .* has 10 bytes free.*, or ask for --size small\."):
        obtain(fake(request.root, "full"))
    fetched_bytes = sum(archive.size_bytes for archive in request.dataset.halves["all"].archives)
    monkeypatch.setattr(disk, "free_disk_bytes", lambda path: 100_000 + fetched_bytes - 1)
    with pytest.raises(CotenantError, match=r"mnist \(real, all\) needs 10. kB and .*, or ask for USE_VALIDATION=1"):
        obtain(request)
    assert not request.root.exists()
    # Bytes that have arrived, or that a killed run laid out, need no more room.
    request.arriving.mkdir(parents=True)
    (request.arriving / request.dataset.halves["all"].archives[0].name).write_bytes(b"\x1f")
    obtain(request)
    shutil.rmtree(request.folder)
    (request.staging / "mine").mkdir(parents=True)
    (request.staging / "half").write_bytes(b"x" * 100_000)
    (request.root / ".making" / "mnist-small-v1").mkdir()
    monkeypatch.setattr(disk, "free_disk_bytes", lambda path: fetched_bytes)
    obtain(request)
    assert sorted(path.name for path in request.root.iterdir()) == [".locks", "mnist"]
    assert not (request.folder / "half").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<html>Please log in.</html>" * 30, "is no whole archive"),
        (tar({"BSR/README": b""}, "w:gz"), "lacks data/images/train, data/images/val, data/images/test"),
        (tar({"../evil": b""}, "w:gz"), "lacks data/images/train"),
        (bsds500()["BSR_bsds500.tgz"][:-50], "is no whole archive"),
    ],
    ids=["page", "other", "evil", "cut"],
)
def test_an_unverified_archive_that_is_wrong_is_fetched_anew(real, server, content, reason):
    request = real("bsds500")
    whole = server.files[BSDS]
    server.files[BSDS] = content
    with pytest.raises(CotenantError, match=reason) as caught:
        obtain(request)
    assert "BSR_bsds500.tgz was removed: start again" in str(caught.value)
    assert read_manifest(request.folder) is None
    assert [name for name in tree(request.root) if not name.startswith(".making")] == [".locks/bsds500"]
    assert not list(request.root.parent.rglob("*evil*"))
    server.files[BSDS] = whole
    obtain(request)
    assert request.folder.is_dir()


def test_a_verified_archive_is_not_thrown_away(real, server):
    request = real("ml_20m")
    with pytest.raises(CotenantError, match=r"lacks ratings.csv.* if they are the same, report it"):
        obtain(replace(request, dataset=replace(request.dataset, rules={})))
    assert tree(request.arriving) == ["ml-20m.zip"]


def test_a_gated_set_is_never_downloaded(real, server):
    for more in ({}, {"mirror": server.url()}):
        with pytest.raises(CotenantError) as caught:
            obtain(real("imagenet", **more))
        assert "imagenet is never downloaded" in str(caught.value)
        assert "Ask at https://image-net.org/download.php, then name the folder" in str(caught.value)
    assert server.requests == []
    assert not real().root.exists()


def test_without_curl_nothing_is_begun(real, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CotenantError) as caught:
        obtain(real("bsds500"))
    assert str(caught.value) == (
        "Real sets are fetched by curl, which is not installed here. Install it (apt install curl),"
        " or put BSR_bsds500.tgz into a folder and name that with --from DIR (COTENANT_DATA_FROM)."
    )
    assert not real().root.exists()


def test_the_mirror_is_tried_before_the_original_source(real, server):
    request = real(mirror=server.url("/mirror"))
    theirs = list(server.files)
    places = ("/mirror/mnist", "/mirror")
    for place, path in zip(places, theirs, strict=False):
        server.files[f"{place}{path}"] = server.files[path]
    obtain(request)
    expected = {server.url(place + path) for place, path in zip((*places, "", ""), theirs, strict=True)}
    assert {source.source for source in standing(request).sources} == expected


def put_archives(folder, server):
    folder.mkdir(parents=True)
    for path, content in server.files.items():
        (folder / path[1:]).write_bytes(content)
    return folder


def test_archives_of_ones_own(real, server, tmp_path):
    for below in ("", "mnist"):
        request = real(local=tmp_path / f"mine{below}")
        with pytest.raises(CotenantError, match=r", where the data should come from, is no folder\. Name another"):
            obtain(request)
        put_archives(request.local / below, server)
        before = tree(request.local)
        obtain(request)
        assert tree(request.local) == before
        source = standing(request).sources[0]
        assert source.source == str(request.local / below / "train-images-idx3-ubyte.gz")
        assert source.verified_by == "the sha256 recorded by a library"
        shutil.rmtree(request.folder)
    assert server.requests == []
    # A wrong archive is named, and a missing one is fetched.
    (request.local / below / "t10k-labels-idx1-ubyte.gz").unlink()
    wrong = request.local / below / "train-labels-idx1-ubyte.gz"
    right = wrong.read_bytes()
    wrong.write_bytes(bytes(len(right)))
    with pytest.raises(CotenantError, match=f"{wrong} is not the file: its sha256 is .* Replace it"):
        obtain(request)
    wrong.write_bytes(right)
    obtain(request)
    assert server.paths() == ["/t10k-labels-idx1-ubyte.gz"]


def unpacked(place, *folders):
    """Put a picture into each of these folders of an unpacked BSDS500; return the folder that holds them."""
    images = place / "data" / "images"
    for folder in folders or ("train", "val", "test"):
        (images / folder).mkdir(parents=True)
        (images / folder / "1.jpg").write_bytes(jpeg(1))
    return images


@pytest.mark.parametrize(("below", "can_link"), [("", True), ("BSDS500", False), ("bsds500", True)])
def test_an_unpacked_set_is_taken_as_it_is(real, server, tmp_path, monkeypatch, below, can_link):
    place = tmp_path / "mine" / below
    unpacked(place)
    (place / "data" / "other").write_text("not ours")
    if not can_link:

        def link(*_):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

        monkeypatch.setattr(real_sets.os, "link", link)
    request = real("bsds500", local=tmp_path / "mine")
    obtain(request)
    manifest = standing(request)
    assert (manifest.taken_from, manifest.sources, manifest.splits["val"]) == (str(place), (), 1)
    assert not (request.folder / "data" / "other").exists()
    picture = "data/images/val/1.jpg"
    assert (place / picture).samefile(request.folder / picture) == can_link
    assert server.requests == []


def test_a_copy_from_another_disk_takes_room(real, tmp_path, monkeypatch):
    request = real("bsds500", local=tmp_path / "mine")
    unpacked(tmp_path / "mine")
    monkeypatch.setattr(real_sets, "UNASKED_BYTES", 99_999)
    obtain(request)  # Hard links on the same disk take no room.
    shutil.rmtree(request.folder)
    monkeypatch.setattr(real_sets, "_same_disk", lambda source, root: False)
    with pytest.raises(CotenantError, match=r"bsds500 \(real, all\) writes 100 kB"):
        obtain(request)


def test_an_unpacked_set_that_cannot_be_read_or_is_wrong(real, tmp_path, monkeypatch):
    images = unpacked(tmp_path / "mine", "train/first", "train/second", "val", "test")
    scandir, closed = os.scandir, images / "train" / "second"

    def refusing(place="."):
        if str(place) == str(closed):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), place)
        return scandir(place)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", refusing)
        with pytest.raises(CotenantError, match=rf"{closed}.*Permission denied.* Repair that"):
            obtain(real("bsds500", local=tmp_path / "mine"))
    assert read_manifest(real("bsds500").folder) is None
    for name in real().dataset.halves["all"].paths:
        (tmp_path / "mine" / name).write_bytes(b"no idx file")
    with pytest.raises(CotenantError, match=r"mine holds no idx files: .* Name another folder with --from DIR"):
        obtain(real(local=tmp_path / "mine"))
    assert read_manifest(real().folder) is None


def test_a_fake_set_or_a_half_is_not_taken_for_the_whole(real, tmp_path):
    obtain(fake(tmp_path / "fakes"))
    half = replace(real(half="validation"), root=tmp_path / "halves")
    obtain(half)
    assert (half.folder / "train-images-idx3-ubyte").exists()
    for place in ("fakes", "halves"):
        obtain(real(local=tmp_path / place))
        manifest = standing(real())
        assert (manifest.half, manifest.taken_from, manifest.splits["train"]) == ("all", None, 6)
        shutil.rmtree(real().folder)
