"""How tenants share devices, on invented machines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cotenant.errors import CotenantError
from cotenant.isolation.device_modes import CONTEXT_BYTES, DeviceShare, ShareMode, share_mode
from cotenant.isolation.plan import plan
from cotenant.machine.accelerators import Accelerator
from machine.invented import GIB, device, machine


def instance(number: int) -> Accelerator:
    name = "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
    return replace(device(0, name=name), uuid=f"MIG-{number}", memory_bytes=10 * GIB)


def parts(users: int, mode: str, *devices: Accelerator, slices: int | None = None) -> list[DeviceShare]:
    made = plan(machine(cores=8, devices=devices), users, slices=slices, share=share_mode(mode))
    return [piece.device_share for piece in made.slices if piece.device_share is not None]


def test_words_of_modes() -> None:
    for word in ("time", "mps", "mps:1", "mps:25", "mps:100"):
        assert str(share_mode(word)) == word
    for word in ("", "exclusive", "mps:0", "mps:101", "mps:", "time:25", "MPS"):
        with pytest.raises(ValueError, match="is not time, mps"):
            share_mode(word)
    with pytest.raises(CotenantError, match="an instance of MIG is a device"):
        share_mode("mig")


def test_device_parts_are_equal_and_leave_room_for_contexts() -> None:
    for users in (1, 2, 4, 8):
        memory = (16 * GIB - users * CONTEXT_BYTES) // users
        assert parts(users, "time", device(0)) == [DeviceShare(ShareMode("time"), users, 1 / users, memory)] * users
        assert users * (memory + CONTEXT_BYTES) <= 16 * GIB
    assert {(part.sharers, part.entitlement) for part in parts(4, "mps:30", device(0), device(1))} == {(2, 0.3)}
    assert parts(4, "time", device(0), device(1), slices=2)[0].sharers == 2
    made = plan(machine(devices=(device(0),)), 2, share=ShareMode("time"))
    assert made.device_share_bytes == (16 * GIB - 2 * CONTEXT_BYTES) // 2
    (finding,) = made.findings
    assert (finding.rule, finding.severity) == ("devices_shared", "info")
    assert finding.sentence == "2 users share 1 device by time."
    odd = plan(machine(cores=8, devices=(replace(device(0), memory_bytes=5), replace(device(1), memory_bytes=9))), 4)
    assert repr(odd.device_share_bytes) == "2"
    silent = replace(device(0), memory_bytes=0)
    assert parts(2, "time", silent)[0].memory_bytes == 0


def test_parts_and_contexts_fit_the_memory_of_an_h100() -> None:
    for users in (2, 4, 8):
        (memory,) = {part.memory_bytes for part in parts(users, "time", replace(device(0), memory_bytes=81008 << 20))}
        assert 0 <= (81008 << 20) - users * (memory + (800 << 20)) < users


def test_alone_a_tenant_has_the_whole_device() -> None:
    shared = plan(machine(devices=(device(0),)), 2, share=ShareMode("mps"))
    assert shared.slices[0].alone == replace(shared.slices[0], device_share=None)


def test_instances_are_shared_as_devices_are() -> None:
    two = parts(4, "time", instance(0), instance(1))
    assert {(part.sharers, part.entitlement) for part in two} == {(2, 1 / 2)}
    assert plan(machine(cores=8, devices=(instance(0), instance(1))), 2).slices[1].accelerators == (instance(1),)


def test_what_cannot_be_shared_so_is_refused_with_a_remedy() -> None:
    amd = replace(device(0), vendor="amd")
    refused = [
        (2, "time", (), "--slices lets users share processors"),
        (1, "time", (device(0), device(1)), "Use --users 2, or a multiple"),
        (3, "time", (device(0), device(1)), "Use --users 2 or 4 or 8"),
        (2, "mps", (amd,), "Use --share time"),
        (4, "mps", (instance(0), instance(1)), "serves one MIG instance, and here are 2"),
        (2, "mps", (instance(0),), ""),
        (64, "time", (device(0),), "too little for 64 users"),
    ]
    for users, mode, devices, words in refused:
        if not words:
            assert len(parts(users, mode, *devices)) == users
            continue
        with pytest.raises(CotenantError) as caught:
            parts(users, mode, *devices)
        assert words in f"{caught.value.sentence} {caught.value.remedy}"
