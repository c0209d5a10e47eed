"""Modelled time on the null device: what torch, cuBLAS and the events of CUDA see of it, alone and beside others.

No number here is a real device's: the model (null/clock.c) is known, and what is asked is whether it is found again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from device.host import HERE
from device.null.build import variables
from device.zygote import Zygote

SCALE = 100
PEAK_FLOP_NS, REACHED, LAUNCH_NS, MEMORY_BYTES_NS = 989.5e3, 0.7, 5_000, 3350
SIDE, NUMBER = 4096, 5
PRODUCT_NS = 2 * SIDE**3 / (REACHED * PEAK_FLOP_NS)
FILLS, FILL_MS = 60, 10.0
QUEUE = 1024
THIRD_MS = FILLS / 3 * FILL_MS


@pytest.mark.parametrize(("graph", "launches"), [((), 2), (("--graph",), 1)], ids=["eager", "graph"])
def test_products_take_their_modelled_time(graph: Sequence[str], launches: int, zygote: Zygote) -> None:
    """A graph of two products is one launch. The host had issued all of them long before."""
    words = ("--cuda", "--precision", "bf16", "--side", SIDE, "--batch-size", 2, "--repeat", 3, "--number", NUMBER)
    ended = zygote.run("ceilings/product", *words, *graph, environ={"NULL_DEVICE_SCALE": str(SCALE)})
    assert ended.status == 0, ended
    modelled_ns = SCALE * NUMBER * (launches * LAUNCH_NS + 2 * PRODUCT_NS)
    seen = ended.record["observations"]
    assert [one["event_ns"] for one in seen] == pytest.approx([modelled_ns] * len(seen), rel=0.01)
    # The host is seldom late, and never early.
    assert all(one["end_ns"] - one["start_ns"] >= 0.99 * modelled_ns for one in seen)
    assert min(one["issued_ns"] - one["start_ns"] for one in seen) < 0.1 * modelled_ns


@pytest.mark.slow
def test_a_host_that_waits_for_a_full_queue_has_issued_when_half_of_it_is_done(zygote: Zygote) -> None:
    """Products so small that their launches are all they take, and slow ones, so that few are done before the queue is
    full: its first half is, when the host issues the rest."""
    side, scale, number = 64, 1000, QUEUE // 2 + 8
    words = ("--cuda", "--precision", "bf16", "--side", side, "--batch-size", 2, "--repeat", 2, "--number", number)
    ended = zygote.run("ceilings/product", *words, environ={"NULL_DEVICE_SCALE": str(scale)})
    assert ended.status == 0, ended
    launch_ns = scale * (LAUNCH_NS + 3 * 2 * side**2 / MEMORY_BYTES_NS)
    seen = ended.record["observations"]
    assert [one["event_ns"] for one in seen] == pytest.approx([2 * number * launch_ns] * len(seen), rel=0.01)
    assert min(one["issued_ns"] - one["start_ns"] for one in seen) == pytest.approx(QUEUE / 2 * launch_ns, rel=0.01)


def started(
    folder: Path, null_device: Path, each: Sequence[dict[str, str]], fills: int = FILLS, fill_ms: float = FILL_MS
) -> list[subprocess.Popen[str]]:
    """Let processes with these variables fill the memory of one device, all at once."""
    environ = os.environ | variables(null_device, os.environ) | {"NULL_DEVICE_SCALE": "1"}
    environ |= {"NULL_DEVICE_CLOCK": str(folder / "clock")}
    line = [sys.executable, str(HERE / "programs" / "fills.py"), str(fills), str(fill_ms)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [subprocess.Popen(line, env=environ | own, text=True, **pipes) for own in each]
    assert [process.stdout.readline() for process in processes if process.stdout] == ["ready\n"] * len(each)
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return processes


def seen_by(processes: Sequence[subprocess.Popen[str]]) -> list[dict[str, float]]:
    return [json.loads(process.communicate(timeout=60)[0]) for process in processes]


def test_processes_take_turns_on_a_device(null_device: Path, tmp_path: Path) -> None:
    """The middle third of each lies inside the others' load. Whoever waits does so without its processor."""
    seen = seen_by(started(tmp_path, null_device, [{}] * 3))
    assert [one["event_ms"] for one in seen] == pytest.approx([3 * THIRD_MS] * 3, rel=0.02)
    assert max(one["processor_ms"] / one["host_ms"] for one in seen) < 0.1


def test_the_host_is_no_more_launches_ahead_than_a_queue_holds(null_device: Path, tmp_path: Path) -> None:
    (seen,) = seen_by(started(tmp_path, null_device, [{}], 3 * QUEUE, 0.1))
    assert seen["event_ms"] == pytest.approx(0.1 * QUEUE, rel=0.02)
    assert seen["issued_ms"] > 0.1 * 2 * QUEUE


def test_one_that_is_killed_leaves_the_device_to_the_others(null_device: Path, tmp_path: Path) -> None:
    killed, other = started(tmp_path, null_device, [{}] * 2)
    with killed:
        time.sleep(0.05)
        killed.kill()
    (seen,) = seen_by([other])
    assert seen["event_ms"] == pytest.approx(THIRD_MS, rel=0.02)
    assert seen["host_ms"] < 2 * FILLS * FILL_MS


def test_clients_of_mps_run_at_once_and_each_keeps_to_its_percentage(null_device: Path, tmp_path: Path) -> None:
    (tmp_path / "control").touch()
    pipe = {"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path)}
    quarter = pipe | {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"}
    held, free = seen_by(started(tmp_path, null_device, [quarter, pipe]))
    assert held["event_ms"] == pytest.approx(4 * THIRD_MS, rel=0.02)
    # The other one has what is left as long as it works.
    assert free["event_ms"] == pytest.approx(THIRD_MS / 0.75, rel=0.02)
    (unbound,) = seen_by(started(tmp_path, null_device, [quarter | {"NULL_DEVICE_UNBOUND": "1"}]))
    assert unbound["event_ms"] == pytest.approx(THIRD_MS, rel=0.02)
