from __future__ import annotations

from pathlib import Path

import pytest

from cotenant.machine.cpu import Clocking, clocking, thermal_throttles
from machine.fakehost import write

CPU = "sys/devices/system/cpu"


def governed(root: Path, number: int, **files: object) -> Path:
    return write(root, {f"{CPU}/cpu{number}/cpufreq/{name}": value for name, value in files.items()})


def test_a_guest_says_nothing(tmp_path: Path) -> None:
    assert clocking([0, 1], tmp_path) == Clocking("", (), (), (), None)


def test_the_settings_of_the_given_processors_only(tmp_path: Path) -> None:
    for number, governor in enumerate(("performance", "powersave", "schedutil")):
        governed(tmp_path, number, scaling_driver="acpi-cpufreq", scaling_governor=governor)
    assert clocking([0, 1], tmp_path).governors == ("performance", "powersave")
    assert clocking([2], tmp_path).governors == ("schedutil",)
    assert clocking([0], tmp_path).driver == "acpi-cpufreq"


def test_preferences_of_drivers_that_choose_by_themselves(tmp_path: Path) -> None:
    governed(tmp_path, 0, scaling_governor="powersave", energy_performance_preference="balance_power")
    assert clocking([0], tmp_path).preferences == ("balance_power",)


def test_processors_that_may_not_go_as_fast_as_they_can(tmp_path: Path) -> None:
    governed(tmp_path, 0, scaling_max_freq=2_000_000, cpuinfo_max_freq=3_500_000)
    governed(tmp_path, 1, scaling_max_freq=3_500_000, cpuinfo_max_freq=3_500_000)
    governed(tmp_path, 2, scaling_max_freq=1)
    assert clocking([0, 1, 2], tmp_path).capped == (0,)


@pytest.mark.parametrize(
    ("file", "value", "boost"),
    [
        ("intel_pstate/no_turbo", 0, True),
        ("intel_pstate/no_turbo", 1, False),
        ("cpufreq/boost", 1, True),
        ("cpufreq/boost", 0, False),
        ("cpufreq/boost", "?", None),
    ],
)
def test_boost_in_both_ways_of_saying_it(tmp_path: Path, file: str, value: object, boost: bool | None) -> None:
    write(tmp_path, {f"{CPU}/{file}": value})
    assert clocking([], tmp_path).boost is boost


def test_heat_is_counted_over_the_given_processors(tmp_path: Path) -> None:
    assert thermal_throttles([0, 1], tmp_path) is None
    for number in range(3):
        write(tmp_path, {f"{CPU}/cpu{number}/thermal_throttle/core_throttle_count": number + 1})
    assert thermal_throttles([0, 1, 7], tmp_path) == 3
