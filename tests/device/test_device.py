"""A benchmark's device on the null device: which one a rank has, and what its streams, graphs and memory do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from device.host import HERE
from device.test_tasks import run
from device.zygote import Zygote

THREE = {"NULL_DEVICE_COUNT": "3"}


def asked(zygote: Zygote, rank: int, ranks: int, **environ: str) -> Any:
    ended = zygote.start(HERE / "programs/device.py", rank, ranks, environ=environ)
    assert ended.status == 0, ended
    return json.loads(ended.out)


def test_a_rank_has_the_device_of_its_number(zygote: Zygote) -> None:
    assert asked(zygote, 2, 3, **THREE) == {
        "device": "cuda:2",
        "current": 2,
        "name": "NVIDIA H100 80GB HBM3",
        "alike": 3,
        "cache_bytes": 50 << 20,
        "mps": False,
        "peak_mib": [16, 0],
        "launches_of_a_replay": 1,
    }


def test_more_ranks_than_devices_are_unsupported_in_all_of_them(zygote: Zygote) -> None:
    for rank, ranks in ((0, 4), (3, 1)):
        outcome, message = asked(zygote, rank, ranks, **THREE)
        assert outcome == "unsupported"
        assert message.startswith("4 ranks need a device each, and 3 can be used here. ")
        assert "--users 3" in message
        assert "--nproc_per_node=3" in message


def test_whether_mps_serves_is_asked_of_the_driver(zygote: Zygote, tmp_path: Path) -> None:
    (tmp_path / "control").touch()
    assert asked(zygote, 0, 1, CUDA_MPS_PIPE_DIRECTORY=str(tmp_path))["mps"] is True


def test_inherited_switches_are_recorded_and_what_falsifies_rates_is_dropped(zygote: Zygote) -> None:
    """The allocator's own stand: segments would grow otherwise."""
    switches = {
        "CUDA_LAUNCH_BLOCKING": "1",
        "NCCL_DEBUG": "WARN",
        "NVIDIA_TF32_OVERRIDE": "0",
        "PYTORCH_CUDA_ALLOC_CONF": "backend:native",
    }
    task = "regression/polynome"
    assert run(zygote, task).record["observed"]["allocator"] == "expandable segments"
    record = run(zygote, task, **switches).record
    assert record["machine"]["torch"]["switches"] == switches
    dropped = [finding["sentence"] for finding in record["findings"] if finding["rule"] == "benchmark:switch_dropped"]
    assert len(dropped) == 2
    assert dropped[0].startswith("The benchmark says: NVIDIA_TF32_OVERRIDE=0 was inherited and is left out: it would ")
    assert "allocator" not in record["observed"]
