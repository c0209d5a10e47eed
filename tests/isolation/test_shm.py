"""Only what is new, ours and held by nobody is a leaving."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from cotenant.isolation.shm import Leavings, clear_leavings, present

MIB = 1 << 20


@pytest.fixture
def shm() -> Iterator[Path]:
    with TemporaryDirectory(prefix="cotenant-test-", dir="/dev/shm") as name:
        yield Path(name)


def test_new_files_are_removed_and_counted_and_older_ones_stay(shm: Path) -> None:
    (shm / "older").write_bytes(b"x")
    before = present(shm)
    (shm / "deep").mkdir()
    (shm / "deep" / "new").write_bytes(bytes(MIB))
    (shm / "torch_77_1").write_bytes(b"")
    assert clear_leavings(before, shm) == Leavings(2, MIB)
    assert sorted(path.name for path in shm.iterdir()) == ["deep", "older"]


def test_a_file_that_somebody_has_open_stays(shm: Path) -> None:
    with (shm / "open").open("wb"):
        assert clear_leavings(frozenset(), shm) == Leavings(0, 0)
    assert clear_leavings(frozenset(), shm).files == 1


def test_a_file_that_another_process_has_mapped_stays(shm: Path) -> None:
    path = shm / "mapped"
    path.write_bytes(bytes(MIB))
    program = (
        "import mmap, os, sys; f = os.open(sys.argv[1], os.O_RDWR); m = mmap.mmap(f, 4096); os.close(f);"
        "print('mapped', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"mapped\n"
        assert clear_leavings(frozenset(), shm) == Leavings(0, 0)
        assert holder.stdin is not None
        holder.stdin.close()
        holder.wait()
    assert clear_leavings(frozenset(), shm) == Leavings(1, MIB)


def test_a_link_is_not_followed(shm: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"x")
    (shm / "link").symlink_to(tmp_path / "theirs")
    assert clear_leavings(frozenset(), shm) == Leavings(0, 0)
    assert (tmp_path / "theirs").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="files of another user can only be made by root")
def test_another_users_file_stays(shm: Path) -> None:
    (shm / "theirs").write_bytes(b"x")
    os.chown(shm / "theirs", 65534, 65534)
    assert clear_leavings(frozenset(), shm) == Leavings(0, 0)


def test_a_mapping_of_this_process_counts(shm: Path) -> None:
    path = shm / "own"
    path.write_bytes(bytes(4096))
    with path.open("r+b") as file:
        mapping = mmap.mmap(file.fileno(), 4096)
    assert clear_leavings(frozenset(), shm) == Leavings(0, 0)
    mapping.close()
    assert clear_leavings(frozenset(), shm).files == 1
