"""When a set counts as present, what is kept, what is replaced and what is left alone."""

import errno
import json
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cotenant.datasets import files, makers, making, manifest, problems
from cotenant.datasets.maker import Part, Recipe
from cotenant.datasets.making import ensure
from cotenant.datasets.manifest import present, read_manifest
from cotenant.errors import CotenantError
from cotenant.text import size_words


@pytest.fixture(autouse=True)
def registered(tiny, monkeypatch):
    monkeypatch.setattr(manifest, "find_maker", lambda name: {"imagenet": tiny}[name])


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def failing(maker, error, after):
    """Return the maker whose content raises `error` from the file number `after` on."""
    count = iter(range(1000))

    def content(part, seed):
        if next(count) >= after:
            raise error
        return maker.content(part, seed)

    return replace(maker, content=content)


def test_a_made_set_is_present(tmp_path, tiny, capsys):
    root = tmp_path / "deep" / "data"
    assert not present(root, "imagenet", "small")
    ensure(root, tiny, "small", processes=1)
    assert present(root, "imagenet", "small")
    assert not present(root, "imagenet", "full")
    written = json.loads((root / "ImageNet" / "manifest.json").read_text())
    pictures = [path.stat().st_size for path in root.rglob("*.JPEG")]
    assert written == {
        "name": "imagenet",
        "size": "small",
        "kind": "fake",
        "seed": 0,
        "version": 1,
        "files": 7,
        "bytes": sum(pictures),
        "splits": {"train": 5, "val": 2},
        "half": "all",
        "sources": [],
        "taken_from": None,
    }
    assert sorted(path.name for path in root.iterdir()) == [".locks", "ImageNet"]
    assert "7 files, about" in capsys.readouterr().err


def test_workers_change_no_byte(tmp_path, tiny):
    ensure(tmp_path / "one", tiny, "small", processes=1)
    ensure(tmp_path / "two", tiny, "small", processes=2)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_a_second_run_makes_nothing(tmp_path, tiny, capsys):
    ensure(tmp_path, tiny, "small", processes=1)
    ensure(tmp_path, failing(tiny, AssertionError("made again"), after=0), "small", processes=1)
    assert "present (small)" in capsys.readouterr().err


def test_the_manifest_comes_last(tmp_path, tiny, monkeypatch):
    seen = []
    real = manifest.write_file

    def write_file(path, pieces):
        seen.append(len(tree(tmp_path / ".making")))
        return real(path, pieces)

    monkeypatch.setattr(manifest, "write_file", write_file)
    ensure(tmp_path, tiny, "small", processes=1)
    assert seen == [7]


def test_complete_files_are_kept(tmp_path, tiny, capsys):
    with pytest.raises(CotenantError, match="became full"):
        ensure(tmp_path, failing(tiny, OSError(errno.ENOSPC, "No space left"), after=4), "small", processes=1)
    assert not present(tmp_path, "imagenet", "small")
    assert not (tmp_path / "ImageNet").exists()
    kept = {path.name: path.stat().st_ino for path in (tmp_path / ".making").rglob("*.JPEG")}
    assert len(kept) == 4
    ensure(tmp_path, tiny, "small", processes=1)
    inodes = {path.name: path.stat().st_ino for path in (tmp_path / "ImageNet" / "train").rglob("*.JPEG")}
    assert kept.items() <= inodes.items()
    assert "4 files are there already" in capsys.readouterr().err
    ensure(tmp_path / "fresh", tiny, "small", processes=1)
    assert tree(tmp_path / "ImageNet") == tree(tmp_path / "fresh" / "ImageNet")


def test_a_file_that_ends_early_never_has_its_name(tmp_path):
    def pieces():
        yield b"half"
        raise OSError(errno.ENOSPC, "No space left")

    with pytest.raises(OSError):
        files.write_file(tmp_path / "name", pieces())
    assert list(tmp_path.iterdir()) == []


def test_full_serves_small(tmp_path, tiny):
    ensure(tmp_path, tiny, "full", processes=1)
    before = tree(tmp_path)
    ensure(tmp_path, tiny, "small", processes=1)
    assert present(tmp_path, "imagenet", "small")
    assert tree(tmp_path) == before


@pytest.mark.parametrize("can_exchange", [True, False])
def test_small_gives_way_to_full(tmp_path, tiny, monkeypatch, can_exchange):
    if not can_exchange:
        monkeypatch.setattr(files, "_exchange", lambda first, second: False)
    ensure(tmp_path, tiny, "small", processes=1)
    ensure(tmp_path, tiny, "full", processes=1)
    assert present(tmp_path, "imagenet", "full")
    assert len(tree(tmp_path / "ImageNet")) == 9 + 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [".locks", "ImageNet"]


def test_there_is_a_set_at_every_moment_of_a_swap(tmp_path):
    new, target = tmp_path / "new", tmp_path / "target"
    target.mkdir()
    missed, stop = [], threading.Event()

    def watch():
        while not stop.is_set():
            if not target.is_dir():
                missed.append(1)

    new.mkdir()
    if not files._exchange(new, target):
        pytest.skip("this file system cannot exchange names")
    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(200):
        new.mkdir(exist_ok=True)
        files.swap_in(new, target)
    stop.set()
    watcher.join()
    assert missed == []


def test_another_version_is_made_anew(tmp_path, tiny):
    ensure(tmp_path, tiny, "full", processes=1)
    newer = replace(tiny, version=2)
    ensure(tmp_path, newer, "small", processes=1)
    made = read_manifest(tmp_path / "ImageNet")
    assert made is not None
    assert (made.size, made.version) == ("small", 2)


def test_what_older_makers_left_is_not_taken_over(tmp_path, tiny):
    with pytest.raises(CotenantError):
        ensure(tmp_path, failing(tiny, OSError(errno.EIO, "bad disk"), after=3), "small", processes=1)
    ensure(tmp_path, replace(tiny, version=2), "small", processes=1)
    assert not (tmp_path / ".making").exists()


def test_a_set_on_its_way_out_is_not_taken_for_one_in_the_making(tmp_path, tiny, monkeypatch):
    """Killed in the midst of the swap, and then the new set was removed by somebody."""

    def killed(new, target):
        if not files._exchange(new, target):
            pytest.skip("this file system cannot exchange names")
        raise KeyboardInterrupt

    root = tmp_path / "data"
    ensure(root, tiny, "small", processes=1)
    with monkeypatch.context() as patched:
        patched.setattr(making, "swap_in", killed)
        with pytest.raises(KeyboardInterrupt):
            ensure(root, tiny, "full", processes=1)
    shutil.rmtree(root / "ImageNet")
    for place in (root, tmp_path / "fresh"):
        ensure(place, tiny, "full", processes=1)
    assert tree(root / "ImageNet") == tree(tmp_path / "fresh" / "ImageNet")


def test_leftovers_of_a_standing_set_go_at_the_next_start(tmp_path, tiny):
    ensure(tmp_path, tiny, "full", processes=1)
    old = tmp_path / ".making" / "imagenet-full-v1-s0.old" / "train"
    old.mkdir(parents=True)
    (tmp_path / ".making" / "imagenet-small-v0-s0").mkdir()
    ensure(tmp_path, tiny, "small", processes=1)
    assert not (tmp_path / ".making").exists()


def test_a_larger_set_in_the_making_is_left_alone(tmp_path, tiny):
    ensure(tmp_path, tiny, "small", processes=1)
    staging = tmp_path / ".making" / "imagenet-full-v1-s0"
    staging.mkdir(parents=True)
    ensure(tmp_path, tiny, "small", processes=1)
    assert staging.exists()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"name": "imagenet"}', '{"size": "small"}', "\xff"],
)
def test_a_damaged_manifest_is_none(tmp_path, tiny, text):
    ensure(tmp_path, tiny, "small", processes=1)
    (tmp_path / "ImageNet" / "manifest.json").write_bytes(text.encode("latin-1"))
    assert not present(tmp_path, "imagenet", "small")


def test_own_files_are_never_replaced(tmp_path, tiny):
    own = tmp_path / "ImageNet" / "train" / "mine.JPEG"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"mine")
    with pytest.raises(CotenantError, match=r"may be your own\. Move the folder away"):
        ensure(tmp_path, tiny, "small", processes=1)
    assert own.read_bytes() == b"mine"
    assert [path.name for path in tmp_path.iterdir()] == ["ImageNet"]


def test_an_empty_folder_is_nobodys(tmp_path, tiny):
    (tmp_path / "ImageNet").mkdir()
    ensure(tmp_path, tiny, "small", processes=1)
    assert present(tmp_path, "imagenet", "small")


@pytest.mark.parametrize("name", ["ImageNet", ".making", ".locks", ".making/imagenet-small-v1-s0"])
def test_no_name_leads_out_of_the_root(tmp_path, tiny, name):
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / name).parent.mkdir(parents=True)
    outside.mkdir()
    (outside / ".x.1.part").write_bytes(b"mine")
    (root / name).symlink_to(outside)
    with pytest.raises(CotenantError, match=r"cannot be used as a folder: .* symbolic link"):
        ensure(root, tiny, "small", processes=1)
    assert tree(outside) == {".x.1.part": b"mine"}


def test_a_linked_set_is_not_present(tmp_path, tiny):
    ensure(tmp_path / "elsewhere", tiny, "small", processes=1)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "ImageNet").symlink_to(tmp_path / "elsewhere" / "ImageNet")
    assert not present(tmp_path / "root", "imagenet", "small")


def test_a_linked_root_is_fine(tmp_path, tiny):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    ensure(tmp_path / "link", tiny, "small", processes=1)
    assert present(tmp_path / "real", "imagenet", "small")


def test_a_path_with_dots_is_our_own_mistake(tmp_path, tiny):
    wrong = replace(tiny, sizes={"small": Recipe(0, lambda: [Part("train/../../x/y", "train", 1)])})
    with pytest.raises(AssertionError, match="leads out"):
        ensure(tmp_path, wrong, "small", processes=1)


def test_too_small_a_disk_is_said_before_anything_is_written(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(problems, "free_disk_bytes", lambda path: 10)
    with pytest.raises(CotenantError) as caught:
        ensure(tmp_path / "data", tiny, "full", processes=1)
    assert "imagenet (full) needs 17 kB and" in str(caught.value)
    assert "has 10 bytes free. Free some space" in str(caught.value)
    assert "--size small" in str(caught.value)
    assert not (tmp_path / "data").exists()


def test_what_is_made_already_needs_no_space(tmp_path, tiny, monkeypatch):
    with pytest.raises(CotenantError):
        ensure(tmp_path, failing(tiny, OSError(errno.EIO, "bad disk"), after=6), "small", processes=1)
    kept = sum(len(content) for content in tree(tmp_path / ".making").values())
    needed = tiny.sizes["small"].estimated_bytes - kept
    monkeypatch.setattr(problems, "free_disk_bytes", lambda path: needed - 1)
    with pytest.raises(CotenantError, match="needs"):
        ensure(tmp_path, tiny, "small", processes=1)
    monkeypatch.setattr(problems, "free_disk_bytes", lambda path: needed)
    ensure(tmp_path, tiny, "small", processes=1)


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "became full .* Free some space"),
        (errno.EDQUOT, "became full .* Free some space"),
        (errno.EACCES, "cannot be written: .* Change its permissions"),
        (errno.EROFS, "cannot be written: Read-only file system"),
        (errno.EIO, "ended at .*: Input/output error. Mend that"),
    ],
)
def test_what_the_system_refuses_is_one_sentence(tmp_path, tiny, number, sentence):
    error = OSError(number, os.strerror(number), str(tmp_path))
    with pytest.raises(CotenantError, match=sentence) as caught:
        ensure(tmp_path, failing(tiny, error, after=1), "small", processes=1)
    assert caught.value.exit_status == 2


def test_a_missing_package_is_named(tmp_path, tiny):
    with pytest.raises(CotenantError, match=r"'pillow' is missing\. pip install pillow"):
        ensure(
            tmp_path, failing(tiny, ModuleNotFoundError("No module named 'PIL'", name="PIL"), 0), "small", processes=1
        )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_no_permission(tmp_path, tiny):
    tmp_path.chmod(0o500)
    with pytest.raises(CotenantError, match="cannot be written: Permission denied"):
        ensure(tmp_path / "data", tiny, "small", processes=1)
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("below", ["", "data"])
def test_the_root_is_a_file(tmp_path, tiny, below):
    (tmp_path / "file").write_text("")
    with pytest.raises(CotenantError, match="cannot be used as a folder"):
        ensure(tmp_path / "file" / below, tiny, "small", processes=1)


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (31_400_000, "31 MB"),
        (999_950_000, "1.0 GB"),
        (5e15, "5000 TB"),
    ],
)
def test_size_words(size_bytes, words):
    assert size_words(size_bytes) == words


def test_every_maker_can_be_found():
    for name, maker in makers.MAKERS.items():
        assert makers.find_maker(name) is maker
        assert (maker.name, set(maker.sizes)) == (name, {"small", "full"})
