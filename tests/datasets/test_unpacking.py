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

from cotenant.datasets import unpacking
from cotenant.datasets.real.real_set import matching
from cotenant.datasets.unpacking import DamagedArchiveError, unpack, unpack_gzip

EVERYTHING = matching({r"(.*)": r"\1"})
KINDS = {".tar": "w", ".tgz": "w:gz", ".tar.bz2": "w:bz2"}


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
    unpack(path, tmp_path / "out", matching({r"top/(\w)/(\d)\.txt": r"\2/\1"}), 1000)
    assert files(tmp_path / "out") == {"1/a": b"content", "2/b": b"content"}


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/evil", "a\\..\\evil", "a/.."])
@pytest.mark.parametrize("end", [".tar", ".zip"])
@pytest.mark.parametrize("wanted", [True, False])
def test_a_name_that_leads_out_is_refused(tmp_path, name, end, wanted):
    path = tmp_path / f"packed{end}"
    path = zipped(path, name) if end == ".zip" else tar(path, entry(name))
    place = EVERYTHING if wanted else matching({})
    with pytest.raises(DamagedArchiveError, match="leads out of its folder"):
        unpack(path, tmp_path / "deep" / "out", place, 1000)
    assert [one.name for one in tmp_path.rglob("*evil*")] == []


@pytest.mark.parametrize(
    "bad",
    [
        entry("a", tarfile.SYMTYPE, "/etc/passwd"),
        entry("a", tarfile.SYMTYPE, "b"),
        entry("a", tarfile.LNKTYPE, "../../b"),
        entry("a", tarfile.CHRTYPE),
        entry("a", tarfile.BLKTYPE),
        entry("a", tarfile.FIFOTYPE),
    ],
    ids=lambda info: f"{info.type!r} {info.linkname}",
)
def test_links_and_devices_are_refused(tmp_path, bad):
    path = tar(tmp_path / "packed.tar", bad)
    with pytest.raises(DamagedArchiveError, match="a in it is a link or a device, not a file"):
        unpack(path, tmp_path / "out", EVERYTHING, 1000)
    assert not (tmp_path / "out").exists()


def test_a_link_in_a_zip_is_refused(tmp_path):
    path = zipped(tmp_path / "packed.zip", "a", mode=stat.S_IFLNK | 0o777, content=b"/etc/passwd")
    with pytest.raises(DamagedArchiveError, match="a in it is a link or a device"):
        unpack(path, tmp_path / "out", EVERYTHING, 1000)


def test_no_mode_of_the_archive_arrives(tmp_path):
    path = tar(tmp_path / "packed.tar", entry("a", mode=0o6777))
    unpack(path, tmp_path / "out", EVERYTHING, 1000)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "out" / "a").stat().st_mode) == 0o666 & ~mask


def test_no_file_is_written_twice(tmp_path):
    path = tar(tmp_path / "packed.tar", entry("a"), entry("a"))
    with pytest.raises(DamagedArchiveError, match="it holds a twice"):
        unpack(path, tmp_path / "out", EVERYTHING, 1000)


@pytest.mark.parametrize("end", [".tgz", ".tar.bz2", ".zip"])
def test_a_bomb_stops(tmp_path, end):
    path = tmp_path / f"packed{end}"
    content = bytes(10_000_000)
    path = zipped(path, "a", content=content) if end == ".zip" else tar(path, entry("a"), content=content)
    with pytest.raises(DamagedArchiveError, match="far more than 1,000,000 bytes"):
        unpack(path, tmp_path / "out", EVERYTHING, 1_000_000)
    assert (tmp_path / "out" / "a").stat().st_size <= 3_300_000


@pytest.mark.parametrize("end", [*KINDS, ".zip"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "html", "empty"])
def test_damage_is_one_sentence(tmp_path, end, damage):
    path = tmp_path / f"packed{end}"
    content = os.urandom(100_000)
    path = zipped(path, "a", content=content) if end == ".zip" else tar(path, entry("a"), content=content)
    whole = path.read_bytes()
    middle = len(whole) // 2
    damaged = {
        "cut": whole[:middle],
        "flipped": whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :],
        "html": b"<html><body>Please log in.</body></html>",
        "empty": b"",
    }
    path.write_bytes(damaged[damage])
    if (end, damage) == (".tar", "flipped"):
        return  # A plain tar file has no checksum of its contents.
    with pytest.raises(DamagedArchiveError, match="is no whole archive"):
        unpack(path, tmp_path / "out", EVERYTHING, 1_000_000)


@pytest.mark.parametrize("damage", [None, "cut", "html"])
def test_a_gzip_file(tmp_path, damage):
    path = tmp_path / "file.gz"
    whole = gzip.compress(b"content" * 1000)
    path.write_bytes({None: whole, "cut": whole[:-9], "html": b"<html>"}[damage])
    if damage is None:
        unpack_gzip(path, tmp_path / "file", 7000)
        assert (tmp_path / "file").read_bytes() == b"content" * 1000
    else:
        with pytest.raises(DamagedArchiveError, match="is no whole archive"):
            unpack_gzip(path, tmp_path / "file", 7000)


def test_what_the_disk_says_goes_on(tmp_path):
    with pytest.raises(FileNotFoundError):
        unpack(tmp_path / "none.tar", tmp_path / "out", EVERYTHING, 1000)


def test_an_encrypted_zip_is_refused(tmp_path):
    path = zipped(tmp_path / "packed.zip", "a")
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    data[data.index(b"PK\x03\x04") + 6] |= 1
    path.write_bytes(data)
    with pytest.raises(DamagedArchiveError, match="cannot be unpacked"):
        unpack(path, tmp_path / "out", EVERYTHING, 1000)


NAMES = st.lists(st.text(st.sampled_from("ab./\\ \0\n~"), min_size=1, max_size=8), min_size=1, max_size=4)


@settings(max_examples=150, deadline=None)
@given(names=NAMES, as_zip=st.booleans())
def test_whatever_the_names_nothing_is_written_outside(tmp_path_factory, names, as_zip):
    root = tmp_path_factory.mktemp("names")
    buffer = io.BytesIO()
    if as_zip:
        with zipfile.ZipFile(buffer, "w") as packed:
            for info in {info.filename: info for info in map(zipfile.ZipInfo, names)}.values():
                packed.writestr(info, b"x")
        members = list(unpacking._of_zip(zipfile.ZipFile(buffer)))
    else:
        with tarfile.open(fileobj=buffer, mode="w") as packed:
            for name in names:
                info = entry(name)
                info.size = 1
                packed.addfile(info, io.BytesIO(b"x"))
        buffer.seek(0)
        members = unpacking.of_tar(tarfile.open(fileobj=buffer))
    with suppress(DamagedArchiveError, OSError):
        unpacking.write(members, root / "in" / "side", lambda name: name, 1000, "names")
    outside = [path for path in root.rglob("*") if not path.is_relative_to(root / "in" / "side") and path.is_file()]
    assert outside == []
