"""The sharing of a tenant's device: the requested mode, and the facts that tenant and driver report on it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cotenant.errors import CotenantError
from cotenant.isolation.device_modes import DeviceShare, ShareMode
from cotenant.isolation.slice import Slice
from cotenant.machine.nvidia import mps_daemon
from cotenant.results.record import SharedDevice

MEMORY_HELD_BY = {"time": "torch's allocator (cooperative)", "mps": "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"}
GROUP = 8
"""CUDA divides multiprocessors in groups of 2, and since Hopper of 8 (CUDA driver API, cuDevSmResourceSplitByCount).
MPS's rounding of a percentage is not published; it is taken to be at most one such group."""


def check_share(mode: ShareMode) -> None:
    """Raise CotenantError if nothing here can enforce a mode."""
    if mode.kind == "mps" and not mps_daemon(Path("/"), os.environ):
        raise CotenantError(
            "--share mps needs a running daemon of NVIDIA's Multi-Process Service, and there is none.",
            "Start it: nvidia-cuda-mps-control -d; or use --share time.",
        )


def shared_device(
    slice_: Slice, slices: Sequence[Slice], observed: Mapping[str, Any], meters: Mapping[str, Any]
) -> SharedDevice | None:
    """Return how a tenant shared its device with the `slices` of its launch; None if it has no device.

    `observed` comes from the tenant and `meters` from the runner, as a record keeps them.
    """
    if not slice_.accelerators:
        return None
    part, device = slice_.device_share, slice_.accelerators[0]
    sharers = sum(device in other.accelerators for other in slices)
    seen = ""
    if isinstance(share := observed.get("device_share"), dict) and observed.get("device", "cpu") != "cpu":
        percent = part.mode.percent if part is not None else None
        seen = _seen(sharers, observed.get("mps"), percent, share)
    return SharedDevice(
        asked="" if part is None else str(part.mode),
        seen=seen,
        sharers=sharers,
        entitlement=None if part is None else part.entitlement,
        memory_bytes=None if part is None else part.memory_bytes or None,
        memory_by=_memory_by(part, share if isinstance(share, dict) else {}),
        mps_clients=_mps_clients(meters, device.index),
    )


def _seen(sharers: int, mps: object, percent: int | None, share: Mapping[str, Any]) -> str:
    """Return the mode that a tenant was in; if the driver reports none, tenants share the device's time."""
    if mps is True and (seen := _percent(percent, share)) is not None:
        return f"mps:{seen}"
    if mps is True:
        # A share of 100 % does not show in the number of multiprocessors.
        return "mps:100" if percent == 100 else "mps"
    return "time" if sharers > 1 or share.get("memory_fraction") is not None else "exclusive"


def _percent(requested: int | None, share: Mapping[str, Any]) -> int | None:
    """Return the requested percentage if the number of multiprocessors fits it; else the percentage by that number.

    Return None if the tenant has all multiprocessors of the device, or their number is unknown."""
    mine, whole = share.get("multiprocessors"), share.get("device_multiprocessors")
    if not isinstance(mine, int) or not isinstance(whole, int) or mine >= whole:
        return None
    if requested is not None and abs(mine - whole * requested / 100) <= GROUP:
        return requested
    return round(100 * mine / whole)


def _memory_by(part: DeviceShare | None, share: Mapping[str, Any]) -> str:
    if part is None or not part.memory_bytes:
        return ""
    # A program without our library sets no limit on its own allocator.
    held = part.mode.kind != "time" or share.get("memory_fraction") is not None
    return MEMORY_HELD_BY[part.mode.kind] if held else ""


def _mps_clients(meters: Mapping[str, Any], index: int) -> int | None:
    """Return the most clients of MPS that the driver listed on a device; None if it was not asked."""
    counts = [device.get("mps_clients") for device in meters.get("devices", {}).values() if device["index"] == index]
    return max((count for count in counts if count is not None), default=None)
