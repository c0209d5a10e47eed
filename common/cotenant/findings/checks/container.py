"""Limits around us: the slices are cut out of what they leave."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.text import gib

OF_THE_PLAN = ("processor_quota",)
NEARLY = 0.99


def ask(facts: Facts) -> Answer:
    machine, host_bytes = facts.machine, facts.memory.total_bytes
    where = f"inside {facts.virtual.container}" if facts.virtual.container else "none seen"
    limited: list[str] = []
    if len(machine.processors) < machine.processor_total:
        limited.append(f"{len(machine.processors)} of {machine.processor_total} processors")
    if machine.quota_processors is not None and machine.quota_processors < len(machine.processors):
        limited.append(f"the time of {machine.quota_processors:g} processors")
    if machine.memory_bytes < NEARLY * host_bytes:
        limited.append(f"{gib(machine.memory_bytes)} of {gib(host_bytes)} of memory")
    planned = tuple(one for one in facts.plan.findings if one.rule in OF_THE_PLAN) if facts.plan else ()
    if not limited:
        return Answer(f"{where}, the whole machine is ours", planned)
    finding = Finding(
        "container_limits",
        "info",
        f"What surrounds us (a cgroup, a container, an affinity mask) leaves us {' and '.join(limited)}.",
        "Numbers are of that part, with neighbours outside of it. Raise the limits to measure the whole machine.",
    )
    return Answer(f"{where}, {' and '.join(limited)}", (finding, *planned))


CHECK = Check("isolation", "container", ask)
