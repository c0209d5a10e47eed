from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cotenant.machine.accelerators import Accelerator, Vendor, visible_variables
from cotenant.machine.nvidia import (
    DeviceProcess,
    DeviceState,
    Slowed,
    device_states,
    mps_daemon,
    nvidia_accelerators,
    silence,
    slowed,
)
from machine.fakehost import ANSWERS, Board, FakeNvml, unsupported, write

BOARDS = (
    Board("GPU-c0ffee00", "00000000:3B:00.0"),
    Board("GPU-badcafe0", "00000000:18:00.0", memory=None),
)


def uuids(accelerators: tuple[Accelerator, ...]) -> list[str]:
    return [accelerator.uuid for accelerator in accelerators]


def test_what_nvml_says(tmp_path: Path) -> None:
    write(tmp_path, {"sys/bus/pci/devices/0000:3b:00.0/numa_node": 1})
    nvml = FakeNvml(BOARDS)
    assert nvidia_accelerators(tmp_path, {}, nvml) == (
        Accelerator(0, "nvidia", "NVIDIA H200", "GPU-badcafe0", "0000:18:00.0", -1, 0, "580.65.06"),
        Accelerator(1, "nvidia", "NVIDIA H200", "GPU-c0ffee00", "0000:3b:00.0", 1, 141 << 30, "580.65.06"),
    )
    assert nvml.calls == ["init", "shutdown"]


def test_the_callers_own_choice_and_order_without_a_lost_device(tmp_path: Path) -> None:
    for value, expected in (("", []), ("1,0", ["GPU-c0ffee00", "GPU-badcafe0"]), ("GPU-bad", ["GPU-badcafe0"])):
        environ = {"CUDA_VISIBLE_DEVICES": value}
        assert uuids(nvidia_accelerators(tmp_path, environ, FakeNvml(BOARDS))) == expected
    boards = (Board("GPU-0", "00000000:01:00.0", lost=True), Board("GPU-1", "00000000:02:00.0"))
    assert uuids(nvidia_accelerators(tmp_path, {}, FakeNvml(boards))) == ["GPU-1"]


def test_numbers_follow_the_order_that_cuda_uses(tmp_path: Path) -> None:
    """By default the fastest is 0, and those that are equally fast stand by their PCI id."""
    boards = (
        Board("GPU-slow", "00000000:01:00.0", cores=3072),
        Board("GPU-b", "00000000:03:00.0"),
        Board("GPU-a", "00000000:02:00.0"),
    )
    for environ, expected in (
        ({}, ["GPU-slow", "GPU-a", "GPU-b"]),
        ({"CUDA_VISIBLE_DEVICES": "0,2"}, ["GPU-a", "GPU-slow"]),
        ({"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, ["GPU-a"]),
        ({"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, ["GPU-slow"]),
    ):
        assert uuids(nvidia_accelerators(tmp_path, environ, FakeNvml(boards))) == expected


def test_without_driver_or_library_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml(BOARDS, starts=False)
    assert nvidia_accelerators(tmp_path, {}, nvml) == ()
    assert nvml.calls == ["init"]
    assert (device_states(PCI, tmp_path, nvml), slowed(PCI, tmp_path, nvml)) == ((), ())
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(BOARDS))
    assert nvidia_accelerators(tmp_path, {}) == ()
    write(tmp_path, {"proc/driver/nvidia/version": "NVRM version"})
    assert len(nvidia_accelerators(tmp_path, {})) == 2
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert nvidia_accelerators(tmp_path, {}) == ()
    assert silence(tmp_path, {}) == "Python lacks nvidia-ml-py"


def test_a_silent_device_is_explained_if_there_is_a_sign_of_one(tmp_path: Path) -> None:
    mute, empty = FakeNvml(BOARDS, starts=False), FakeNvml()
    assert silence(tmp_path, {}, mute) == ""
    write(tmp_path, {"dev/nvidia0": ""})
    assert silence(tmp_path, {}, mute) == "its driver answers 'Driver Not Loaded'"
    assert silence(tmp_path, {}, empty) == "its driver shows this process no device"
    assert empty.calls == ["init", "shutdown"]
    assert [silence(tmp_path, {"CUDA_VISIBLE_DEVICES": value}, mute) for value in ("", "-1")] == ["", ""]


def test_partitions_stand_for_their_device(tmp_path: Path) -> None:
    parts = (Board("MIG-1", "", memory=10 << 30), Board("MIG-2", "", memory=10 << 30))
    boards = (
        Board("GPU-0", "00000000:01:00.0", mig=True, parts=parts),
        Board("GPU-1", "00000000:02:00.0"),
        Board("GPU-2", "00000000:03:00.0", mig=True),
    )
    every = nvidia_accelerators(tmp_path, {}, FakeNvml(boards))
    assert [(a.index, a.uuid, a.pci, a.memory_bytes >> 30) for a in every] == [
        (0, "MIG-1", "0000:01:00.0", 10),
        (0, "MIG-2", "0000:01:00.0", 10),
        (1, "GPU-1", "0000:02:00.0", 141),
    ]
    chosen = nvidia_accelerators(tmp_path, {"CUDA_VISIBLE_DEVICES": "MIG-2"}, FakeNvml(boards))
    assert uuids(chosen) == ["MIG-2"]
    chosen = nvidia_accelerators(tmp_path, {"CUDA_VISIBLE_DEVICES": "1,0"}, FakeNvml(boards))
    assert uuids(chosen) == ["GPU-1", "MIG-1", "MIG-2"]


def test_the_variables_of_a_slice() -> None:
    def seen(vendor: Vendor, *devices: tuple[int, str]) -> dict[str, str]:
        return visible_variables([Accelerator(i, vendor, "", uuid, "", -1, 0, "") for i, uuid in devices])

    by_place = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert seen("nvidia", (3, "GPU-3"), (1, "GPU-1")) == by_place | {"CUDA_VISIBLE_DEVICES": "GPU-3,GPU-1"}
    assert seen("nvidia", (3, "")) == by_place | {"CUDA_VISIBLE_DEVICES": "3"}
    assert seen("amd", (2, "GPU-1")) == {"ROCR_VISIBLE_DEVICES": "2"}
    assert seen("intel", (4, "")) == {"ZE_AFFINITY_MASK": "4", "ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE"}
    assert seen("intel") == {}


BUSES = ("00000000:3B:00.0", "00000000:18:00.0")
PCI = ("0000:3b:00.0", "0000:18:00.0")


def states(root: Path, *boards: Board) -> tuple[DeviceState, ...]:
    return device_states(PCI, root, FakeNvml(boards))


def test_device_indices_match_those_of_cuda(tmp_path: Path) -> None:
    boards = (Board("GPU-0", BUSES[0]), Board("GPU-1", BUSES[1]), Board("GPU-2", "00000000:01:00.0"))
    nvml = FakeNvml(boards)
    assert [state.index for state in device_states(PCI, tmp_path, nvml)] == [1, 2]
    assert nvml.calls == ["init", "shutdown"]


def test_modes_faults_and_what_a_device_does_not_tell(tmp_path: Path) -> None:
    (state,) = states(tmp_path, Board("", BUSES[0], ecc=None, errors=None, limit_mw=None))
    assert (state.ecc, state.uncorrected_errors, state.power_limit_w) == (None, None, None)
    faults = {"mig_pending": True, "persistent": False, "errors": 2, "repair_pending": True}
    (state,) = states(tmp_path, Board("", BUSES[0], mode=3, reasons=0x8 | 0x40 | 0x4, **faults))
    assert (state.mig, state.mig_pending, state.persistent) == (False, True, False)
    assert (state.uncorrected_errors, state.repair_pending, state.compute_mode) == (2, True, "exclusive")
    assert state.slowed_by == ("hardware", "heat")


def test_calls_removed_from_nvml_have_replacements(tmp_path: Path) -> None:
    class MismatchError(Exception):
        pass

    class OtherRelease(FakeNvml):
        NVMLLibraryMismatchError = MismatchError

    def mismatched(*asked: object) -> None:
        raise MismatchError

    def fields(board: Board, numbers: list[int]) -> list[SimpleNamespace]:
        (number,) = numbers
        values = {74: 7_000, 75: 9_000}
        return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(ullVal=values[number]))]

    board = Board("", BUSES[0], reasons=0x40)
    old = {name: answer for name, answer in ANSWERS.items() if "Clocks" not in name}
    releases = (
        (ANSWERS, ("heat",), Slowed(0, 0, 0)),
        (old | {"CurrentClocksThrottleReasons": lambda board: board.reasons}, ("heat",), Slowed(0, 0, 0)),
        ({**old, "ViolationStatus": mismatched, "FieldValues": fields}, (), Slowed(0, 7_000, 9_000)),
        ({**old, "ViolationStatus": unsupported}, (), Slowed(0, None, None)),
    )
    for answers, slowed_by, counters in releases:
        nvml = OtherRelease([board], answers=answers)
        assert device_states(PCI, tmp_path, nvml)[0].slowed_by == slowed_by
        assert slowed(PCI, tmp_path, nvml) == (counters,)


def test_an_idle_mps_daemon_is_seen_by_its_process_and_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    write(tmp_path, {"proc/77/comm": "nvidia-cuda-mps"})
    assert not states(tmp_path, Board("", BUSES[0]))[0].mps
    write(tmp_path, {"tmp/nvidia-mps/control": ""})
    assert states(tmp_path, Board("", BUSES[0]))[0].mps
    assert not mps_daemon(tmp_path, {"CUDA_MPS_PIPE_DIRECTORY": "/run/other"})
    write(tmp_path, {"proc/77/comm": "bash", "run/other/control": ""})
    assert not mps_daemon(tmp_path, {})
    write(tmp_path, {"proc/78/comm": "nvidia-cuda-mps"})
    assert mps_daemon(tmp_path, {"CUDA_MPS_PIPE_DIRECTORY": "/run/other"})


def test_processes_each_once_with_the_names_that_can_be_seen(tmp_path: Path) -> None:
    write(tmp_path, {"proc/41/comm": "python"})
    (state,) = states(tmp_path, Board("", BUSES[0], running=((42, None), (41, 7)), served=((41, 7),)))
    assert state.processes == (DeviceProcess(41, "python", 7), DeviceProcess(42, "", None))
    assert state.mps
