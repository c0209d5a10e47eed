"""Processes of others on this tenant's devices while it was timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

OF_MPS = "nvidia-cuda-mps"


def check(record: Record) -> Finding | None:
    devices = record.meters.get("devices") or {}
    own = [devices[uuid] for uuid in record.isolation.planned.get("accelerators", []) if uuid in devices]
    # A partition is no device of its own to meters: whoever is on any device may be beside it.
    used = list(own or devices.values())
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
    return Finding(
        "device_in_use",
        "warning",
        f"While tenants were timed other processes used their devices: {', '.join(users)}.",
        "End them, or leave those devices out with CUDA_VISIBLE_DEVICES.",
    )
