"""What comes out of archives, and what never does."""

import gzip
import io
import os
import stat
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotenant.datasets.dataset import Half
from cotenant.datasets.sets import find_dataset
from cotenant.datasets.unpack import DamagedArchiveError, unpack

KINDS = {".tar": "w", ".tgz": "w:gz", ".tar.gz": "w:gz"}


def take(path: Path, folder: Path, place=lambda name: name, expected_bytes: int = 1000) -> None:
    unpack([path], folder, place, expected_bytes, "a set")


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    return info


def tar(path: Path, *entries: tarfile.TarInfo, content: bytes = b"content") -> Path:
    mode = next(KINDS[end] for end in KINDS if path.name.endswith(end))
    with tarfile.open(path, mode) as packed:
        for info in entries:
            info.size = len(content) if info.isreg() else 0
            packed.addfile(info, io.BytesIO(content))
    return path


def zipped(path: Path, *names: str, mode: int = stat.S_IFREG | 0o644, content: bytes = b"content") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in names:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            packed.writestr(info, content)
    return path


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("end", [*KINDS, ".zip"])
def test_wanted_files_come_out(tmp_path, end):
    names = ("./top/a/1.txt", "top/b/2.txt", "top/other.bin")
    path = tmp_path / f"packed{end}"
    if end == ".zip":
        zipped(path, *names)
    else:
        tar(path, entry("top", tarfile.DIRTYPE), *map(entry, names), entry("top/link", tarfile.SYMTYPE, "/etc"))
    take(path, tmp_path / "out", {"./top/a/1.txt": "1/a", "top/b/2.txt": "2/b"}.get)
    assert files(tmp_path / "out") == {"1/a": b"content", "2/b": b"content"}


def test_which_members_a_set_wants():
    coco = find_dataset("coco")
    every, smaller = coco.halves["all"], coco.halves["validation"]
    for half, name, place in (
        (every, "train2017/000000000009.jpg", "train2017/000000000009.jpg"),
        (every, "./val2017/000000000009.jpg", "val2017/000000000009.jpg"),
        (smaller, "val2017/000000000009.jpg", "val2017/000000000009.jpg"),
        (smaller, "annotations/instances_val2017.json", "annotations/instances_val2017.json"),
        (smaller, "train2017/000000000009.jpg", None),
        (smaller, "annotations/instances_train2017.json", None),
        (every, "annotations/captions_val2017.json", None),
        (every, "top/val2017/000000000009.jpg", None),
    ):
        assert coco.place(half, name) == place
    translator = find_dataset("wmt16")
    assert translator.place(Half((), 0, ()), "dev/newstest2013.de") == ".raw/newstest2013.de"


def test_a_name_that_leads_out_is_refused(tmp_path):
    for name in ("../evil", "a/../../evil", "/evil", "a\\..\\evil", "a/.."):
        for path in (zipped(tmp_path / "packed.zip", name), tar(tmp_path / "packed.tar", entry(name))):
            for place in (str, lambda name: None):
                with pytest.raises(DamagedArchiveError, match="leads out of its folder"):
                    take(path, tmp_path / "deep" / "out", place)
    assert [path.name for path in tmp_path.rglob("*evil*")] == []


def test_links_and_devices_are_refused(tmp_path):
    for bad in (
        entry("a", tarfile.SYMTYPE, "/etc/passwd"),
        entry("a", tarfile.SYMTYPE, "b"),
        entry("a", tarfile.LNKTYPE, "../../b"),
        entry("a", tarfile.CHRTYPE),
        entry("a", tarfile.BLKTYPE),
        entry("a", tarfile.FIFOTYPE),
    ):
        with pytest.raises(DamagedArchiveError, match="a in it is a link or a device, not a file"):
            take(tar(tmp_path / "packed.tar", bad), tmp_path / "out")
    path = zipped(tmp_path / "packed.zip", "a", mode=stat.S_IFLNK | 0o777, content=b"/etc/passwd")
    with pytest.raises(DamagedArchiveError, match="a in it is a link or a device"):
        take(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_mode_of_the_archive_arrives_and_no_file_is_written_twice(tmp_path):
    path = tar(tmp_path / "packed.tar", entry("a", mode=0o6777), entry("a"))
    with pytest.raises(DamagedArchiveError, match="it holds a twice"):
        take(path, tmp_path / "out")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "out" / "a").stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("end", [".tgz", ".zip", ".gz"])
def test_a_bomb_stops(tmp_path, end):
    path, content = tmp_path / f"a{end}", bytes(10_000_000)
    if end == ".gz":
        path.write_bytes(gzip.compress(content))
    else:
        path = zipped(path, "a", content=content) if end == ".zip" else tar(path, entry("a"), content=content)
    with pytest.raises(DamagedArchiveError, match="far more than 1,000,000 bytes"):
        take(path, tmp_path / "out", expected_bytes=1_000_000)
    assert (tmp_path / "out" / "a").stat().st_size <= 3_300_000


@pytest.mark.parametrize("end", [*KINDS, ".zip", ".gz"])
def test_damage_is_one_sentence(tmp_path, end):
    path, content = tmp_path / f"a{end}", os.urandom(100_000)
    if end == ".gz":
        path.write_bytes(gzip.compress(content))
    else:
        path = zipped(path, "a", content=content) if end == ".zip" else tar(path, entry("a"), content=content)
    whole = path.read_bytes()
    middle = len(whole) // 2
    take(path, tmp_path / "whole", expected_bytes=100_000)
    assert files(tmp_path / "whole") == {"a": content}
    damaged = {
        "cut": whole[:middle],
        "flipped": whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :],
        "html": b"<html><body>Please log in.</body></html>",
        "empty": b"",
    }
    # A plain tar file has no checksum of its contents, and an empty gzip file is one of no parts.
    for kind in damaged.keys() - {".tar": {"flipped"}, ".gz": {"empty"}}.get(end, set()):
        path.write_bytes(damaged[kind])
        with pytest.raises(DamagedArchiveError, match="is no whole archive"):
            take(path, tmp_path / kind, expected_bytes=100_000)


def test_a_tar_file_in_a_tar_file_is_read_through(tmp_path):
    inner = tar(tmp_path / "inner.tar", entry("b"), entry("../c")).read_bytes()
    path = tar(tmp_path / "outer.tar", entry("a.tar"), content=inner)
    with pytest.raises(DamagedArchiveError, match="leads out of its folder"):
        take(path, tmp_path / "out")
    assert files(tmp_path / "out") == {"b": b"content"}


def test_what_the_disk_refuses_goes_on(tmp_path):
    with pytest.raises(FileNotFoundError):
        take(tmp_path / "none.tar", tmp_path / "out")


def test_an_encrypted_zip_is_refused(tmp_path):
    path = zipped(tmp_path / "packed.zip", "a")
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    data[data.index(b"PK\x03\x04") + 6] |= 1
    path.write_bytes(data)
    with pytest.raises(DamagedArchiveError, match="cannot be unpacked"):
        take(path, tmp_path / "out")


NAMES = st.lists(st.text(st.sampled_from("ab./\\ \0\n~"), min_size=1, max_size=8), min_size=1, max_size=4)


@pytest.mark.filterwarnings("ignore:Duplicate name")  # a zip file cuts names at a NUL
@settings(deadline=None)
@given(names=NAMES, as_zip=st.booleans())
def test_whatever_the_names_nothing_is_written_outside(tmp_path_factory, names, as_zip):
    root = tmp_path_factory.mktemp("names")
    path = root / ("packed.zip" if as_zip else "packed.tar")
    with suppress(DamagedArchiveError, OSError):
        (zipped(path, *dict.fromkeys(names)) if as_zip else tar(path, *map(entry, names)))
        take(path, root / "in" / "side")
    outside = [one for one in root.rglob("*") if not one.is_relative_to(root / "in" / "side") and one.is_file()]
    assert outside == [path]
