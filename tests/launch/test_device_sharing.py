"""Tenants of one device: their environment, the findings that follow from their reports, and the suite's first line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cotenant.isolation.device_modes import DeviceShare, share_mode
from cotenant.isolation.plan import plan
from cotenant.isolation.slice import Slice
from cotenant.launch.device_sharing import shared_device
from cotenant.launch.environment import share_variables, whole_environment
from cotenant.launch.heading import device_line
from machine.invented import GIB, device, machine

NVIDIA: dict[str, Any] = {"device": "cuda:0", "mps": False, "device_share": {"memory_fraction": None}}
OF_132 = {"multiprocessors": 132, "device_multiprocessors": 132}


def slices(mode: str | None, count: int = 4) -> list[Slice]:
    part = DeviceShare(share_mode(mode), count, 1 / count, 3 * GIB) if mode else None
    return [Slice(i, (i,), (0,), GIB, (device(0),), count, 1, part) for i in range(count)]


def seen(mode: str | None, count: int = 4, **observed: Any) -> str:
    of_launch = slices(mode, count)
    share = shared_device(of_launch[0], of_launch, NVIDIA | observed, {})
    assert share is not None
    assert (share.asked, share.sharers) == (mode or "", count)
    return share.seen


def test_each_mode_has_its_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", "/run/mps")
    pipe = {"CUDA_MPS_PIPE_DIRECTORY": "/run/mps"}
    limited = pipe | {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=3072M"}
    wanted = {
        "time": {"COTENANT_DEVICE_MEMORY": str(3 * GIB)},
        "mps": limited,
        "mps:25": limited | {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"},
    }
    for mode, variables in wanted.items():
        assert share_variables(DeviceShare(share_mode(mode), 4, 0.25, 3 * GIB)) == variables
    assert share_variables(DeviceShare(share_mode("mps"), 4, 0.25, 0)) == pipe
    monkeypatch.setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50")
    for mode, inherited in ((None, "50"), ("mps", None)):
        assert whole_environment({}, slices(mode)[0]).get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") == inherited


def test_what_makes_the_caller_a_rank_is_not_its_tenants_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "PET_NNODES", "PET_RDZV_ENDPOINT"):
        monkeypatch.setenv(name, "2")
    whole = whole_environment({"PET_NODE_RANK": "1"}, slices(None)[0])
    assert {name for name in whole if name.startswith("PET_")} == {"PET_NODE_RANK"}
    assert not {"RANK", "WORLD_SIZE"} & whole.keys()


def test_sharing_mode_is_what_the_tenant_sees_not_the_request() -> None:
    assert seen(None, 1) == "exclusive"
    assert seen(None) == seen("time") == seen("mps") == "time"
    # A program that holds its allocator to a part is one of several, or might as well be.
    assert seen("time", 1, device_share={"memory_fraction": 0.9}) == "time"
    assert seen(None, mps=True) == seen("mps:25", mps=True) == "mps"
    assert seen("mps:25", mps=True, device_share=OF_132) == "mps"
    assert seen("mps:25", mps=True, device_share=OF_132 | {"multiprocessors": 34}) == "mps:25"
    # A percentage is rounded to groups of them, whose size no driver tells.
    assert seen("mps:25", mps=True, device_share=OF_132 | {"multiprocessors": 40}) == "mps:25"
    assert seen("mps:25", mps=True, device_share=OF_132 | {"multiprocessors": 66}) == "mps:50"
    assert seen("mps", mps=True, device_share=OF_132 | {"multiprocessors": 66}) == "mps:50"
    assert seen("mps:100", mps=True, device_share=OF_132) == "mps:100"
    assert seen("time", device="cpu") == seen("time", device_share="odd") == ""


def test_what_holds_the_memory_is_named_and_clients_are_counted() -> None:
    of_launch = slices("time", 2)
    holding = NVIDIA | {"device_share": {"memory_fraction": 0.2}}
    meters = {"devices": {"GPU-a": {"index": 0, "mps_clients": 2}, "GPU-b": {"index": 1, "mps_clients": 9}}}
    words = []
    for observed in (NVIDIA, holding):
        share = shared_device(of_launch[0], of_launch, observed, meters)
        assert share is not None
        assert (share.entitlement, share.memory_bytes, share.mps_clients) == (0.5, 3 * GIB, 2)
        words.append(share.memory_by)
    assert words == ["", "torch's allocator (cooperative)"]
    assert shared_device(Slice(0, (0,), (0,), GIB, ()), [], {}, {}) is None


H100 = replace(device(0), name="NVIDIA H100 80GB HBM3", memory_bytes=81008 << 20)


@pytest.mark.parametrize(
    ("devices", "users", "mode", "expected"),
    [
        (1, 1, None, "1 x NVIDIA H100 80GB HBM3 of 79.11 GiB, batch sizes of 80gb: one user; 40 launches"),
        (2, 2, None, "2 x NVIDIA H100 80GB HBM3 of 79.11 GiB, batch sizes of 80gb: a user each; 40 launches"),
        (1, 4, "time", "16gb: 4 users on each in turns"),
        (1, 2, "mps:50", "40gb: 2 users on each by mps:50"),
    ],
)
def test_the_line_says_device_class_and_sharers(devices: int, users: int, mode: str | None, expected: str) -> None:
    boards = tuple(replace(H100, index=i, uuid=f"GPU-{i}") for i in range(devices))
    made = plan(machine(cores=8, devices=boards), users, share=share_mode(mode) if mode else None)
    line = device_line(made, 40)
    assert expected in line
    crowded = device_line(made, 40, strangers=True)
    assert crowded == line.replace(";", ", beside processes of others;")


def test_without_a_device_there_is_no_line() -> None:
    assert device_line(plan(machine(memory_bytes=64 * GIB), 2), 1) == ""
