"""Collects a record's facts on its machine: the hardware, the software, and the checkout's state."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cotenant.checkout import INSTALLED
from cotenant.machine.cpu import clocking
from cotenant.machine.nvidia import Told, devices_told, session, switched, watts
from cotenant.machine.topology import Machine
from cotenant.procfs import fields, format_list, read_text

_SM_CLOCK, _MEMORY_CLOCK = 1, 2


def inventory(machine: Machine) -> dict[str, Any]:
    """Return the host's firmware and the governing of its clocks, and `devices`: the same of each NVIDIA device.

    An unknown fact is None or "".
    """
    clocks = clocking([processor.id for processor in machine.processors])
    return {
        "firmware": read_text(Path("/sys/class/dmi/id/bios_version")),
        "microcode": read_text(Path("/sys/devices/system/cpu/cpu0/microcode/version")),
        "governor": ", ".join(clocks.governors),
        "boost": clocks.boost,
        "devices": _devices(machine),
    }


def _devices(machine: Machine) -> list[dict[str, Any]]:
    if not (places := machine.nvidia_places):
        return []
    with session(Path("/")) as nvml:
        return [{"index": index} | _device(told) for index, pci, told in devices_told(nvml) if pci in places]


def _device(told: Told) -> dict[str, Any]:
    ecc, _ = told("nvmlDeviceGetEccMode", unknown=(None, None))
    rows = told("nvmlDeviceGetRemappedRows")
    return {
        "firmware": told("nvmlDeviceGetVbiosVersion", unknown=""),
        "power_limit_w": watts(told("nvmlDeviceGetPowerManagementLimit")),
        "clock_mhz": told("nvmlDeviceGetMaxClockInfo", _SM_CLOCK),
        "memory_clock_mhz": told("nvmlDeviceGetMaxClockInfo", _MEMORY_CLOCK),
        "ecc": switched(ecc),
        "remapped_rows": None if rows is None else rows[0] + rows[1],
        # The present generation falls while a device idles; the width does not.
        "pcie_generation": told("nvmlDeviceGetMaxPcieLinkGeneration"),
        "pcie_width": told("nvmlDeviceGetCurrPcieLinkWidth"),
    }


PACKAGES = ("torch", "torchvision", "numpy", "cotenant")
_GIT_SECONDS = 2.0


def software(root: Path = Path("/")) -> dict[str, Any]:
    """Return the versions of kernel, distribution, Python and packages; no package is imported for it."""
    release = read_text(root / "etc/os-release") or read_text(root / "usr/lib/os-release")
    return {
        "kernel": os.uname().release,
        "distribution": fields(release, "=").get("PRETTY_NAME", "").strip("\"'"),
        "python": ".".join(str(number) for number in sys.version_info[:3]),
        "packages": installed(),
    }


def git_state(directory: Path) -> dict[str, Any] | None:
    """Return the `commit` of `directory`, and whether a tracked file differs from it (`dirty`).

    None without git, repository or commit.
    """
    # From within a hook git would look at the hook's repository, and a status may write to the index.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    status = ["status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    try:
        answer = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", *status],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = answer.stdout.decode(errors="replace").splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "")
    if answer.returncode != 0 or not commit or commit == "(initial)":
        return None
    return {"commit": commit, "dirty": any(not line.startswith("#") for line in lines)}


def installed() -> dict[str, str]:
    """Return the version of each installed package that decides a rate."""
    # This imports email and zipfile: too slow if only the topology is wanted.
    from importlib import metadata

    versions: dict[str, str] = {}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def machine_facts(machine: Machine, checkout: Path) -> dict[str, Any]:
    """Return topology, memory, accelerators, inventory, software and the checkout's state as plain values."""
    return {
        "hostname": machine.hostname,
        "model_name": machine.model_name,
        "processors": {
            "usable": format_list(processor.id for processor in machine.processors),
            "online": machine.processor_total,
            "cores": len({processor.core for processor in machine.processors}),
            "packages": len({processor.package for processor in machine.processors}),
            "quota": machine.quota_processors,
        },
        "nodes": [asdict(node) for node in machine.nodes],
        "memory_bytes": machine.memory_bytes,
        "accelerators": [asdict(accelerator) for accelerator in machine.accelerators],
        "inventory": inventory(machine),
        "software": software(),
        "git": None if INSTALLED else git_state(checkout),
    }
