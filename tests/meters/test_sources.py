"""The vendors' libraries, by stand-ins: their values become readings, and missing values None."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cotenant.machine.accelerators import Accelerator
from cotenant.machine.nvidia import DeviceProcess
from cotenant.meters import sources
from cotenant.meters.devices import Reading
from cotenant.meters.sources import AmdSource, amd_source, nvidia_source
from machine.fakehost import ANSWERS, write
from meters.seen import METERED, FakeSmi, MeteredBoard, MeteredNvml

BUS, PCI = "00000000:3B:00.0", "0000:3b:00.0"
INSTINCT = Accelerator(1, "amd", "MI300X", "GPU-00ff", "0000:c1:00.0", 0, 192 << 30, "amdgpu")
SAYS: dict[str, Any] = {
    "gpu_device_bdf": INSTINCT.pci,
    "gpu_activity": {"gfx_activity": 93, "umc_activity": "N/A"},
    "power_info": {"current_socket_power": "N/A", "average_socket_power": 641},
    "energy_count": {"energy_accumulator": 2_000_000, "counter_resolution": 15.3},
    "gpu_memory_usage vram": 5 << 30,
    "clock_info gfx": {"clk": 2100},
    "clock_info mem": {"cur_clk": 1300},
    "temp_metric hotspot current": 71,
    "gpu_process_list": [{"pid": 8, "name": "python", "mem": 77}],
}


def test_nvidia_devices_are_read_in_one_session(tmp_path: Path) -> None:
    write(tmp_path, {"proc/41/comm": "python"})
    board = MeteredBoard("GPU-0", BUS, reasons=0x4 | 0x40 | 0x1, running=((41, 9),))
    nvml = MeteredNvml([board, MeteredBoard("GPU-1", "00000000:5E:00.0")])
    with nvidia_source([PCI], tmp_path, nvml) as source:
        assert source is not None
        source.read()
        assert source.read() == {
            "GPU-0": Reading(
                index=0,
                load_percent=87,
                memory_load_percent=41,
                memory_used_bytes=3 << 30,
                clock_mhz=1755,
                memory_clock_mhz=2619,
                temperature_c=61,
                power_w=512.25,
                energy_j=9000.0,
                slowed_by=("heat", "power limit"),
                processes=(DeviceProcess(41, "python", 9),),
                mps_clients=0,
            )
        }
        assert nvml.calls == ["init"]
    assert nvml.calls == ["init", "shutdown"]


def test_the_temperature_of_older_bindings(tmp_path: Path) -> None:
    answers = {name: answer for name, answer in (ANSWERS | METERED).items() if name != "TemperatureV"}
    nvml = MeteredNvml([MeteredBoard("", BUS)], answers=answers | {"Temperature": METERED["TemperatureV"]})
    with nvidia_source([PCI], tmp_path, nvml) as source:
        assert source is not None
        assert source.read()[""].temperature_c == 61


@contextmanager
def opened(smi: FakeSmi) -> Iterator[AmdSource]:
    """The source of the one device, of a library and a driver that are there."""
    with amd_source([INSTINCT], smi) as source:
        assert isinstance(source, AmdSource)
        yield source


def test_an_amd_device_is_found_by_its_place() -> None:
    smi = FakeSmi(SAYS)
    with opened(smi) as source:
        assert source.read() == {
            "GPU-00ff": Reading(
                index=1,
                load_percent=93,
                memory_used_bytes=5 << 30,
                clock_mhz=2100,
                memory_clock_mhz=1300,
                temperature_c=71,
                power_w=641,
                energy_j=pytest.approx(30.6),
                processes=(DeviceProcess(8, "python", 77),),
            )
        }
    assert smi.calls == ["init", "shut down"]


def test_what_an_amd_device_does_not_tell() -> None:
    with opened(FakeSmi({"gpu_device_bdf": INSTINCT.pci})) as source:
        assert source.read() == {"GPU-00ff": Reading(1)}
    with opened(FakeSmi({})) as source:
        assert source.read() == {}


def slowed(*metrics: dict[str, Any], lacks: str = "") -> list[tuple[str, ...] | None]:
    """Return the reasons of a slowed device, look after look."""
    smi = FakeSmi(dict(SAYS), lacks=lacks)
    found = []
    with opened(smi) as source:
        for one in metrics:
            smi.says["gpu_metrics_info"] = one
            found.append(source.read()["GPU-00ff"].slowed_by)
    return found


def test_why_an_amd_device_is_held_down_now() -> None:
    """A library without this function says no reason."""
    words = {0: (), 1 << 0: ("power limit",), 1 << 22: ("power limit",), 1 << 57: ("hardware",)}
    reasons: dict[Any, Any] = words | {1 << 36 | 1 << 1: ("heat", "power limit"), "N/A": None, 2**64 - 1: None}
    for bits, expected in reasons.items():
        assert slowed({"indep_throttle_status": bits}) == [expected], bits
    assert slowed({"indep_throttle_status": True}) == [None]
    assert slowed({"indep_throttle_status": 1}, lacks="amdsmi_get_gpu_metrics_info") == [None]


def test_why_an_amd_device_was_held_down_since_the_last_look() -> None:
    counts = [(7, 3), (7, 4), (9, 5), (9, 5)]
    steps = [{"ppt_residency_acc": limited, "hbm_thm_residency_acc": hot} for limited, hot in counts]
    assert slowed(*steps) == [(), ("heat",), ("heat", "power limit"), ()]
    assert slowed({"ppt_residency_acc": 7}, {"ppt_residency_acc": "N/A"}) == [(), None]


def reading_of(**says: Any) -> Reading:
    smi = FakeSmi(SAYS | {name.replace("__", " "): said for name, said in says.items()})
    with opened(smi) as source:
        return source.read()["GPU-00ff"]


def test_placeholder_and_impossible_values_are_no_readings() -> None:
    for untold in (0xFFFF, 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF, float("nan"), "N/A", None, [1]):
        reading = reading_of(
            gpu_activity={"gfx_activity": untold, "umc_activity": untold},
            power_info={"current_socket_power": untold, "average_socket_power": 641},
            energy_count={"energy_accumulator": untold, "counter_resolution": 15.3},
            gpu_memory_usage__vram=untold,
            clock_info__gfx={"clk": untold, "cur_clk": 2100},
            clock_info__mem=untold,
            temp_metric__hotspot__current=untold,
            gpu_process_list=untold,
        )
        assert reading == Reading(index=1, clock_mhz=2100, power_w=641), untold
    reading = reading_of(gpu_activity={"gfx_activity": 100, "umc_activity": 101})
    assert (reading.load_percent, reading.memory_load_percent) == (100, None)


def test_a_question_that_fails_in_any_way_is_untold() -> None:
    for error in (TypeError, KeyError, AttributeError, ValueError):
        assert reading_of(**{name: error("x") for name in SAYS if name != "gpu_device_bdf"}) == Reading(1)


def test_amd_processes_with_missing_fields_are_tolerated() -> None:
    assert reading_of(gpu_process_list=[{"name": "python"}]).processes == ()
    unreadable = {"pid": 8, "name": "N/A", "mem": "N/A"}
    assert reading_of(gpu_process_list=[unreadable]).processes == (DeviceProcess(8, "", None),)


def test_without_a_driver_or_library_there_is_no_amd_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    smi = FakeSmi(SAYS, starts=False)
    with amd_source([INSTINCT], smi) as source:
        assert source == "SmiError"
    assert smi.calls == ["init"]
    for error in (ImportError, KeyError, OSError, AttributeError, RuntimeError):

        def fail(_name: str, error: type[Exception] = error) -> None:
            raise error("undefined\nsymbol")

        monkeypatch.setattr(sources.importlib, "import_module", fail)
        with amd_source([INSTINCT]) as source:
            assert isinstance(source, str)
            assert source.startswith(f"{error.__name__}: ")
            assert "\n" not in source
