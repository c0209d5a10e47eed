"""The page-cache policy: which files it concerns, and what stands before a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotenant.errors import CotenantError
from cotenant.launch import cache
from cotenant.launch.cache import input_paths, nocache_prefix, prepare_cache
from cotenant.launch.places import Places


@pytest.fixture
def places(tmp_path: Path) -> Places:
    for name in ("data", "output", "tmp", "meeting"):
        (tmp_path / name).mkdir()
    return Places(tmp_path, *(tmp_path / name for name in ("data", "output", "tmp", "meeting")))


def test_inputs_are_the_paths_that_exist_and_are_not_ours(places: Places) -> None:
    (places.data / "mnist").mkdir()
    command = [
        "/bin/sh",
        "--data",
        str(places.data / "mnist"),
        "--report",
        str(places.output),
        "--log",
        str(places.temporary / "x"),
        "--labels",
        str(places.data / "absent"),
        "128",
        "data",
    ]
    assert input_paths([command, command], places) == (places.data / "mnist",)


def test_inputs_behind_an_equals_sign_and_from_here(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mnist", "coco"):
        (places.data / name).mkdir()
    monkeypatch.chdir(places.data)
    command = ["x", f"--data={places.data / 'mnist'}", "--more", "coco", f"--report={places.output}", "", "--empty="]
    command += ["--absent=imagenet", "a=b=c", "x" * 5000, f"--long={'y/' * 3000}"]
    assert input_paths([command], places) == (places.data / "coco", places.data / "mnist")


def test_no_policy_touches_nothing(places: Places) -> None:
    assert prepare_cache("none", [places.data], lambda: False) is None
    assert nocache_prefix("none") == nocache_prefix("drop") == []


def test_a_policy_counts_what_it_treated(places: Places) -> None:
    (places.data / "one").write_bytes(b"12345")
    treated = prepare_cache("warm", [places.data], lambda: False)
    assert treated is not None
    assert (treated.files, treated.size_bytes) == (1, 5)


def test_nocache_is_a_program_that_has_to_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache.shutil, "which", lambda name: None)
    with pytest.raises(CotenantError, match="apt-get install nocache"):
        nocache_prefix("nocache")
    monkeypatch.setattr(cache.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert nocache_prefix("nocache") == ["/usr/bin/nocache"]


def test_nocache_does_not_reach_into_an_image() -> None:
    with pytest.raises(CotenantError, match=r"no effect on a command inside the image .*--cache drop"):
        nocache_prefix("nocache", "image.sif")
    assert nocache_prefix("drop", "image.sif") == []
