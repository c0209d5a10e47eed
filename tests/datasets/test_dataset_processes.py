"""Several makers at once, and makers that are killed, interrupted or run out of room."""

import fcntl
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cotenant.datasets.manifest import read_manifest


def wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)
    return result


def made(root: Path) -> int:
    return len(list((root / ".making").rglob("*.JPEG")))


def workers_of(process: "subprocess.Popen[str]") -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_killed_maker_leaves_nothing_present(tmp_path, start_pictures):
    first = start_pictures(tmp_path, 300)
    wait_for(lambda: made(tmp_path) > 10)
    workers = workers_of(first)
    assert len(workers) == 2
    first.send_signal(signal.SIGKILL)
    first.communicate()
    wait_for(lambda: gone(workers), 2)
    assert read_manifest(tmp_path / "ImageNet") is None

    second = start_pictures(tmp_path, 300)
    _, said = second.communicate(timeout=60)
    assert second.returncode == 0, said
    assert "files are there already" in said
    manifest = read_manifest(tmp_path / "ImageNet")
    assert manifest is not None
    assert manifest.splits == {"train": 300, "val": 10}
    assert len(list((tmp_path / "ImageNet").rglob("*.JPEG"))) == manifest.files == 310
    assert not list(tmp_path.rglob("*.part"))


def test_an_interrupted_maker_goes_quietly(tmp_path, environment):
    line = [sys.executable, "-m", "cotenant.datasets", "imagenet", "--root", str(tmp_path)]
    maker = subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_for(lambda: made(tmp_path) > 5)
    workers = workers_of(maker)
    os.killpg(maker.pid, signal.SIGINT)  # As a terminal does: to the workers, too.
    _, said = maker.communicate(timeout=20)
    assert maker.returncode == 130
    assert said.splitlines()[-1].startswith("Interrupted. What is complete or has arrived is kept")
    assert "Traceback" not in said
    assert gone(workers)
    assert read_manifest(tmp_path / "ImageNet") is None


@pytest.mark.parametrize("delay_s", [0.05, 0.15, 0.3])
def test_an_interrupt_while_workers_start_leaves_no_traceback_of_theirs(tmp_path, environment, delay_s):
    line = [sys.executable, "-m", "cotenant.datasets", "imagenet", "--root", str(tmp_path / "data")]
    maker = subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_for((tmp_path / "data" / ".making").exists)
    time.sleep(delay_s)
    os.killpg(maker.pid, signal.SIGINT)
    _, said = maker.communicate(timeout=20)
    assert maker.returncode == 130
    assert "Traceback" not in said


def test_a_killed_worker_is_one_sentence(tmp_path, start_pictures):
    maker = start_pictures(tmp_path, 2000)
    wait_for(lambda: made(tmp_path) > 2)
    workers = workers_of(maker)
    os.kill(workers[0], signal.SIGKILL)
    _, said = maker.communicate(timeout=20)
    assert maker.returncode == 1
    assert said.splitlines()[-1].startswith("A worker ended with status -9 before its file was complete: it was killed")
    assert "Traceback" not in said
    assert gone(workers)


def test_what_a_worker_meets_is_one_sentence(tmp_path, environment):
    line = [sys.executable, "-m", "cotenant.datasets", "mnist", "--root", str(tmp_path)]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    maker = subprocess.run(
        line, env=environment, capture_output=True, text=True, preexec_fn=limit, timeout=60, check=False
    )
    assert maker.returncode == 2
    assert "File too large. Mend that and start again: complete files are kept." in maker.stderr
    assert "Traceback" not in maker.stderr
    assert read_manifest(tmp_path / "mnist") is None


def test_two_makers_of_one_set_make_it_once(tmp_path, start_pictures):
    makers = [start_pictures(tmp_path, 60) for _ in range(2)]
    said = [maker.communicate(timeout=60)[1] for maker in makers]
    assert [maker.returncode for maker in makers] == [0, 0]
    assert sum(": made " in words for words in said) == 1
    assert sum(": present " in words for words in said) == 1
    manifest = read_manifest(tmp_path / "ImageNet")
    assert manifest is not None
    assert manifest.files == 70


def test_a_waiting_maker_says_so(tmp_path, start_pictures):
    (tmp_path / ".locks").mkdir()
    with open(tmp_path / ".locks" / "imagenet", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        maker = start_pictures(tmp_path, 10)
        assert maker.stderr is not None
        assert maker.stderr.readline() == "imagenet: another process is making it, waiting ...\n"
        assert not (tmp_path / "ImageNet").exists()
    assert maker.wait(timeout=30) == 0
    maker.stderr.close()
    assert read_manifest(tmp_path / "ImageNet") is not None
