"""Tiny sets, makers in processes of their own, and a server on the loopback."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cotenant.datasets.maker import Maker
from cotenant.datasets.makers.imagenet import IMAGENET, Pictures, recipe
from cotenant.datasets.real.order import RealOrder
from cotenant.datasets.transfer.part import Part
from datasets import loopback
from datasets.miniature import miniature

SOURCE = Path(__file__).parents[2] / "common"
OURS = (
    "BASE",
    "COTENANT_DATA_FROM",
    "COTENANT_MIRROR",
    "DATA_DIRECTORY",
    "DATASET_SIZE",
    "FAKE_DATASET",
    "USE_VALIDATION",
    "VENV",
)
PICTURES = """
import sys
from dataclasses import replace
from pathlib import Path
from cotenant.datasets.makers.imagenet import IMAGENET, Pictures, recipe
from cotenant.datasets.making import ensure
from cotenant.errors import CotenantError
maker = replace(IMAGENET, sizes={"small": recipe(Pictures(10, int(sys.argv[2]), 10, 200, 150))})
try:
    ensure(Path(sys.argv[1]), maker, "small", processes=2)
except CotenantError as error:
    sys.exit(str(error))
"""


@pytest.fixture
def tiny() -> Maker:
    """ImageNet with 7 pictures as small and 9 as full."""
    small = recipe(Pictures(classes=2, train=5, val=2, width=40, height=30, jitter=3))
    full = recipe(Pictures(classes=3, train=6, val=3, width=48, height=48))
    return replace(IMAGENET, sizes={"small": small, "full": full})


@pytest.fixture
def environment(no_proxy: None) -> dict[str, str]:
    """The environment of a child that finds this source and none of the caller's settings."""
    inherited = {name: value for name, value in os.environ.items() if name not in OURS}
    # Beside accelerators sets are large.
    hidden = {"CUDA_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}
    return inherited | hidden | {"PYTHONPATH": str(SOURCE)}


@pytest.fixture
def command(environment: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `python -m cotenant.datasets` with these words in an empty folder."""

    def run(*words: object, **extra: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "cotenant.datasets", *map(str, words)]
        return subprocess.run(line, env=environment | extra, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    return run


@pytest.fixture
def start_pictures(environment: dict[str, str]) -> Callable[[Path, int], "subprocess.Popen[str]"]:
    """Starts two workers on this many train pictures and 10 more, in a process of their own."""

    def start(root: Path, train: int) -> "subprocess.Popen[str]":
        line = [sys.executable, "-c", PICTURES, str(root), str(train)]
        return subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True)

    return start


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server():
    with loopback.serving() as server:
        yield server


@pytest.fixture
def part(tmp_path: Path) -> Part:
    """A file of which nothing has arrived."""
    (tmp_path / "arriving").mkdir()
    return Part(tmp_path / "arriving", "file")


@pytest.fixture
def order(server, tmp_path: Path) -> Callable[..., RealOrder]:
    """Returns an order for a small real set that the server has."""

    def ordered(name: str = "mnist", half: str = "all", published: bool = True, **more) -> RealOrder:
        real, contents = miniature(name, server.url, published)
        server.files.update(contents)
        return RealOrder(tmp_path / "data", real, half, **more)

    return ordered
