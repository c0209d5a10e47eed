"""Which meters a launch on this machine has."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cotenant.isolation.plan import Slice
from cotenant.machine.topology import Machine
from cotenant.meters.amd import amd_source
from cotenant.meters.devices import DeviceLoad, DeviceSource
from cotenant.meters.foreign import ForeignLoad
from cotenant.meters.memory import MemoryLeft
from cotenant.meters.meters import Meters
from cotenant.meters.nvidia import nvidia_source
from cotenant.meters.packages import PackageEnergy
from cotenant.meters.sampler import Sampler
from cotenant.meters.slices import SliceMemory

LIBRARIES = {
    "nvidia": "NVIDIA's driver and its library: pip install nvidia-ml-py",
    "amd": "the amdsmi of the installed ROCm: pip install /opt/rocm/share/amd_smi",
    "intel": "devices of NVIDIA or AMD: of Intel's no library is asked",
}
WHOLE = "a launch that owns the processor packages whole: a job of the group `all`, or --users 1"


@contextlib.contextmanager
def meters_of(
    machine: Machine,
    slices: Sequence[Slice],
    root: Path = Path("/"),
    nvml: Any = None,
    smi: Any = None,
) -> Iterator[Meters]:
    """Yield the meters of a launch with these slices; sessions with the devices' libraries last as long as the context.

    `nvml`, `smi`: stand-ins for pynvml and amdsmi.
    """
    samplers: list[Sampler] = [
        ForeignLoad(machine.processor_total, root),
        MemoryLeft(root),
        SliceMemory([one.tenant for one in slices]),
    ]
    absent: dict[str, str] = {}
    if _owns_packages(machine, slices):
        samplers.append(PackageEnergy(root))
    else:
        absent["packages"] = WHOLE
    with contextlib.ExitStack() as stack:
        for vendor in sorted({one.vendor for one in machine.accelerators}):
            source: DeviceSource | None = None
            said = ""
            if vendor == "nvidia":
                pci = {one.pci for one in machine.accelerators}
                source = stack.enter_context(nvidia_source(pci, root, nvml))
            elif vendor == "amd":
                found = stack.enter_context(amd_source(machine.accelerators, smi))
                source, said = (None, f" (here {found})") if isinstance(found, str) else (found, "")
            if source is None:
                absent["devices"] = LIBRARIES[vendor] + said
            else:
                samplers.append(DeviceLoad(source))
        yield Meters(samplers, absent)


def _owns_packages(machine: Machine, slices: Sequence[Slice]) -> bool:
    """One slice with every processor that is online: then nobody else's work is in the packages' energy."""
    return len(slices) == 1 and len(slices[0].processors) == machine.processor_total
