"""A set counts as present, is kept, is replaced, or is left alone."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from cotenant.datasets import disk, fake, obtain
from cotenant.datasets.dataset import read_manifest
from cotenant.datasets.obtain import standing
from cotenant.datasets.request import SetRequest
from cotenant.errors import CotenantError
from cotenant.text import size_words


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def make(root, dataset, size="small", processes=1):
    obtain.obtain(SetRequest(root, dataset, size, processes=processes))


def present(root, dataset, size="small"):
    return standing(SetRequest(root, dataset, size)) is not None


def failing(dataset, error, after):
    """Return the set, with contents that raise `error` from file number `after` on."""
    count = iter(range(1000))

    def content(file):
        if next(count) >= after:
            raise error
        return dataset.content(file)

    return replace(dataset, content=content)


def test_a_made_set_is_present(tmp_path, tiny, capsys):
    root = tmp_path / "deep" / "data"
    assert not present(root, tiny)
    make(root, tiny)
    assert present(root, tiny)
    assert not present(root, tiny, "full")
    written = read_manifest(root / "ImageNet")
    assert (written.kind, written.size, written.files, written.splits) == ("fake", "small", 7, {"train": 5, "val": 2})
    assert written.bytes == sum(path.stat().st_size for path in root.rglob("*.JPEG"))
    assert sorted(path.name for path in root.iterdir()) == [".locks", "ImageNet"]
    assert "imagenet (small): making 7 files, about" in capsys.readouterr().err
    make(root, failing(tiny, AssertionError("made again"), after=0))
    assert capsys.readouterr().err == f"imagenet: present (small) in {root}/ImageNet\n"


def test_complete_files_are_kept(tmp_path, tiny, capsys):
    with pytest.raises(CotenantError, match="became full"):
        make(tmp_path, failing(tiny, OSError(errno.ENOSPC, "No space left"), after=4))
    assert not present(tmp_path, tiny)
    assert not (tmp_path / "ImageNet").exists()
    kept = {path.name: path.stat().st_ino for path in (tmp_path / ".making").rglob("*.JPEG")}
    assert len(kept) == 4
    there = size_words(sum(len(content) for content in contents(tmp_path / ".making").values()))
    capsys.readouterr()
    make(tmp_path, tiny)
    inodes = {path.name: path.stat().st_ino for path in (tmp_path / "ImageNet" / "train").rglob("*.JPEG")}
    assert kept.items() <= inodes.items()
    assert f"({there} there)" in capsys.readouterr().err
    # Worker processes make the same bytes.
    make(tmp_path / "fresh", tiny, processes=2)
    assert contents(tmp_path / "ImageNet") == contents(tmp_path / "fresh" / "ImageNet")


def test_there_are_no_more_workers_than_a_quota_gives_time_of(tmp_path, tiny, monkeypatch):
    seen = []

    def by_workers(make, tasks, processes):
        seen.append(processes)
        return map(make, tasks)

    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(64))
    monkeypatch.setattr(fake, "quota_processors", lambda mounts: 1.5)
    monkeypatch.setattr(fake, "_by_workers", by_workers)
    make(tmp_path, tiny, processes=None)
    assert seen == [2]


def test_a_file_that_disappears_counts_zero_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "is_file", lambda path: True)
    assert disk.file_size(tmp_path / "gone") == 0


def test_full_serves_small_and_small_gives_way_to_full(tmp_path, tiny):
    make(tmp_path, tiny)
    make(tmp_path, tiny, "full")
    assert present(tmp_path, tiny, "full")
    before = contents(tmp_path)
    assert len(before) == 9 + 1 + 1
    make(tmp_path, tiny)
    assert present(tmp_path, tiny)
    assert contents(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [".locks", "ImageNet"]
    # A new version starts from nothing: it takes over no files that older versions left.
    with pytest.raises(CotenantError, match="Input/output error"):
        make(tmp_path, failing(replace(tiny, version=2), OSError(errno.EIO, os.strerror(errno.EIO)), after=3))
    make(tmp_path, replace(tiny, version=3))
    made = read_manifest(tmp_path / "ImageNet")
    assert (made.size, made.version) == ("small", 3)
    assert not (tmp_path / ".making").exists()


def test_a_run_that_was_killed_as_it_swapped(tmp_path, tiny, monkeypatch):
    def killed(new, target):
        target.rename(new.with_name(f"{new.name}.old"))
        raise KeyboardInterrupt

    root = tmp_path / "data"
    make(root, tiny)
    with monkeypatch.context() as patched:
        patched.setattr(obtain, "swap_in", killed)
        with pytest.raises(KeyboardInterrupt):
            make(root, tiny, "full")
    assert not present(root, tiny)
    for place in (root, tmp_path / "fresh"):
        make(place, tiny, "full")
    assert contents(root / "ImageNet") == contents(tmp_path / "fresh" / "ImageNet")
    assert sorted(path.name for path in root.iterdir()) == [".locks", "ImageNet"]


def test_a_damaged_manifest_is_none(tmp_path, tiny):
    make(tmp_path, tiny)
    manifest = tmp_path / "ImageNet" / "manifest.json"
    whole = json.loads(manifest.read_text())
    broken = ["", "{", "[]", "null", '{"name": "imagenet"}', '{"size": "small"}', "\xff"]
    for text in (*broken, json.dumps(whole | {"size": 9})):
        manifest.write_bytes(text.encode("latin-1"))
        assert read_manifest(tmp_path / "ImageNet") is None
    # The set may be ours, so that it is not taken for a person's own files.
    with pytest.raises(CotenantError, match="may be your own") as caught:
        make(tmp_path, tiny)
    assert caught.value.exit_status == 2


def test_a_linked_set_is_not_present_and_a_linked_root_is_fine(tmp_path, tiny):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real").mkdir()
    make(tmp_path / "link", tiny)
    assert present(tmp_path / "real", tiny)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "ImageNet").symlink_to(tmp_path / "real" / "ImageNet")
    assert not present(tmp_path / "root", tiny)


def test_what_the_system_refuses_is_one_sentence(tmp_path, tiny):
    for number, sentence in (
        (errno.ENOSPC, "became full while imagenet .small. was made. Free some space"),
        (errno.EDQUOT, "became full .* Free some space"),
        (errno.EACCES, "cannot be used: .* Change its permissions"),
        (errno.EROFS, "cannot be used: Read-only file system"),
        (errno.EIO, "ended at .*: Input/output error. Repair that"),
    ):
        error = OSError(number, os.strerror(number), str(tmp_path))
        with pytest.raises(CotenantError, match=sentence) as caught:
            make(tmp_path, failing(tiny, error, after=1))
        assert caught.value.exit_status == 2
    (tmp_path / "file").write_text("")
    for below in ("", "data"):
        with pytest.raises(CotenantError, match="cannot be used as a folder"):
            make(tmp_path / "file" / below, tiny)
