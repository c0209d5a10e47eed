"""/dev/shm, through which data-loader processes hand over their batches: full, they die of a bus error."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.text import gib

LEAST = 1 << 30
"""Container engines give 64 MiB unless they are asked for more."""


def ask(facts: Facts) -> Answer:
    if facts.isolation is not None and facts.isolation.own_shm:
        return Answer("one of each tenant's own, as large as its memory")
    shared, needed = facts.shared, facts.loader_bytes
    if shared is None:
        there, free = "There is no /dev/shm", 0
        text = "missing"
    else:
        free = shared.free_bytes
        there = f"/dev/shm has {gib(free)} free of {gib(shared.size_bytes)}"
        text = f"{gib(free)} of {gib(shared.size_bytes)} free"
    if needed:
        text += f", loaders need up to {gib(needed)}"
    if free >= (needed or LEAST):
        return Answer(text)
    why = f"the loaders of one launch may hold {gib(needed)}" if needed else "data-loader processes need it"
    finding = Finding(
        "shared_memory",
        "warning",
        f"{there}, and {why}.",
        "In a container: --shm-size 16g or --ipc=host. Elsewhere: mount -o remount,size=16G /dev/shm",
    )
    return Answer(text, (finding,))


CHECK = Check("memory", "/dev/shm", ask)
