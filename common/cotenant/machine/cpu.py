"""The speed of processors: the control of their clocks, slowdowns by heat, and their evenness."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cotenant.procfs import read_int, read_list, read_text

_CPU = "sys/devices/system/cpu"


@dataclass(frozen=True, slots=True)
class Clocking:
    """The distinct settings of the given processors; empty or None if the kernel does not say, as in most guests."""

    driver: str
    governors: tuple[str, ...]
    preferences: tuple[str, ...]
    """`energy_performance_preference`: the preference of drivers that choose clocks by themselves."""
    capped: tuple[int, ...]
    """The processors with a highest allowed frequency below the highest possible one."""
    boost: bool | None


def clocking(processors: Iterable[int], root: Path = Path("/")) -> Clocking:
    """Return how the clocks of these logical processors are governed."""
    places = [(number, root / _CPU / f"cpu{number}/cpufreq") for number in processors]
    drivers = _distinct(places, "scaling_driver")
    return Clocking(
        driver=drivers[0] if drivers else "",
        governors=_distinct(places, "scaling_governor"),
        preferences=_distinct(places, "energy_performance_preference"),
        capped=tuple(number for number, place in places if _capped(place)),
        boost=_boost(root),
    )


def thermal_throttles(processors: Iterable[int], root: Path = Path("/")) -> int | None:
    """Return how often heat slowed these processors' cores since boot, None if the kernel does not count."""
    files = (root / _CPU / f"cpu{number}/thermal_throttle/core_throttle_count" for number in processors)
    counts = [count for file in files if (count := read_int(file)) is not None]
    return sum(counts) if counts else None


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache and the logical processors that it serves; a size of None if the kernel does not say."""

    level: int
    size_bytes: int | None
    processors: tuple[int, ...]


def last_level_caches(processors: Iterable[int], root: Path = Path("/")) -> list[Cache]:
    """Return the last data caches of these processors, each once, ordered by its first processor.

    A guest has the ones its hypervisor shows. Without /sys there are none.
    """
    found: dict[tuple[int, ...], Cache] = {}
    seen: set[int] = set()
    for number in processors:
        if number in seen:
            continue
        caches = [
            (level, place)
            for place in (root / _CPU / f"cpu{number}/cache").glob("index*")
            if (level := read_int(place / "level")) is not None and read_text(place / "type") != "Instruction"
        ]
        if caches:
            level, place = max(caches)
            serves = tuple(read_list(place / "shared_cpu_list")) or (number,)
            found[serves] = Cache(level, _kib(read_text(place / "size")), serves)
            seen.update(serves)
    return [found[serves] for serves in sorted(found)]


def last_level_cache_bytes(root: Path = Path("/")) -> int | None:
    """Return the size of the first processor's last cache, None if the kernel does not say."""
    return next((cache.size_bytes for cache in last_level_caches([0], root)), None)


def _kib(size: str) -> int | None:
    return int(size[:-1]) << 10 if size.endswith("K") and size[:-1].isdecimal() else None


def _distinct(places: Iterable[tuple[int, Path]], name: str) -> tuple[str, ...]:
    return tuple(sorted({word for _, place in places if (word := read_text(place / name))}))


def _capped(place: Path) -> bool:
    allowed, possible = read_int(place / "scaling_max_freq"), read_int(place / "cpuinfo_max_freq")
    return allowed is not None and possible is not None and allowed < possible


def _boost(root: Path) -> bool | None:
    # Intel's own driver says it the other way round.
    forbidden = read_int(root / _CPU / "intel_pstate/no_turbo")
    if forbidden is not None:
        return not forbidden
    allowed = read_int(root / _CPU / "cpufreq/boost")
    return None if allowed is None else bool(allowed)


_READS = 10_000
_BURSTS, _MOMENTS = 3, 15
_MOMENT_S = 0.01
_BEGINNING_S = 0.05
"""A clock that follows the load may still be rising until then."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Nanoseconds of a clock read: a tenth of the moments were faster than `fast_ns`, a tenth slower than `slow_ns`."""

    fast_ns: float
    slow_ns: float


def clock_read_ns() -> float:
    """Return the nanoseconds that one read of the clock adds to a loop, over ten thousand: about a millisecond's work.

    perf_counter_ns is a call from the interpreter into C, so both weigh in it.
    """
    clock = time.perf_counter_ns
    start_ns = clock()
    for _ in range(_READS):
        clock()
    read_ns = clock()
    for _ in range(_READS):
        pass
    return (2 * read_ns - start_ns - clock()) / _READS


def speed_over(window_s: float) -> Speed:
    """Keep one processor busy in three bursts of 0.2 s that span a window, and return how even its speed is.

    A burst shows changes from moment to moment, the window slow ones.
    """
    begin_s = time.monotonic()
    every_s = (window_s - _BEGINNING_S - _MOMENTS * _MOMENT_S) / (_BURSTS - 1)
    moments_ns: list[float] = []
    for number in range(_BURSTS):
        time.sleep(max(0.0, begin_s + number * every_s - time.monotonic()))
        moments_ns += _burst_ns()
    tenths = statistics.quantiles(moments_ns, n=10, method="inclusive")
    return Speed(tenths[0], tenths[-1])


def _burst_ns() -> list[float]:
    """Keep the processor busy, and return the nanoseconds that a read of the clock takes, moment by moment."""
    begin_s = time.monotonic()
    while time.monotonic() - begin_s < _BEGINNING_S:
        clock_read_ns()
    return [_moment_ns() for _ in range(_MOMENTS)]


def _moment_ns() -> float:
    begin_s = time.monotonic()
    readings_ns = [clock_read_ns()]
    while time.monotonic() - begin_s < _MOMENT_S:
        readings_ns.append(clock_read_ns())
    # The median leaves out the cost of an interrupt in one of them.
    return statistics.median(readings_ns)
