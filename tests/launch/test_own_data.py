"""A person's own files in a set's place: read as they stand, and told from a set of ours that is not finished."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cotenant.datasets.dataset import read_manifest
from cotenant.datasets.sets.mnist import DATASET
from cotenant.isolation.entry import own_shm_can_be_had
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


@pytest.mark.parametrize("linked", [pytest.param(False, marks=pytest.mark.slow), True])
def test_it_is_read_as_it_stands(loose: Suites, linked: bool) -> None:
    data = loose.base / "data"
    if linked:
        data.mkdir(parents=True)
        (data / "mnist").symlink_to(own(loose.folder / "elsewhere"))
    else:
        own(data / "mnist")
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


def test_no_data_set_is_made_beside_files_of_the_user(loose: Suites) -> None:
    own(loose.base / "data/mnist")
    loose.run(reading(loose.folder, "mnist/more"), "--users", 1, status=1)
    (record,) = loose.records()
    assert record["outcome"] == "missing_data"
    assert record["message"].startswith(f"There is no {loose.base}/data/mnist/more, and no set is made beside files")
    (loose.base / "data/mnist/manifest.json").write_text("{")
    loose.run(reading(loose.folder, "mnist"), "--users", 1, status=1)
    assert loose.outcomes()[-1] == "missing_data"


def test_a_set_where_no_tenant_would_see_it_is_not_made(loose: Suites) -> None:
    if not own_shm_can_be_had():
        pytest.skip("users share the machine's /dev/shm here")
    place = Path("/dev/shm", loose.name)
    jobs = reading(loose.folder, "mnist")
    loose.run(jobs, "--users", 1, "--isolation", "affinity", status=1, DATA_DIRECTORY=str(place))
    (record,) = loose.records()
    assert record["outcome"] == "missing_data"
    assert record["message"].startswith(f"{place} lies in /dev/shm, but each user has a /dev/shm of its own.")
    assert not place.exists()


@pytest.mark.slow
def test_a_set_of_ours_that_is_half_made_is_finished(loose: Suites) -> None:
    staging = loose.base / f"data/.making/mnist-small-v{DATASET.version}"
    own(staging).joinpath(IMAGES).rename(staging / f".{IMAGES}.1.part")
    loose.run(reading(loose.folder, "mnist"), "--users", 1, status=0)
    assert read_manifest(loose.base / "data/mnist") is not None
    assert not found(loose.records()[0], "as_it_stands")


def test_a_set_that_is_not_read_is_not_made(loose: Suites) -> None:
    """Another one is named behind `--`."""
    jobs = with_data(loose.folder, "exit 4", then=SUMS)
    loose.run(jobs, "--users", 1, "--", "--data", own(loose.folder / "elsewhere"), status=0)
    assert loose.outcomes() == ["completed"]


def test_a_data_set_named_only_after_the_dashes_is_made(loose: Suites) -> None:
    (job,) = with_data(loose.folder, 'mkdir -p "$DATA_DIRECTORY/x"', then=f'test -d "$2" && {SUMS}')
    loose.run([job | {"args": {}}], "--users", 1, "--", "--data", "$DATA_DIRECTORY/x", status=0)
    assert loose.outcomes() == ["completed"]
