from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from cotenant.machine import cpu as speed
from cotenant.machine.cpu import (
    Cache,
    Clocking,
    Speed,
    clock_read_ns,
    clocking,
    last_level_cache_bytes,
    last_level_caches,
    speed_over,
    thermal_throttles,
)
from machine.fakehost import write

CPU = "sys/devices/system/cpu"


def governed(root: Path, number: int, **files: object) -> Path:
    return write(root, {f"{CPU}/cpu{number}/cpufreq/{name}": value for name, value in files.items()})


def test_the_settings_of_the_given_processors_only(tmp_path: Path) -> None:
    assert clocking([0, 1], tmp_path) == Clocking("", (), (), (), None)
    for number, governor in enumerate(("performance", "powersave", "schedutil")):
        governed(tmp_path, number, scaling_driver="acpi-cpufreq", scaling_governor=governor)
    governed(tmp_path, 0, scaling_max_freq=2_000_000, cpuinfo_max_freq=3_500_000)
    governed(tmp_path, 1, scaling_max_freq=3_500_000, cpuinfo_max_freq=3_500_000)
    governed(tmp_path, 2, scaling_max_freq=1, energy_performance_preference="balance_power")
    assert clocking([0, 1], tmp_path).governors == ("performance", "powersave")
    assert clocking([0], tmp_path).driver == "acpi-cpufreq"
    assert clocking([2], tmp_path) == Clocking("acpi-cpufreq", ("schedutil",), ("balance_power",), (), None)
    assert clocking([0, 1, 2], tmp_path).capped == (0,)


def cached(root: Path, number: int, level: int, serves: str, kind: str = "Unified", size: str = "32768K") -> None:
    place = f"{CPU}/cpu{number}/cache/index{level if kind != 'Instruction' else 9}"
    write(root, {f"{place}/{name}": text for name, text in {"level": level, "type": kind, "size": size}.items()})
    write(root, {f"{place}/shared_cpu_list": serves})


def test_last_level_caches_are_listed_once_with_processors(tmp_path: Path) -> None:
    """Two complexes of four processors with an L3 each, and one processor whose last is its own L2."""
    assert last_level_caches(range(9), tmp_path) == []
    assert last_level_cache_bytes(tmp_path) is None
    for number in range(8):
        cached(tmp_path, number, 1, str(number), size="32K")
        cached(tmp_path, number, 4, str(number), "Instruction")
        cached(tmp_path, number, 3, "0-3" if number < 4 else "4-7")
    cached(tmp_path, 8, 2, "", size="?")
    first, second = Cache(3, 32 << 20, (0, 1, 2, 3)), Cache(3, 32 << 20, (4, 5, 6, 7))
    assert last_level_caches(range(9), tmp_path) == [first, second, Cache(2, None, (8,))]
    assert last_level_caches([5, 6], tmp_path) == [second]
    assert last_level_cache_bytes(tmp_path) == 32 << 20


def test_boost_in_both_ways_of_saying_it(tmp_path: Path) -> None:
    answers: list[tuple[str, object, bool | None]] = [("cpufreq/boost", "?", None), ("cpufreq/boost", 1, True)]
    answers += [("cpufreq/boost", 0, False), ("intel_pstate/no_turbo", 0, True), ("intel_pstate/no_turbo", 1, False)]
    for file, value, boost in answers:
        write(tmp_path, {f"{CPU}/{file}": value})
        assert clocking([], tmp_path).boost is boost, (file, value)


def test_heat_is_counted_over_the_given_processors(tmp_path: Path) -> None:
    assert thermal_throttles([0, 1], tmp_path) is None
    for number in range(3):
        write(tmp_path, {f"{CPU}/cpu{number}/thermal_throttle/core_throttle_count": number + 1})
    assert thermal_throttles([0, 1, 7], tmp_path) == 3


def test_what_the_loop_itself_takes_is_no_read(monkeypatch: pytest.MonkeyPatch) -> None:
    stamps_ns = itertools.count(0, 60)
    ended_ns = []

    def clock() -> int:
        now_ns = next(stamps_ns) + sum(ended_ns)
        if now_ns > 60 * speed._READS and not ended_ns:
            # The empty loop after the last of the reads.
            ended_ns.append(10 * speed._READS)
        return now_ns

    monkeypatch.setattr(speed.time, "perf_counter_ns", clock)
    assert clock_read_ns() == pytest.approx(50, rel=0.01)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[float], float]], tuple[Speed, float, float]]:
    """A look of 2 s at a processor that reads the clock in so many ns at a time: found, busy for, lasted, in s."""

    def look(speed_ns: Callable[[float], float]) -> tuple[Speed, float, float]:
        now_s, busy_s, readings = [100.0], [0.0], itertools.count()

        def read_ns() -> float:
            now_s[0] += 0.002
            busy_s[0] += 0.002
            return 5000.0 if next(readings) % 5 == 0 else speed_ns(now_s[0] - 100)

        def sleep(seconds: float) -> None:
            now_s[0] += seconds

        monkeypatch.setattr(speed, "time", SimpleNamespace(monotonic=lambda: now_s[0], sleep=sleep))
        monkeypatch.setattr(speed, "clock_read_ns", read_ns)
        return speed_over(2.0), busy_s[0], now_s[0] - 100

    return look


@pytest.mark.parametrize(
    ("speed_ns", "seen"),
    [
        (lambda at_s: 50, Speed(50, 50)),
        (lambda at_s: 80 if at_s % 0.1 < 0.04 else 50, Speed(50, 80)),
        (lambda at_s: 80 if at_s > 1.5 else 50, Speed(50, 80)),
        (lambda at_s: 80 if 0.7 < at_s < 1.3 else 50, Speed(50, 80)),
    ],
    ids=["even", "from moment to moment", "slower at the end", "slower in the middle"],
)
def test_two_speeds_are_both_seen_and_an_interrupt_is_not(
    speed_ns: Callable[[float], float],
    seen: Speed,
    looks: Callable[[Callable[[float], float]], tuple[Speed, float, float]],
) -> None:
    found, busy_s, lasted_s = looks(speed_ns)
    assert found == seen
    assert lasted_s == pytest.approx(2.0, abs=0.05)
    assert busy_s < 0.7, "a look that takes the processor for as long as it lasts is most of a command's time"
