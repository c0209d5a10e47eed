"""The modes in which several tenants share one device, and each tenant's entitlement. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from cotenant.errors import CotenantError
from cotenant.isolation.device_shares import Devices
from cotenant.machine.accelerators import Accelerator
from cotenant.removed import removed
from cotenant.text import gib, many

Kind = Literal["time", "mps"]

CONTEXT_BYTES = 800 << 20
"""Bytes that a process uses of a device's memory beside its tensors once cuBLAS and cuDNN are loaded: an estimate, on
the large side for CUDA 12 and 13."""
LEAST_BYTES = 64 << 20
_MODE = re.compile(r"(time|mps)|mps:([1-9]\d?|100)")


@dataclass(frozen=True, slots=True)
class ShareMode:
    """The way that tenants share a device. `time`: the driver gives them turns. `mps`: they run at once, by NVIDIA's
    Multi-Process Service, each with at most `percent` of the multiprocessors."""

    kind: Kind
    percent: int | None = None

    def __str__(self) -> str:
        return self.kind if self.percent is None else f"{self.kind}:{self.percent}"


@dataclass(frozen=True, slots=True)
class DeviceShare:
    """A tenant's share of its device, used by `sharers` tenants, itself included.

    `entitlement` is its promised part of the device's computing, 1 for a whole device. `memory_bytes` is its limit, 0
    if the device's memory is unknown.
    """

    mode: ShareMode
    sharers: int
    entitlement: float
    memory_bytes: int


def share_mode(text: str) -> ShareMode:
    """Return the mode of a word such as `time` or `mps:25`. Raises ValueError, CotenantError."""
    match = _MODE.fullmatch(text)
    if match is None:
        if sentence := removed(text, "--share"):
            raise CotenantError(f"--share {text} was removed.", sentence)
        raise ValueError(f"'{text}' is not time, mps or mps:1 to mps:100")
    kind: Kind = match[1] or "mps"  # type: ignore[assignment]  # the pattern has no other words
    return ShareMode(kind, int(match[2]) if match[2] else None)


def device_parts(devices_of: Sequence[Devices], mode: ShareMode) -> list[DeviceShare]:
    """Return each tenant's share of its device. Raises CotenantError if they cannot be shared this way."""
    tenants_of = Counter(chain.from_iterable(devices_of))
    _check_devices(devices_of, tenants_of, mode)
    return [_part(device, tenants_of[device], mode) for (device,) in devices_of]


def _check_devices(devices_of: Sequence[Devices], devices: Counter[Accelerator], mode: ShareMode) -> None:
    """Raise CotenantError if `devices`, each with its number of tenants, cannot be shared this way."""
    if not devices:
        raise CotenantError(f"There is no device for --share {mode}.", "--slices lets users share processors.")
    if any(len(of_tenant) > 1 for of_tenant in devices_of):
        raise CotenantError(
            f"--share {mode} gives each user one device, and here are {len(devices)} for {len(devices_of)} users.",
            f"Use --users {len(devices)}, or a multiple of it; CUDA_VISIBLE_DEVICES leaves devices out.",
        )
    if len(set(devices.values())) > 1:
        raise CotenantError(
            f"{many(len(devices_of), 'user')} cannot share {many(len(devices), 'device')} equally.",
            f"Use --users {' or '.join(str(len(devices) * factor) for factor in (1, 2, 4))}.",
        )
    if mode.kind == "mps" and any(device.vendor != "nvidia" for device in devices):
        raise CotenantError("--share mps is for NVIDIA's devices.", "Use --share time.")
    instances = sum(device.is_partition for device in devices)
    if mode.kind == "mps" and instances > 1:
        raise CotenantError(
            f"A daemon of MPS serves one MIG instance, and here are {instances}.",
            "Show it one by CUDA_VISIBLE_DEVICES=MIG-..., or use --share time.",
        )


def _part(device: Accelerator, sharers: int, mode: ShareMode) -> DeviceShare:
    entitlement = 1 / sharers if mode.percent is None else mode.percent / 100
    if not device.memory_bytes:
        return DeviceShare(mode, sharers, entitlement, 0)
    memory_bytes = (device.memory_bytes - sharers * CONTEXT_BYTES) // sharers
    if memory_bytes < LEAST_BYTES:
        raise CotenantError(
            f"{gib(device.memory_bytes)} of device memory are too little for {sharers} users.", "Use fewer --users."
        )
    return DeviceShare(mode, sharers, entitlement, memory_bytes)
