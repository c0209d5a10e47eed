"""Files that archives yield, and members that are never unpacked."""

import gzip
import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from cotenant.datasets.dataset import Half
from cotenant.datasets.sets import find_dataset
from cotenant.datasets.unpack import DamagedArchiveError, unpack

KINDS = (".tar", ".tgz", ".tar.gz", ".zip")


def take(path: Path, folder: Path, place=str, expected_bytes: int = 1000) -> dict[str, bytes]:
    """Unpack an archive into a folder; return the contents of all files there by path."""
    unpack([path], folder, place, expected_bytes, "a set")
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def packed(path: Path, *names: str, content: bytes = b"content", more: tuple[tarfile.TarInfo, ...] = ()) -> Path:
    """Write an archive of these files, or `content` as a gzip file; a tar file also gets the members `more`."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("top/", b"")
            for name in names:
                archive.writestr(name, content)
    elif path.suffix == ".gz" and not path.name.endswith(".tar.gz"):
        path.write_bytes(gzip.compress(content))
    else:
        with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as tar:
            for info in (*map(tarfile.TarInfo, names), *more):
                info.size = len(content) if info.isreg() else 0
                info.mode = 0o6777
                tar.addfile(info, io.BytesIO(content))
    return path


def special(name: str, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    return info


def test_wanted_files_come_out_and_nothing_else(tmp_path):
    kinds = (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
    names = ("./top/a/1.txt", "top/b/2.txt", "top/other.bin", "../evil", "/evil")
    places = {"./top/a/1.txt": "1/a", "top/b/2.txt": "2/b"} | {f"x{n}": f"x{n}" for n in range(len(kinds))}
    more = tuple(special(f"x{number}", kind) for number, kind in enumerate(kinds))
    for end in KINDS:
        path, out = packed(tmp_path / f"packed{end}", *names, more=more), tmp_path / f"out{end}"
        assert take(path, out, places.get) == {"1/a": b"content", "2/b": b"content"}
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "out.tar" / "1" / "a").stat().st_mode) == 0o666 & ~mask


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
        (every, "../val2017/000000000009.jpg", None),
        (every, "val2017/../000000000009.jpg", None),
    ):
        assert coco.place(half, name) == place
    translator = find_dataset("wmt16")
    assert translator.place(Half((), 0, ()), "dev/newstest2013.de") == ".raw/newstest2013.de"


@pytest.mark.parametrize("end", [".tar", ".tgz", ".zip", ".gz"])
def test_damage_and_bombs(tmp_path, end):
    bomb = packed(tmp_path / f"bomb{end}", "bomb", content=bytes(10_000_000))
    with pytest.raises(DamagedArchiveError, match="far more than 1,000,000 bytes"):
        take(bomb, tmp_path / "out", expected_bytes=1_000_000)
    assert (tmp_path / "out" / "bomb").stat().st_size <= 3_300_000
    content = os.urandom(100_000)
    path = packed(tmp_path / f"a{end}", "a", content=content)
    whole = path.read_bytes()
    middle = len(whole) // 2
    assert take(path, tmp_path / "whole", expected_bytes=100_000) == {"a": content}
    damaged = {
        "cut": whole[:middle],
        "flipped": whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :],
        "html": b"<html><body>Please log in.</body></html>",
        "empty": b"",
    }
    # A plain tar file has no checksum of its contents, and an empty gzip file is valid.
    for kind in damaged.keys() - {".tar": {"flipped"}, ".gz": {"empty"}}.get(end, set()):
        path.write_bytes(damaged[kind])
        with pytest.raises(DamagedArchiveError, match="is no whole archive"):
            take(path, tmp_path / kind, expected_bytes=100_000)


def test_a_tar_file_in_a_tar_file_is_read_through(tmp_path):
    inner = packed(tmp_path / "inner.tar", "b", "c").read_bytes()
    assert take(packed(tmp_path / "outer.tar", "a.tar", content=inner), tmp_path / "out") == dict.fromkeys(
        "bc", b"content"
    )


def test_what_the_disk_refuses_goes_on(tmp_path):
    with pytest.raises(FileNotFoundError):
        take(tmp_path / "none.tar", tmp_path / "out")
