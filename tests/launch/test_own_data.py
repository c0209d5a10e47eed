"""A person's own files in a set's place: read as they stand, and told from a set of ours that is not finished."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cotenant.datasets.dataset import read_manifest
from cotenant.datasets.sets.mnist import DATASET
from cotenant.isolation.entry import own_shm_can_be_had
from cotenant.launch.data import prepare_data
from cotenant.launch.events import Interruption
from cotenant.launch.observer import Unobserved
from launch.resolving import options, resolved
from tenants.suites import SUMS, Suites, found, with_data

IMAGES = "train-images-idx3-ubyte"


def reading(folder: Path, path: str) -> list[dict[str, Any]]:
    """A job that reads `path`, with the maker of MNIST."""
    (job,) = with_data(folder, 'exec python -m cotenant.datasets mnist "$@"', then=SUMS)
    return [job | {"args": {"--data": f"$DATA_DIRECTORY/{path}"}}]


def own(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / IMAGES).write_bytes(b"mine")
    return folder


def test_it_is_read_as_it_stands(loose: Suites) -> None:
    """Here through a link."""
    data = loose.base / "data"
    data.mkdir(parents=True)
    (data / "mnist").symlink_to(own(loose.folder / "elsewhere"))
    ended = loose.run(reading(loose.folder, f"mnist/{IMAGES}"), "--users", 2, status=0)
    assert loose.outcomes() == ["completed"] * 2
    assert "error" not in ended.stderr
    for record in loose.records():
        (said,) = found(record, "as_it_stands")
        assert said["severity"] == "info"
        assert said["sentence"] == f"{data}/mnist/{IMAGES} was read as it is: it has no manifest to check it by."
        assert "empty DATA_DIRECTORY" in said["remedy"]
    assert [path.name for path in data.iterdir()] == ["mnist"]
    assert (data / "mnist" / IMAGES).read_bytes() == b"mine"


Prepare = Callable[..., str | None]


@pytest.fixture
def prepare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruption: Interruption) -> Prepare:
    """Makes the data of one job in this process; returns why it is missing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BASE", str(tmp_path / "base"))

    def prepare(jobs: list[dict[str, Any]], *extra: str, data: str = "base/data", mode: str = "none") -> str | None:
        monkeypatch.setenv("DATA_DIRECTORY", str(tmp_path / data))
        (tmp_path / "jobs.json").write_text(json.dumps(jobs))
        asked = options("--jobs", "jobs.json", "--users", 1, "--isolation", mode, extra=extra)
        ((_, missing),) = prepare_data(asked, resolved(asked).starts(), interruption, Unobserved())
        return missing

    return prepare


def test_no_data_set_is_made_beside_files_of_the_user(prepare: Prepare, tmp_path: Path) -> None:
    data = own(tmp_path / "base/data/mnist")
    beside = f"There is no {data}/more, and no set is made beside files that may be your own."
    assert prepare(reading(tmp_path, f"mnist/{IMAGES}")) is None
    assert prepare(reading(tmp_path, "mnist/more")) == beside
    (data / "manifest.json").write_text("{")
    assert "ended with exit status 2; run it by hand" in str(prepare(reading(tmp_path, "mnist")))


def test_a_set_where_no_tenant_would_see_it_is_not_made(prepare: Prepare, tmp_path: Path) -> None:
    if not own_shm_can_be_had():
        pytest.skip("users share the machine's /dev/shm here")
    place = Path("/dev/shm", f"cotenant-test.{tmp_path.name}")
    missing = prepare(reading(tmp_path, "mnist"), data=str(place), mode="affinity")
    assert str(missing).startswith(f"{place} lies in /dev/shm, but each user has a /dev/shm of its own.")
    assert not place.exists()


@pytest.mark.slow
def test_a_set_of_ours_that_is_half_made_is_finished(loose: Suites) -> None:
    staging = loose.base / f"data/.making/mnist-small-v{DATASET.version}"
    own(staging).joinpath(IMAGES).rename(staging / f".{IMAGES}.1.part")
    loose.run(reading(loose.folder, "mnist"), "--users", 1, status=0)
    assert read_manifest(loose.base / "data/mnist") is not None
    assert not found(loose.records()[0], "as_it_stands")


def test_a_set_that_is_not_read_is_not_made(prepare: Prepare, tmp_path: Path) -> None:
    """Another one is named behind `--`."""
    jobs = with_data(tmp_path, "exit 4")
    assert prepare(jobs, "--data", str(own(tmp_path / "elsewhere"))) is None
    assert "ended with exit status 4" in str(prepare(jobs))


def test_a_data_set_named_only_after_the_dashes_is_made(prepare: Prepare, tmp_path: Path) -> None:
    (job,) = with_data(tmp_path, 'mkdir -p "$DATA_DIRECTORY/x"')
    assert prepare([job | {"args": {}}], "--data", "$DATA_DIRECTORY/x") is None
    assert (tmp_path / "base/data/x").is_dir()
