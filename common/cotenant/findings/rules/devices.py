"""The tenants' devices and processors while they were timed: other users, and causes that slowed them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cotenant.finding import Finding, error, info, warning
from cotenant.findings import record_rule
from cotenant.results.record import Record
from cotenant.text import many

OF_MPS = "nvidia-cuda-mps"
NOTICEABLE_NS = 10_000_000


@record_rule
def throttled(record: Record) -> Finding | None:
    """Clocks held down by heat or a power limit, or a slice held back by a quota of processor time.

    For devices both are read: counters, which miss nothing, and samples, which know more causes and more devices.
    """
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
        causes.append(f"heat slowed processor cores {many(times, 'time')}")
    for what, devices in slowed_by.items():
        if devices:
            causes.append(f"{what} slowed devices {', '.join(map(str, sorted(devices)))}")
    if not causes:
        return None
    # A device at its power limit is working; the other causes are faults.
    fault = len(causes) > bool(capped)
    severity = warning if fault else info
    remedy = "Check cooling and power supply, and raise the quota of the surrounding cgroup." if fault else ""
    return severity(f"During this launch {', '.join(causes)}.", remedy)


def _longer(counters: Iterable[dict[str, Any]], name: str) -> set[int]:
    return {device["index"] for device in counters if (device[name] or 0) > NOTICEABLE_NS}


def _seen(sampled: Iterable[dict[str, Any]], reason: str) -> set[int]:
    return {device["index"] for device in sampled if (device["slowed_samples"] or {}).get(reason)}


@record_rule
def share_not_seen(record: Record) -> Finding | None:
    """A device that was shared in another way than requested, or in a way that the tenant cannot tell."""
    share = record.share
    if share is None or not record.completed or not share.asked or share.seen == share.asked:
        return None
    if not share.seen:
        return error(
            f"--share {share.asked} was asked for, and this program does not say how it shared its device.",
            "A benchmark of cotenant.bench does.",
        )
    return error(
        f"--share {share.asked} was asked for, and the user saw {share.seen}.",
        "Its log has the driver's messages; another user's MPS daemon may serve the device.",
    )


@record_rule
def device_elsewhere(record: Record) -> Finding | None:
    """A device of this host on which the tenant computed and which is not its own.

    Variables show each tenant its devices, and a program can change them.
    """
    planned, seen = record.isolation.planned.get("accelerators", []), record.observed.get("device_share")
    uuid = seen.get("uuid") if isinstance(seen, dict) else None
    others = {device["uuid"]: device.get("index") for device in record.machine.get("accelerators", ())}
    if not isinstance(uuid, str) or uuid in planned or uuid not in others:
        return None
    return error(
        f"It computed on device {others[uuid]} ({uuid}), and its slice has {', '.join(planned) or 'none'}.",
        "Let the program leave CUDA_VISIBLE_DEVICES and its like as the runner sets them.",
    )


@record_rule
def device_in_use(record: Record) -> Finding | None:
    """Other programs' processes on this tenant's devices while it was timed."""
    devices = record.meters.get("devices") or {}
    of_tenant = [devices[uuid] for uuid in record.isolation.planned.get("accelerators", []) if uuid in devices]
    # Meters see no partitions: a process on any partition of a device may be beside it.
    used = of_tenant or list(devices.values())
    users = [
        f"{process['name']} (pid {process['pid']}) on device {device['index']}"
        for device in used
        for process in device["foreign_processes"]
        if not process["name"].startswith(OF_MPS)
    ]
    users += [
        f"{device['hidden_processes']} that cannot be seen from here on device {device['index']}"
        for device in used
        if device["hidden_processes"]
    ]
    if not users:
        return None
    return warning(
        f"While users were timed other processes used their devices: {', '.join(users)}.",
        "End them, or leave those devices out with CUDA_VISIBLE_DEVICES.",
    )
