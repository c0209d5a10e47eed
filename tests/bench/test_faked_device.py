"""The accelerator's calls, against a torch that pretends to have one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cotenant.bench.device import Device, choose_device
from cotenant.bench.outcome import UnsupportedError, outcome_of

CUDA = Device(torch.device("cuda", 0))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    made: list[tuple[Any, ...]] = []

    class Event:
        def __init__(self, device: torch.device, enable_timing: bool) -> None:
            made.append(("event", device, enable_timing))

        def record(self) -> None:
            made.append(("record",))

    monkeypatch.setattr(torch, "Event", Event)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 3)
    for name in ("synchronize", "set_device_index"):
        monkeypatch.setattr(torch.accelerator, name, lambda device, name=name: made.append((name, device)))
    module = SimpleNamespace(
        get_device_name=lambda device: f"Board {device.index}",
        max_memory_allocated=lambda device: 11,
        max_memory_reserved=lambda device: 22,
        memory_stats=lambda device: {"num_alloc_retries": 3},
    )
    monkeypatch.setattr(torch, "get_device_module", lambda device: module)
    return made


def test_the_accelerator_of_a_rank(calls: list[tuple[Any, ...]]) -> None:
    device = choose_device(cuda=True, local_rank=2)
    assert device.torch_device == torch.device("cuda", 2)
    assert device.is_accelerator
    assert device.name == "Board 2"
    assert calls == [("set_device_index", 2)]


@pytest.mark.parametrize(("local_rank", "local_size", "ranks"), [(0, 4, 4), (3, 4, 4), (3, 1, 4)])
def test_more_ranks_than_accelerators_are_unsupported_in_all_of_them(
    calls: list[tuple[Any, ...]], local_rank: int, local_size: int, ranks: int
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        choose_device(True, local_rank, local_size)
    outcome, message, _ = outcome_of(caught.value)
    assert outcome == "unsupported"
    assert message.startswith(f"{ranks} ranks need a device each, and 3 can be used here. ")
    assert "--users 3" in message
    assert "--nproc_per_node=3" in message
    assert calls == []
    assert not choose_device(False, local_rank, local_size).is_accelerator


def test_the_processor_where_none_is_asked_for(calls: list[tuple[Any, ...]]) -> None:
    device = choose_device(cuda=False)
    assert (device.torch_device, device.name, device.is_accelerator) == (torch.device("cpu"), "CPU", False)
    device.synchronize()
    assert device.mark() is None
    assert device.peak_memory_bytes() == {}
    assert calls == []


def test_the_processor_where_none_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert choose_device(cuda=True).torch_device.type == "cpu"


def test_synchronisation_and_events_name_the_device(calls: list[tuple[Any, ...]]) -> None:
    CUDA.synchronize()
    CUDA.mark()
    assert calls == [("synchronize", CUDA.torch_device), ("event", CUDA.torch_device, True), ("record",)]


def test_peaks_of_device_memory(calls: list[tuple[Any, ...]]) -> None:
    assert CUDA.peak_memory_bytes() == {"allocated_bytes": 11, "reserved_bytes": 22, "allocation_retries": 3}
