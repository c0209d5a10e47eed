"""Real sets by the command line: killed, interrupted, two at once, and through the scripts."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cotenant.datasets.manifest import read_manifest
from datasets import loopback
from datasets.miniature import bsds500, jpeg, tar

CHECKOUT = Path(__file__).parents[2]
# Noise, so that it has a size also when packed.
MEMBERS = {f"BSR/BSDS500/data/images/{split}/1.jpg": jpeg() + os.urandom(300_000) for split in ("train", "val", "test")}


@pytest.fixture
def server(server):
    server.files["/BSR_bsds500.tgz"] = tar(MEMBERS, "w:gz")
    return server


@pytest.fixture
def settings(environment, server):
    """The environment of a child that asks the server for real sets."""
    return environment | {"FAKE_DATASET": "0", "COTENANT_MIRROR": server.url()}


@pytest.fixture
def start(settings, tmp_path):
    def started(*words: str, **extra: str) -> "subprocess.Popen[str]":
        line = [sys.executable, "-m", "cotenant.datasets", "bsds500", "--root", str(tmp_path / "data"), *words]
        return subprocess.Popen(
            line, env=settings | extra, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    return started


def wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)


def arrived(root: Path) -> int:
    try:
        return (root / ".arriving" / "bsds500" / "BSR_bsds500.tgz.arriving").stat().st_size
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_ended_in_the_middle_is_taken_up(tmp_path, server, start, number):
    server.answers["/bsds500/BSR_bsds500.tgz"] = [loopback.status(404)]
    server.answers["/BSR_bsds500.tgz"] = [loopback.stalled(500_000)]
    first = start()
    wait_for(lambda: arrived(tmp_path / "data") >= 400_000)
    os.killpg(first.pid, number)
    _, said = first.communicate(timeout=20)
    assert "Traceback" not in said
    if number == signal.SIGINT:
        assert first.returncode == 130
        assert said.splitlines()[-1].startswith("Interrupted. What is complete or has arrived is kept: the same")
    kept = arrived(tmp_path / "data")
    assert kept >= 400_000
    assert read_manifest(tmp_path / "data" / "BSDS500") is None

    server.requests.clear()
    second = start()
    _, said = second.communicate(timeout=20)
    assert second.returncode == 0, said
    assert f"bytes={kept}-" in [asked.get("Range") for _, asked in server.requests]
    for name, content in MEMBERS.items():
        assert (tmp_path / "data" / name.removeprefix("BSR/")).read_bytes() == content


def test_two_at_once_fetch_it_once(tmp_path, server, start):
    server.answers["/BSR_bsds500.tgz"] = [loopback.slowly(0.02, 20)]
    both = [start() for _ in range(2)]
    said = [one.communicate(timeout=30)[1] for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    assert sum(": complete in" in words for words in said) == 1
    assert sum(": present (real, all)" in words for words in said) == 1
    assert [path for path, _ in server.requests].count("/BSR_bsds500.tgz") == 1


def test_a_terminal_gets_a_bar(tmp_path, server, settings):
    server.answers["/BSR_bsds500.tgz"] = [loopback.slowly(0.02, 20)]
    ours, theirs = pty.openpty()
    line = [sys.executable, "-m", "cotenant.datasets", "bsds500", "--root", str(tmp_path)]
    getter = subprocess.Popen(line, env=settings | {"TERM": "xterm"}, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # The other end was closed.
        pass
    os.close(ours)
    assert getter.wait(timeout=30) == 0
    assert b"kB/s" in shown or b"MB/s" in shown
    for title in (b"BSR_bsds500.tgz", b"checking BSR_bsds500", b"unpacking BSR_bsds500"):
        assert title in shown


def test_the_smaller_half_by_the_environment(tmp_path, start):
    done = start(USE_VALIDATION="1")
    _, said = done.communicate(timeout=20)
    assert done.returncode == 0, said
    manifest = read_manifest(tmp_path / "data" / "BSDS500")
    assert manifest is not None
    assert manifest.half == "validation"
    assert (tmp_path / "data" / "BSDS500" / "data" / "images" / "train" / "1.jpg").exists()


def test_a_folder_of_ones_own_by_the_flag(tmp_path, server, start):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "BSR_bsds500.tgz").write_bytes(bsds500()["BSR_bsds500.tgz"])
    done = start("--from", "mine")
    _, said = done.communicate(timeout=20)
    assert done.returncode == 0, said
    assert server.requests == []


def test_a_limit_of_the_disk_is_one_sentence(tmp_path, server, settings):
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    line = [sys.executable, "-m", "cotenant.datasets", "bsds500", "--root", str(tmp_path)]
    done = subprocess.run(line, env=settings, capture_output=True, text=True, preexec_fn=limit, timeout=60)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "File too large. Mend that and start again: complete files are kept." in done.stderr
    assert arrived(tmp_path) == 200_000


def test_the_walker_gets_real_sets(tmp_path, server, settings):
    line = [CHECKOUT / "download_datasets.sh", "super_resolution", "image_loading"]
    extra = {"VENV": sys.prefix, "DATA_DIRECTORY": str(tmp_path / "data")}
    del settings["PYTHONPATH"]
    done = subprocess.run(line, env=settings | extra, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "[image_loading/loader] error: imagenet is never downloaded" in done.stderr
    assert "[super_resolution/subpixel_convolution] bsds500 (real, all): complete in" in done.stderr
    assert "error: The data could not be made for: image_loading/loader." in done.stderr
    manifest = read_manifest(tmp_path / "data" / "BSDS500")
    assert manifest is not None
    assert manifest.kind == "real"
