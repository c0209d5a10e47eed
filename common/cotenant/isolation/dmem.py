"""The kernel's limits on device memory: cgroup v2's controller `dmem`, Linux 6.14 (admin-guide/cgroup-v2, "DMEM").

A driver charges memory to regions, such as `drm/0000:03:00.0/vram0`; files have a region and its bytes a line.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from cotenant.isolation import cgroupfs
from cotenant.isolation.slice import Slice
from cotenant.machine.accelerators import Accelerator

CONTROLLER = "dmem"


def regions(root: Path) -> dict[str, int]:
    """Return the bytes of each region that drivers have, which the root cgroup alone tells; none where it does not."""
    return _lines(cgroupfs.read_or_none(root / "dmem.capacity") or "")


def region_of(device: Accelerator, known: Collection[str]) -> str | None:
    """Return the region of a device's own memory, None where its driver has none."""
    return next((region for region in sorted(known) if region.startswith(f"drm/{device.pci}/vram")), None)


def limits_for(slice_: Slice, known: Collection[str]) -> dict[str, int]:
    """Return the limits for `dmem.max`, by region, in whole pages; nothing where nobody asks for it."""
    part = slice_.device_share
    if part is None or part.mode.kind != CONTROLLER or not part.memory_bytes:
        return {}
    page = os.sysconf("SC_PAGE_SIZE")
    regions = (region_of(device, known) for device in slice_.accelerators)
    return {region: part.memory_bytes // page * page for region in regions if region is not None}


def limits_of(directory: Path, wanted: Collection[str]) -> str:
    """Return the limits that hold for the wanted regions, as `as_text` writes them. Raises OSError."""
    held = _lines(cgroupfs.read(directory / "dmem.max"))
    return as_text({region: held[region] for region in wanted if region in held})


def as_text(limits: Mapping[str, int]) -> str:
    return ", ".join(f"{region} {limit_bytes}" for region, limit_bytes in sorted(limits.items()))


def _lines(text: str) -> dict[str, int]:
    """Return the numbers behind regions; `max` is none."""
    pairs = (line.rsplit(maxsplit=1) for line in text.splitlines() if line.strip())
    return {region: int(number) for region, number in pairs if number.isdecimal()}
