"""Makers in separate processes: several at once, killed, interrupted, out of room; fake sets and real ones."""

import fcntl
import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cotenant.datasets.dataset import read_manifest
from datasets import loopback
from datasets.conftest import wait_for
from datasets.miniature import jpeg, tar
from patience import HANG_S

# Noise, which compression does not make smaller.
MEMBERS = {f"BSR/BSDS500/data/images/{split}/1.jpg": jpeg() + os.urandom(300_000) for split in ("train", "val", "test")}


@pytest.fixture
def settings(server) -> dict[str, str]:
    """Return the variables that ask the server for real sets, and put BSDS500 there."""
    server.files["/BSR_bsds500.tgz"] = tar(MEMBERS, "w:gz")
    return {"FAKE_DATASET": "0", "COTENANT_MIRROR": server.url()}


def made(root: Path) -> int:
    return len(list((root / ".making").rglob("*.JPEG")))


def arrived(root: Path) -> int:
    try:
        return (root / ".arriving" / "bsds500" / "BSR_bsds500.tgz").stat().st_size
    except FileNotFoundError:
        return 0


def children_of(process: "subprocess.Popen[str]", kind: bytes) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in children if kind in Path(f"/proc/{pid}/cmdline").read_bytes()]


def at_work(root: Path, seen: set[int]) -> set[int]:
    """Add the workers that are writing a file now to `seen`; return it."""
    seen.update(int(path.name.split(".")[-2]) for path in (root / ".making").rglob(".*.part"))
    return seen


def gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_killed_maker_leaves_nothing_present_and_no_worker(tmp_path, start_pictures):
    first = start_pictures(tmp_path, 60)
    # Both workers have to be at work: one that still starts does not yet watch its maker, and Python ends it later.
    seen: set[int] = set()
    wait_for(lambda: made(tmp_path) > 10 and len(at_work(tmp_path, seen)) == 2)
    workers = children_of(first, b"spawn_main")
    assert seen == set(workers)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    wait_for(lambda: gone(workers))
    assert read_manifest(tmp_path / "ImageNet") is None

    second = start_pictures(tmp_path, 60)
    _, shown = second.communicate(timeout=HANG_S)
    assert second.returncode == 0, shown
    assert "(0 bytes there)" not in shown
    manifest = read_manifest(tmp_path / "ImageNet")
    assert manifest.splits == {"train": 60, "val": 10}
    assert len(list((tmp_path / "ImageNet").rglob("*.JPEG"))) == manifest.files == 70
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("when", [pytest.param("as workers start", marks=pytest.mark.slow), "as they work"])
def test_an_interrupted_maker_goes_quietly(tmp_path, start, when):
    root = tmp_path / "data"
    for _ in range(5):
        maker = start("imagenet")
        wait_for((root / ".making").exists if when == "as workers start" else lambda: made(root) > 5)
        workers = children_of(maker, b"spawn_main")
        os.killpg(maker.pid, signal.SIGINT)  # A terminal also sends it to the workers.
        _, shown = maker.communicate(timeout=HANG_S)
        if maker.returncode or read_manifest(root / "ImageNet") is None:
            break
        shutil.rmtree(root)  # On a host that stood still, the set was complete before the signal.
    assert maker.returncode == 130
    assert shown.splitlines()[-1].startswith("Interrupted. What is complete or has arrived is kept")
    assert "Traceback" not in shown
    assert gone(workers)
    assert read_manifest(root / "ImageNet") is None


def test_a_killed_worker_is_one_sentence(tmp_path, start_pictures):
    maker = start_pictures(tmp_path, 2000)
    wait_for(lambda: made(tmp_path) > 2)
    workers = children_of(maker, b"spawn_main")
    os.kill(workers[0], signal.SIGKILL)
    _, shown = maker.communicate(timeout=HANG_S)
    assert maker.returncode == 1
    assert shown.splitlines()[-1].startswith("A worker ended before its file was complete: it was killed, as when")
    assert "Traceback" not in shown
    assert gone(workers)


def test_two_makers_of_one_set_make_it_once(tmp_path, start_pictures):
    (tmp_path / ".locks").mkdir()
    with open(tmp_path / ".locks" / "imagenet", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        makers = [start_pictures(tmp_path, 10) for _ in range(2)]
        for maker in makers:
            assert maker.stderr.readline() == "imagenet: another process is at it, waiting ...\n"
        assert not (tmp_path / "ImageNet").exists()
    shown = [maker.communicate(timeout=HANG_S)[1] for maker in makers]
    assert [maker.returncode for maker in makers] == [0, 0]
    assert sum(": complete in" in words for words in shown) == 1
    assert sum(": present " in words for words in shown) == 1
    manifest = read_manifest(tmp_path / "ImageNet")
    assert manifest.files == 20


@pytest.mark.parametrize("number", [pytest.param(signal.SIGKILL, marks=pytest.mark.slow), signal.SIGINT])
def test_a_run_that_ended_as_it_fetched_is_taken_up(tmp_path, server, start, settings, number):
    server.answers["/bsds500/BSR_bsds500.tgz"] = [loopback.status(404)]
    server.answers["/BSR_bsds500.tgz"] = [loopback.stalled(500_000)]
    root = tmp_path / "data"
    first = start("bsds500", **settings)
    wait_for(lambda: arrived(root) >= 400_000)
    curls = children_of(first, b"curl")
    assert len(curls) == 1
    os.kill(first.pid, number)
    _, shown = first.communicate(timeout=HANG_S)
    assert "Traceback" not in shown
    if number == signal.SIGINT:
        assert first.returncode == 130
        assert shown.splitlines()[-1].startswith("Interrupted. What is complete or has arrived is kept: the same")
        assert gone(curls)
    kept = arrived(root)
    assert kept >= 400_000
    assert read_manifest(root / "BSDS500") is None

    server.requests.clear()
    second = start("bsds500", **settings)
    _, shown = second.communicate(timeout=HANG_S)
    assert second.returncode == 0, shown
    assert f"bytes={kept}-" in server.ranges()
    for name, content in MEMBERS.items():
        assert (root / name.removeprefix("BSR/")).read_bytes() == content


@pytest.mark.slow
def test_a_terminal_gets_bars(tmp_path, server, environment, settings):
    server.answers["/BSR_bsds500.tgz"] = [loopback.slowly(0.02, 20)]
    for name, extra, titles in (
        ("mnist", {}, (b"4 of 4 files",)),
        ("bsds500", settings, (b"BSR_bsds500.tgz", b"checking BSR_bsds500", b"unpacking bsds500", b" of ")),
    ):
        ours, theirs = pty.openpty()
        line = [sys.executable, "-m", "cotenant.datasets", name, "--root", str(tmp_path / "data")]
        maker = subprocess.Popen(line, env=environment | extra | {"TERM": "xterm"}, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # The maker has closed its end.
            pass
        os.close(ours)
        assert maker.wait(timeout=HANG_S) == 0
        assert b"\x1b[" in shown
        for title in titles:
            assert title in shown
