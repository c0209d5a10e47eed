"""Ranks that torch.distributed.run started: one record of all of them without a runner, and the share of each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch

from cotenant.bench.world import World
from cotenant.results.schema import record_schema
from tenants.suites import ROOT, TENANTS

RANKS_OF_TWO = "0-1;2-3"
DEATH = """
import os
from datetime import timedelta
from cotenant.bench import world
from cotenant.bench.device import Device
import torch
world.GATHER_LIMIT = timedelta(seconds=1)
here = world.World.from_environment()
here.join(Device(torch.device("cpu")))
assert here.gather(here.rank) == [0, 1]
if here.rank == 1:
    os._exit(0)
try:
    here.gather(here.rank)
except world.BenchmarkError as error:
    print(error.outcome, error)
"""


def launched(program: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a program as two ranks on the processor, without a runner."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    return subprocess.run(
        [*torchrun, str(program), *map(str, words)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "common"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_ranks_alone_write_one_record_of_them_all(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    words = ("--no-cuda", "--batch-size", 4, "--repeat", 8, "--number", 20, "--skip", 1, "--report", path)
    ended = launched(TENANTS / "ddp.py", *words)
    assert ended.returncode == 0, ended.stderr
    record: dict[str, Any] = json.loads(path.read_text())
    jsonschema.validate(record, record_schema())
    assert (record["outcome"], record["group"], record["observed"]["world_size"]) == ("completed", "all", 2)
    assert (record["batch_size"], record["batch_size_per_device"]) == (8, 4)
    assert [one["items"] for one in record["observations"]] == [2 * 4 * 20] * 8
    assert set(record["rank_observations"]) == {"0", "1"}
    assert {one["items"] for rows in record["rank_observations"].values() for one in rows} == {4 * 20}
    seconds = [(one["end_ns"] - one["start_ns"]) / 1e9 for one in record["observations"][1:]]
    assert record["train_item"]["avg"] == pytest.approx(160 / (sum(seconds) / 7))
    assert [one for one in record["findings"] if one["severity"] == "error"] == []
    assert ended.stdout.count("Batch Loss") == 8


@pytest.mark.slow
def test_a_rank_that_does_not_come_is_waited_for_no_longer_than_said(tmp_path: Path) -> None:
    program = tmp_path / "death.py"
    program.write_text(DEATH)
    ended = launched(program)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == (
        "failed Not all of 2 ranks told their observations within 1 s, so there is no rate of all of them. "
        "See what the other ranks printed last.\n"
    )


@pytest.mark.parametrize(
    ("said", "processors"),
    [
        ({"LOCAL_RANK": "0", "WORLD_SIZE": "2"}, [0, 1]),
        ({"LOCAL_RANK": "1", "WORLD_SIZE": "2"}, [2, 3]),
        ({"LOCAL_RANK": "0", "WORLD_SIZE": "1"}, [0, 1]),
        ({"LOCAL_RANK": "2", "WORLD_SIZE": "3"}, None),
        ({}, None),
    ],
    ids=["first", "second", "only", "without a share", "not launched"],
)
def test_a_launched_rank_keeps_to_its_share(
    said: dict[str, str], processors: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Any] = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, ids: kept.append((pid, sorted(ids))))
    monkeypatch.setattr(torch, "set_num_threads", kept.append)
    World.from_environment(said).settle(said | {"COTENANT_RANKS": RANKS_OF_TWO})
    assert kept == ([] if processors is None else [(0, processors), len(processors)])
    World.from_environment(said).settle(said)
    assert len(kept) in (0, 2)
