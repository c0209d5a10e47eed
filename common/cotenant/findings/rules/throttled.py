"""Tenants held back during a launch: clocks by heat or a power limit, a slice by a quota of processor time.

Of devices both are asked: counters, which miss nothing, and samples, which know more causes and more devices.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cotenant.finding import Finding, Severity

if TYPE_CHECKING:
    from cotenant.results.record import Record

NOTICEABLE_NS = 10_000_000


def check(record: Record) -> Finding | None:
    host = record.meters.get("host") or {"devices": [], "processor_throttles": None}
    sampled = (record.meters.get("devices") or {}).values()
    capped = _longer(host["devices"], "power_ns") | _seen(sampled, "power limit")
    slowed_by = {
        "heat": _longer(host["devices"], "thermal_ns") | _seen(sampled, "heat"),
        "the power supply's brake": _seen(sampled, "power brake"),
        "their own protection": _seen(sampled, "hardware"),
        "the power limit": capped,
    }
    causes = []
    if (held_ns := record.isolation.counters.get("throttled_ns") or 0) > NOTICEABLE_NS:
        causes.append(f"a quota of processor time held this slice back for {held_ns / 1e9:.2f} s")
    if times := host["processor_throttles"]:
        causes.append(f"heat slowed processor cores {times} times")
    for what, devices in slowed_by.items():
        if devices:
            causes.append(f"{what} slowed devices {', '.join(map(str, sorted(devices)))}")
    if not causes:
        return None
    # A device at its power limit is one at work; the rest are faults of the machine's place.
    fault = len(causes) > bool(capped)
    severity: Severity = "warning" if fault else "info"
    remedy = "Check cooling and power supply, and raise the quota of the surrounding cgroup." if fault else ""
    return Finding("throttled", severity, f"During this launch {', '.join(causes)}.", remedy)


def _longer(counted: Iterable[dict[str, Any]], name: str) -> set[int]:
    return {one["index"] for one in counted if (one[name] or 0) > NOTICEABLE_NS}


def _seen(sampled: Iterable[dict[str, Any]], reason: str) -> set[int]:
    return {one["index"] for one in sampled if (one["slowed_samples"] or {}).get(reason)}
