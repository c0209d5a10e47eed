"""A tenant's part of a device that it shares: it holds itself to it where nothing else does, and says what it sees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cotenant.bench.device import Device
from cotenant.machine.nvidia import multiprocessors
from cotenant.protocol.messages import DEVICE_MEMORY_VARIABLE


def take_part(
    device: Device, environ: Mapping[str, str], torch_device: Any, root: Path = Path("/"), nvml: Any = None
) -> dict[str, Any]:
    """Limit torch's allocator as the runner asks, and return what this process sees of its device.

    `torch_device` is torch's module of its kind of device. `memory_fraction` is what the allocator is held to: it is
    cooperative, as a program could lift it, and memory beside torch's is not in it. `multiprocessors` are those that
    this process may use, `device_multiprocessors` those of the whole device; None where they are not known.
    """
    free_bytes, total_bytes = torch_device.mem_get_info(device.torch_device)
    fraction = None
    if limit := environ.get(DEVICE_MEMORY_VARIABLE):
        fraction = min(1.0, int(limit) / total_bytes)
        torch_device.set_per_process_memory_fraction(fraction, device.torch_device)
    properties = torch_device.get_device_properties(device.torch_device)
    version, uuid = (getattr(properties, "major", 0), getattr(properties, "minor", 0)), getattr(properties, "uuid", "")
    return {
        "memory_free_bytes": free_bytes,
        "memory_total_bytes": total_bytes,
        "memory_fraction": fraction,
        "multiprocessors": getattr(properties, "multi_processor_count", None),
        "device_multiprocessors": multiprocessors(f"GPU-{uuid}", version, root, nvml),
    }
