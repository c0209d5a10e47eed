from __future__ import annotations

from pathlib import Path

from cotenant.machine.nvidia import DeviceProcess, DeviceState, Slowed, device_states, slowed
from machine.fakehost import Board, FakeNvml, write

BUSES = ("00000000:3B:00.0", "00000000:18:00.0")
PCI = ("0000:3b:00.0", "0000:18:00.0")


def states(root: Path, *boards: Board) -> tuple[DeviceState, ...]:
    return device_states(PCI, root, FakeNvml(boards))


def test_without_a_driver_there_is_no_state(tmp_path: Path) -> None:
    assert device_states(PCI, tmp_path) == ()
    assert slowed(PCI, tmp_path, FakeNvml([Board("", BUSES[0])], starts=False)) == ()


def test_a_device_in_order(tmp_path: Path) -> None:
    assert states(tmp_path, Board("GPU-0", BUSES[0])) == (
        DeviceState(
            index=0,
            pci=PCI[0],
            name="NVIDIA H200",
            processes=(),
            mps=False,
            mig=False,
            mig_pending=False,
            persistent=True,
            ecc=True,
            uncorrected_errors=0,
            repair_pending=False,
            compute_mode="default",
            power_limit_w=700.0,
            power_default_w=700.0,
            slowed_by=(),
        ),
    )


def test_devices_count_as_cuda_does_and_only_the_callers_are_asked(tmp_path: Path) -> None:
    boards = (Board("GPU-0", BUSES[0]), Board("GPU-1", BUSES[1]), Board("GPU-2", "00000000:01:00.0"))
    nvml = FakeNvml(boards)
    assert [(one.index, one.pci) for one in device_states(PCI, tmp_path, nvml)] == [(1, PCI[1]), (2, PCI[0])]
    assert nvml.calls == ["init", "shutdown"]


def test_what_a_device_does_not_tell(tmp_path: Path) -> None:
    (state,) = states(tmp_path, Board("", BUSES[0], ecc=None, errors=None, limit_mw=None))
    assert state.ecc is None
    assert state.uncorrected_errors is None
    assert state.power_limit_w is None


def test_modes_and_faults(tmp_path: Path) -> None:
    board = Board(
        "",
        BUSES[0],
        mig_pending=True,
        persistent=False,
        errors=2,
        repair_pending=True,
        mode=3,
        reasons=0x8 | 0x40 | 0x4,
    )
    (state,) = states(tmp_path, board)
    assert (state.mig, state.mig_pending, state.persistent) == (False, True, False)
    assert (state.uncorrected_errors, state.repair_pending, state.compute_mode) == (2, True, "exclusive")
    assert state.slowed_by == ("hardware", "heat")


def test_processes_each_once_with_the_names_that_can_be_seen(tmp_path: Path) -> None:
    write(tmp_path, {"proc/41/comm": "python"})
    (state,) = states(tmp_path, Board("", BUSES[0], running=((42, None), (41, 7)), served=((41, 7),)))
    assert state.processes == (DeviceProcess(41, "python", 7), DeviceProcess(42, "", None))
    assert state.mps


def test_how_long_clocks_were_held_down(tmp_path: Path) -> None:
    nvml = FakeNvml([Board("", BUSES[0], slowed_ns=(5, 6)), Board("", BUSES[1], slowed_ns=None)])
    assert slowed(PCI, tmp_path, nvml) == (Slowed(0, None, None), Slowed(1, 5, 6))
