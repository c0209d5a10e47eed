"""Who else has a context on the devices."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.findings.rules.device_in_use import OF_MPS
from cotenant.machine.device_state import DeviceProcess
from cotenant.text import gib, listed


def ask(facts: Facts) -> Answer | None:
    if not facts.devices:
        return None
    users = [
        _described(state.index, process)
        for state in facts.devices
        for process in state.processes
        if not process.name.startswith(OF_MPS)
    ]
    if not users:
        return Answer("nobody else is on them")
    finding = Finding(
        "device_in_use",
        "warning",
        f"Other processes use the devices: {listed(users)}.",
        "End them, or leave those devices out with CUDA_VISIBLE_DEVICES.",
    )
    return Answer(f"{len(users)} foreign processes", (finding,))


def _described(index: int, process: DeviceProcess) -> str:
    name = process.name or "not to be seen from here"
    memory = "" if process.memory_bytes is None else f", {gib(process.memory_bytes)}"
    return f"{name} (pid {process.pid}{memory}) on device {index}"


CHECK = Check("devices", "foreign processes", ask)
