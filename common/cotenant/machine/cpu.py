"""How the processors' clocks are governed, and how often heat has slowed them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cotenant.procfs import read_int, read_text

_CPU = "sys/devices/system/cpu"


@dataclass(frozen=True, slots=True)
class Clocking:
    """The distinct settings of the given processors; empty or None where the kernel does not say, as in most guests."""

    driver: str
    governors: tuple[str, ...]
    preferences: tuple[str, ...]
    """`energy_performance_preference`: what drivers that choose clocks by themselves go by."""
    capped: tuple[int, ...]
    """The processors whose highest allowed frequency is below what they could do."""
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
    """Return how often heat has slowed these processors' cores since boot, None where the kernel does not count."""
    files = (root / _CPU / f"cpu{number}/thermal_throttle/core_throttle_count" for number in processors)
    counts = [count for file in files if (count := read_int(file)) is not None]
    return sum(counts) if counts else None


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
