"""Hosts of one and of eight pretended devices: each user has the device that was planned for it, and its part of it.

A ledger and a clock of each suite let its users share the devices' memory and time (null/ledger.c, null/turns.c).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from device.host import FEW, ROOT, Host, entry, wrong

POLYNOME = ROOT / "tasks/regression/polynome/pytorch/run.sh"
CONTEXT_BYTES = 800 << 20
"""A process takes so much of a device beside its tensors once cuBLAS and cuDNN are loaded."""
MIG = "MIG-00000000-0000-0000-0000-{:012x}"


def uuid(device: int) -> str:
    pairs = f"{0xA0 + device:02x}" * 16
    return f"GPU-{pairs[:8]}-{pairs[8:12]}-{pairs[12:16]}-{pairs[16:20]}-{pairs[20:]}"


@dataclass(frozen=True)
class Case:
    """A host and what a suite asks of it; `devices` are those of its users, in order, `seen` how they share them."""

    devices: tuple[str, ...]
    seen: str
    flags: tuple[object, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)


EIGHT = {"NULL_DEVICE_COUNT": "8"}
FAST = {
    "by-uuid": Case(
        (uuid(5), uuid(2)), "exclusive", variables=EIGHT | {"CUDA_VISIBLE_DEVICES": f"{uuid(5)},{uuid(2)}"}
    ),
    "instances": Case((MIG.format(0), MIG.format(1)), "mig", ("--share", "mig", "--users", 2), {"NULL_NVML_MIG": "2"}),
}
SLOW = {
    "by-index": Case((uuid(3),), "exclusive", variables=EIGHT | {"CUDA_VISIBLE_DEVICES": "3"}),
    "in-turns": Case(
        (uuid(6),) * 2, "time", ("--share", "time", "--users", 2), EIGHT | {"CUDA_VISIBLE_DEVICES": uuid(6)}
    ),
    "all-eight": Case(tuple(map(uuid, range(8))), "exclusive", variables=EIGHT),
    "four-on-each-of-two": Case(
        (uuid(0), uuid(7)) * 4, "time", ("--share", "time", "--users", 8), EIGHT | {"CUDA_VISIBLE_DEVICES": "0,7"}
    ),
    "four-in-turns": Case((uuid(0),) * 4, "time", ("--share", "time", "--users", 4)),
    "eight-in-turns": Case((uuid(0),) * 8, "time", ("--share", "time", "--users", 8)),
    "all-instances": Case(
        tuple(map(MIG.format, range(7))), "mig", ("--share", "mig", "--users", 7), {"NULL_NVML_MIG": "7"}
    ),
    "one-of-the-instances": Case(
        (MIG.format(4),), "mig", variables={"NULL_NVML_MIG": "7", "CUDA_VISIBLE_DEVICES": MIG.format(4)}
    ),
}


def run(name: str, case: Case, null: Host) -> list[dict[str, Any]]:
    for shared in ("ledger", "clock"):
        (null.results / f"{name}.{shared}").unlink(missing_ok=True)
    told = {"NULL_DEVICE_LEDGER": str(null.results / f"{name}.ledger")}
    job = entry("polynome", POLYNOME, FEW | {"--number": 2, "--batch-size": 64, "--cuda": ""})
    return null.suite(name, ["--jobs", null.jobs(name, [job]), *case.flags], **told, **case.variables)


@pytest.mark.parametrize("name", [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_each_user_has_the_device_and_the_part_that_were_planned(name: str, null: Host) -> None:
    case = (FAST | SLOW)[name]
    records = run(name, case, null)
    assert [record["outcome"] for record in records] == ["completed"] * len(case.devices), wrong(records)
    assert [tuple(record["isolation"]["planned"]["accelerators"]) for record in records] == [(d,) for d in case.devices]
    shares = [record["share"] for record in records]
    assert {share["seen"] for share in shares} == {case.seen}
    assert {share["asked"] for share in shares} == ({case.seen} if "--share" in case.flags else {""})
    assert [share["sharers"] for share in shares] == [case.devices.count(device) for device in case.devices]
    own = [record["observed"]["device_share"] for record in records]
    assert [seen["uuid"] for seen in own] == [*case.devices]
    parts = {(seen["multiprocessors"], seen["device_multiprocessors"]) for seen in own}
    assert parts == {(16, 16) if "MIG" in case.devices[0] else (132, 132)}
    if case.seen != "time":
        return
    for device in set(case.devices):
        there = [seen for planned, seen in zip(case.devices, own, strict=True) if planned == device]
        (total,) = {seen["memory_total_bytes"] for seen in there}
        assert sum(seen["memory_fraction"] * total + CONTEXT_BYTES for seen in there) <= total


def test_hidden_devices_leave_the_processor(null: Host) -> None:
    """Who hides all devices asks for none, and no record says that there was one."""
    (record,) = run("hidden", Case((), "", ("--users", 1), EIGHT | {"CUDA_VISIBLE_DEVICES": ""}), null)
    assert (record["outcome"], record["observed"]["device"], record["share"]) == ("completed", "cpu", None)
