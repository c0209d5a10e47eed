"""What a record says of its machine."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from cotenant.machine.software import git_state, software
from cotenant.machine.topology import Machine
from cotenant.procfs import format_list


def machine_facts(machine: Machine, checkout: Path) -> dict[str, Any]:
    """Return topology, memory, accelerators, software and the checkout's state as plain values."""
    state = git_state(checkout)
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
        "software": asdict(software()),
        "git": asdict(state) if state else None,
    }
