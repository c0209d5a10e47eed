"""What nodes of one order should have in common: firmware, limits, clocks, error correction, links to the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cotenant.machine.cpu import clocking
from cotenant.machine.nvidia import ask, handles, session
from cotenant.machine.topology import Machine
from cotenant.procfs import read_text

_SM_CLOCK, _MEMORY_CLOCK = 1, 2


def inventory(machine: Machine, root: Path = Path("/"), nvml: Any = None) -> dict[str, Any]:
    """Return the host's firmware and how its clocks are governed, and `devices`: the same of each NVIDIA device.

    None, or "", is what nobody tells. `nvml`: a stand-in for pynvml.
    """
    clocks = clocking([processor.id for processor in machine.processors], root)
    return {
        "firmware": read_text(root / "sys/class/dmi/id/bios_version"),
        "microcode": read_text(root / "sys/devices/system/cpu/cpu0/microcode/version"),
        "governor": ", ".join(clocks.governors),
        "boost": clocks.boost,
        "devices": _devices(machine, root, nvml),
    }


def _devices(machine: Machine, root: Path, nvml: Any) -> list[dict[str, Any]]:
    places = {device.pci for device in machine.accelerators if device.vendor == "nvidia"}
    if not places:
        return []
    with session(root, nvml) as nvml:
        return [{"index": index} | _device(nvml, handle) for index, pci, handle in handles(nvml) if pci in places]


def _device(nvml: Any, handle: Any) -> dict[str, Any]:
    limit_mw = ask(nvml, None, "nvmlDeviceGetPowerManagementLimit", handle)
    ecc, _ = ask(nvml, (None, None), "nvmlDeviceGetEccMode", handle)
    rows = ask(nvml, None, "nvmlDeviceGetRemappedRows", handle)
    return {
        "firmware": ask(nvml, "", "nvmlDeviceGetVbiosVersion", handle),
        "power_limit_w": None if limit_mw is None else limit_mw / 1000,
        "clock_mhz": ask(nvml, None, "nvmlDeviceGetMaxClockInfo", handle, _SM_CLOCK),
        "memory_clock_mhz": ask(nvml, None, "nvmlDeviceGetMaxClockInfo", handle, _MEMORY_CLOCK),
        "ecc": None if ecc is None else bool(ecc),
        "remapped_rows": None if rows is None else rows[0] + rows[1],
        # The present generation falls while a device idles; the width does not.
        "pcie_generation": ask(nvml, None, "nvmlDeviceGetMaxPcieLinkGeneration", handle),
        "pcie_width": ask(nvml, None, "nvmlDeviceGetCurrPcieLinkWidth", handle),
    }
