"""Warmed files are in the page cache and dropped ones are not, by the kernel's own count."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cotenant.machine import page_cache
from cotenant.machine.page_cache import Cached, drop, treat, warm

SIZE = 3 << 20


def never() -> bool:
    return False


@pytest.fixture
def data() -> Path:
    """A folder on a real file system: on tmpfs the page cache is the file. Removed by the test run's own cleaning."""
    here = Path(__file__).resolve().parents[2] / ".pytest_cache" / "page_cache"
    (here / "deep").mkdir(parents=True, exist_ok=True)
    for path in (here / "one", here / "deep" / "two"):
        path.write_bytes(os.urandom(SIZE))
    kind = subprocess.run(["stat", "-f", "-c", "%T", here], capture_output=True, text=True, check=True).stdout.strip()
    if kind in ("tmpfs", "ramfs"):
        pytest.skip("the checkout lies on tmpfs, which is page cache only")
    if treat([here], warm, never).cached_bytes is None:
        pytest.skip("this kernel has no cachestat (Linux 6.5)")
    return here


def test_dropped_files_are_out_of_the_cache_and_warmed_ones_are_in_it_until_it_is_told_to_end(data: Path) -> None:
    assert treat([data], drop, never) == Cached(2, 2 * SIZE, 0)
    assert treat([data / "one"], warm, never) == Cached(1, SIZE, SIZE)
    assert treat([data], lambda descriptor: None, never) == Cached(2, 2 * SIZE, SIZE)
    assert treat([data], warm, lambda: True).files == 0


def test_what_is_not_there_or_not_a_file_is_left_out(data: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert treat([tmp_path, tmp_path / "absent"], warm, never).files == 0


def test_a_folder_that_may_be_listed_and_not_searched_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by its mode: root searches any."""
    stat = os.stat

    def refusing(path: Any, **how: Any) -> os.stat_result:
        if str(path) == str(tmp_path / "one"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return stat(path, **how)

    monkeypatch.setattr(os, "stat", refusing)
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"x")
    assert treat([tmp_path], warm, never).files == 1


def test_an_older_kernel_says_nothing_of_what_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").write_bytes(b"x")
    monkeypatch.setattr(page_cache, "SYS_CACHESTAT", 100_000)
    assert treat([tmp_path], warm, never) == Cached(1, 1, None)


def test_files_are_counted_when_all_are_treated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file read last may push out the one read first: here the cache holds one file."""
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"x")
    last: list[int] = []

    def read(descriptor: int) -> None:
        last[:] = [os.fstat(descriptor).st_ino]

    monkeypatch.setattr(page_cache, "cached", lambda descriptor: int(os.fstat(descriptor).st_ino in last))
    assert treat([tmp_path], read, never) == Cached(2, 2, 1)
