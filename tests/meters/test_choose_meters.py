"""Which meters a launch has, on hosts that exist and on those that do not."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path

import pytest

from cotenant.isolation.plan import plan, plan_whole
from cotenant.machine.accelerators import Accelerator
from cotenant.machine.topology import discover
from cotenant.meters.host import READABLE
from cotenant.meters.meters import LIBRARIES, WHOLE, meters_of
from machine.invented import device, machine
from meters.seen import CountedSlice, FakeSmi, MeteredBoard, MeteredNvml
from meters.test_sources import INSTINCT, SAYS

PAIR = machine(cores=4, devices=(device(0), device(1)))
BOARDS = [MeteredBoard(f"GPU-{n:08x}", f"00000000:{n + 16:02X}:00.0") for n in range(2)]


def test_each_device_is_found_by_the_uuid_that_its_slice_has(tmp_path: Path) -> None:
    slices, nvml = plan(PAIR, 2).slices, MeteredNvml(BOARDS)
    with meters_of(PAIR, slices, tmp_path, nvml) as meters:
        meters.start([CountedSlice(), CountedSlice()])
        result = meters.result(0)
    assert list(result["devices"]) == [one.uuid for slice_ in slices for one in slice_.accelerators]
    assert [one["index"] for one in result["devices"].values()] == [0, 1]
    assert nvml.calls == ["init", "shutdown"]
    assert result["absent"]["packages"] == WHOLE
    assert json.loads(json.dumps(result)) == result
    host = machine(devices=(INSTINCT,))
    with meters_of(host, plan(host, 1).slices, tmp_path, smi=FakeSmi(SAYS)) as meters:
        meters.start([CountedSlice()])
        assert list(meters.result(0)["devices"]) == [INSTINCT.uuid]


@pytest.mark.parametrize(
    ("accelerator", "said"),
    [(device(0), ""), (INSTINCT, " (here SmiError)"), (dataclasses.replace(INSTINCT, vendor="intel"), "")],
    ids=["nvidia", "amd", "intel"],
)
def test_devices_that_nobody_can_ask_are_named(tmp_path: Path, accelerator: Accelerator, said: str) -> None:
    host = machine(devices=(accelerator,))
    with meters_of(host, plan(host, 1).slices, tmp_path, smi=FakeSmi({}, starts=False)) as meters:
        meters.start([CountedSlice()])
        result = meters.result(0)
    assert result["absent"]["devices"] == LIBRARIES[accelerator.vendor] + said
    assert "devices" not in result


def test_packages_are_metered_for_who_owns_them(tmp_path: Path) -> None:
    whole, part = machine(cores=4), machine(cores=4, without=(3,))
    shares = [(plan(whole, 1), READABLE), (plan(whole, 2), WHOLE), (plan(part, 1), WHOLE)]
    for planned, absent in [*shares, (plan_whole(whole), READABLE)]:
        host = part if planned.slices[0].processors == (0, 1, 2) else whole
        with meters_of(host, planned.slices, tmp_path) as meters:
            meters.start([CountedSlice()] * len(planned.slices))
            assert meters.result(0)["absent"]["packages"] == absent


def test_on_this_host_a_look_is_cheap() -> None:
    host = discover()
    with meters_of(host, plan(host, 1).slices) as meters:
        meters.start([CountedSlice()])
        time.sleep(0.05)
        result = meters.result(0)
    assert result.keys() >= {"foreign", "memory", "sampling", "absent"}
    # Half a percent of a processor, at one look a second.
    assert result["sampling"]["processor_ns"]["min"] < 5_000_000
