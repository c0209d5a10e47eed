"""Tiny sets, makers in processes of their own, and a server on the loopback."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cotenant.datasets import fetch
from cotenant.datasets.dataset import Dataset
from cotenant.datasets.request import SetRequest
from cotenant.datasets.sets.imagenet import DATASET, recipe
from datasets import loopback
from datasets.miniature import miniature
from patience import HANG_S

SOURCE = Path(__file__).parents[2] / "common"
SETTINGS = (
    *("BASE", "COTENANT_DATA_FROM", "COTENANT_MIRROR", "COTENANT_RUN", "DATA_DIRECTORY", "DATASET_SIZE"),
    *("FAKE_DATASET", "USE_VALIDATION", "VENV"),
)
PROXIES = [name for proxy in ("http_proxy", "https_proxy", "all_proxy") for name in (proxy, proxy.upper())]
PICTURES = """
import sys
from dataclasses import replace
from pathlib import Path
from cotenant.datasets.obtain import obtain
from cotenant.datasets.request import SetRequest
from cotenant.datasets.sets.imagenet import DATASET, recipe
from cotenant.errors import CotenantError
if __name__ == "__main__":
    dataset = replace(DATASET, sizes={"small": recipe(10, int(sys.argv[2]), 10, 200, 150)})
    try:
        obtain(SetRequest(Path(sys.argv[1]), dataset, "small", processes=2))
    except CotenantError as error:
        sys.exit(str(error))
"""


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def wait_for(condition, seconds=HANG_S):
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)
    return result


@pytest.fixture
def tiny() -> Dataset:
    """ImageNet with 7 pictures as small and 9 as full."""
    small = recipe(classes=2, train=5, val=2, width=40, height=30, jitter=3)
    full = recipe(classes=3, train=6, val=3, width=48, height=48)
    return replace(DATASET, sizes={"small": small, "full": full})


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the caller's settings, and wait only 1 ms before a second attempt."""
    for name in (*PROXIES, *SETTINGS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(fetch, "FIRST_WAIT_S", 0.001)


@pytest.fixture
def environment() -> dict[str, str]:
    """Return the environment of a child that imports this checkout and sees no accelerator, so that sets are small."""
    return {**os.environ, "CUDA_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": "", "PYTHONPATH": str(SOURCE)}


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Callable[..., "subprocess.Popen[str]"]:
    """Return a function that starts `python -m cotenant.datasets` with these words, for the root `data` here."""

    def started(*words: object, **extra: str) -> "subprocess.Popen[str]":
        line = [sys.executable, "-m", "cotenant.datasets", *map(str, words), "--root", str(tmp_path / "data")]
        return subprocess.Popen(
            line, env=environment | extra, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    return started


@pytest.fixture
def start_pictures(environment: dict[str, str], tmp_path: Path) -> Callable[[Path, int], "subprocess.Popen[str]"]:
    """Return a function that starts a maker with two workers, of this many pictures for training and 10 more."""
    script = tmp_path / "pictures.py"
    script.write_text(PICTURES)

    def started(root: Path, train: int) -> "subprocess.Popen[str]":
        line = [sys.executable, str(script), str(root), str(train)]
        return subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True)

    return started


@pytest.fixture
def server():
    with loopback.serving() as server:
        yield server


@pytest.fixture
def real(server, tmp_path: Path) -> Callable[..., SetRequest]:
    """Return a function that puts a real set in miniature on the server and returns a request for it."""

    def requested(name: str = "mnist", half: str = "all", size: str = "small", **more) -> SetRequest:
        dataset, contents = miniature(name, server.url)
        server.files.update(contents)
        return SetRequest(tmp_path / "data", dataset, size, half, **more)

    return requested
