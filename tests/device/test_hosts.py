"""Hosts of one and of eight null devices: each user has its planned device, and its planned part of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from device.host import FEW, Host, Record, entry

CONTEXT_BYTES = 800 << 20
"""Device memory that a process takes beside its tensors once cuBLAS and cuDNN are loaded."""
MIG = "MIG-00000000-0000-0000-0000-{:012x}"


def uuid(device: int) -> str:
    pairs = f"{0xA0 + device:02x}" * 16
    return f"GPU-{pairs[:8]}-{pairs[8:12]}-{pairs[12:16]}-{pairs[16:20]}-{pairs[20:]}"


@dataclass(frozen=True)
class Case:
    """A host and a suite on it; `devices` are the devices of the users, in order, `seen` is how users share them."""

    devices: tuple[str, ...]
    seen: str
    variables: dict[str, str] = field(default_factory=dict)


def visible(value: str) -> dict[str, str]:
    return {"NULL_DEVICE_COUNT": "8", "CUDA_VISIBLE_DEVICES": value}


FAST = {
    "in-turns": Case((uuid(6),) * 2, "time", visible(uuid(6))),
}
SLOW = {
    "by-uuid": Case((uuid(5), uuid(2)), "exclusive", visible(f"{uuid(5)},{uuid(2)}")),
    "by-index": Case((uuid(3),), "exclusive", visible("3")),
    "all-eight": Case(tuple(map(uuid, range(8))), "exclusive", {"NULL_DEVICE_COUNT": "8"}),
    "four-on-each-of-two": Case((uuid(0), uuid(7)) * 4, "time", visible("0,7")),
    "four-in-turns": Case((uuid(0),) * 4, "time"),
    "eight-in-turns": Case((uuid(0),) * 8, "time"),
    "instances": Case((MIG.format(0), MIG.format(1)), "exclusive", {"NULL_NVML_MIG": "2"}),
    "all-instances": Case(tuple(map(MIG.format, range(7))), "exclusive", {"NULL_NVML_MIG": "7"}),
    "one-of-the-instances": Case(
        (MIG.format(4),),
        "exclusive",
        {"NULL_NVML_MIG": "7", "CUDA_VISIBLE_DEVICES": MIG.format(4)},
    ),
}


def run(name: str, case: Case, null: Host, *flags: object) -> list[Record]:
    job = entry("polynome", "regression/polynome", FEW | {"--number": 2, "--batch-size": 64})
    return null.suite(name, [job], *flags, **case.variables)


@pytest.mark.parametrize("name", [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_each_user_has_its_planned_device_and_share(name: str, null: Host) -> None:
    case = (FAST | SLOW)[name]
    flags = ("--share", case.seen, "--users", len(case.devices)) if case.seen == "time" else ()
    records = run(name, case, null, *flags)
    assert [record["outcome"] for record in records] == ["completed"] * len(case.devices), null.wrong(records)
    assert [tuple(record["isolation"]["planned"]["accelerators"]) for record in records] == [(d,) for d in case.devices]
    shares = [record["share"] for record in records]
    assert {share["seen"] for share in shares} == {case.seen}
    assert {share["asked"] for share in shares} == {"time" if case.seen == "time" else ""}
    assert [share["sharers"] for share in shares] == [case.devices.count(device) for device in case.devices]
    own = [record["observed"]["device_share"] for record in records]
    assert [seen["uuid"] for seen in own] == [*case.devices]
    parts = {(seen["multiprocessors"], seen["device_multiprocessors"]) for seen in own}
    assert parts == {(16, 16) if "MIG" in case.devices[0] else (132, 132)}
    first, there = null.printed(name)[0], len(set(case.devices))
    assert first.startswith(f"{there} x NVIDIA H100 80GB HBM3")
    if case.seen != "time":
        return
    assert first.endswith(f": {len(records) // there} users on each in turns; 1 launch")
    for device in set(case.devices):
        beside = [seen for planned, seen in zip(case.devices, own, strict=True) if planned == device]
        (total,) = {seen["memory_total_bytes"] for seen in beside}
        assert sum(seen["memory_fraction"] * total + CONTEXT_BYTES for seen in beside) <= total


@pytest.mark.slow
def test_hidden_devices_leave_the_processor(null: Host) -> None:
    """An empty CUDA_VISIBLE_DEVICES asks for no device, and the record tells of none."""
    (record,) = run("hidden", Case((), "", visible("")), null, "--users", 1)
    assert (record["outcome"], record["observed"]["device"], record["share"]) == ("completed", "cpu", None)
