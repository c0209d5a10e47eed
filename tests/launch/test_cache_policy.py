"""The page-cache policy: which files it concerns, and the words that it puts before a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotenant.errors import CotenantError
from cotenant.launch import command
from cotenant.launch.command import nocache_prefix
from cotenant.launch.data import input_paths, prepare_cache
from cotenant.launch.paths import RunPaths


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    for name in ("data", "output", "tmp", "meeting"):
        (tmp_path / name).mkdir()
    return RunPaths(tmp_path, *(tmp_path / name for name in ("data", "output", "tmp", "meeting")))


def test_inputs_are_the_paths_that_exist_and_are_not_ours(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may stand behind an equals sign, and be relative to where we are."""
    for name in ("mnist", "coco"):
        (paths.data / name).mkdir()
    monkeypatch.chdir(paths.data)
    words = ["/bin/sh", "--data", str(paths.data / "mnist"), "--report", str(paths.output), "128", "data"]
    words += ["--log", str(paths.temporary / "x"), "--labels", str(paths.data / "absent")]
    assert input_paths([words, words], paths) == (paths.data / "mnist",)
    words = ["x", f"--data={paths.data / 'mnist'}", "--more", "coco", f"--report={paths.output}", "", "--empty="]
    words += ["--absent=imagenet", "a=b=c", "x" * 5000, f"--long={'y/' * 3000}"]
    assert input_paths([words], paths) == (paths.data / "coco", paths.data / "mnist")


def test_a_policy_counts_what_it_treated_and_none_touches_nothing(paths: RunPaths) -> None:
    (paths.data / "one").write_bytes(b"12345")
    treated = prepare_cache("warm", [paths.data], lambda: False)
    assert treated is not None
    assert (treated.files, treated.size_bytes) == (1, 5)
    assert prepare_cache("none", [paths.data], lambda: False) is None


def test_nocache_is_a_program_that_has_to_be_there_and_does_not_reach_into_an_image(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert nocache_prefix("none") == nocache_prefix("drop") == nocache_prefix("drop", "image.sif") == []
    monkeypatch.setattr(command.shutil, "which", lambda name: None)
    with pytest.raises(CotenantError, match="apt-get install nocache"):
        nocache_prefix("nocache")
    with pytest.raises(CotenantError, match=r"no effect on a command inside an image.*--cache drop"):
        nocache_prefix("nocache", "image.sif")
    monkeypatch.setattr(command.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert nocache_prefix("nocache") == ["/usr/bin/nocache"]
