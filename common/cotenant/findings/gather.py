"""From a host to the facts that checks are asked about. What this reads is cheap: every suite does it at its start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cotenant.findings.facts import Facts
from cotenant.machine.cpu import clocking
from cotenant.machine.device_state import device_states
from cotenant.machine.disk import disks
from cotenant.machine.limits import cgroup_mounts, memory_left
from cotenant.machine.load import Load, load_now, processor_ticks
from cotenant.machine.memory import host_memory, shared_memory
from cotenant.machine.nvml import has_driver
from cotenant.machine.topology import Machine
from cotenant.machine.virtual import virtual


def gather(
    machine: Machine,
    directories: Mapping[str, Path],
    load: Load | None = None,
    root: Path = Path("/"),
    nvml: Any = None,
) -> Facts:
    """Return the facts of the host below `root`, in about 10 ms without devices; most of it is the look at its load.

    `directories` are named after what goes there. `load`: what was found out about it, by default a short look.
    """
    ticks, _, stolen = processor_ticks(root)
    return Facts(
        machine=machine,
        clocking=clocking([processor.id for processor in machine.processors], root),
        memory=host_memory(root),
        shared=shared_memory(root),
        disks=disks(directories),
        load=load_now(root) if load is None else load,
        virtual=virtual(root),
        stolen_share=stolen / ticks if ticks else 0.0,
        devices=device_states(nvidia_places(machine), root, nvml) if nvidia_places(machine) else (),
        driver=has_driver(root),
        memory_left_bytes=memory_left(cgroup_mounts(root)),
    )


def nvidia_places(machine: Machine) -> frozenset[str]:
    """Return the PCI ids of the NVIDIA devices that we may use: the partitions of one device share its id."""
    return frozenset(one.pci for one in machine.accelerators if one.vendor == "nvidia")
