"""Is the memory there that the slices promise?"""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.text import gib


def ask(facts: Facts) -> Answer:
    free, whose = facts.memory.available_bytes, "the host"
    if facts.memory_left_bytes is not None and facts.memory_left_bytes < free:
        free, whose = facts.memory_left_bytes, "the cgroup around us"
    # Of the memory that the plan shares out.
    text = f"{gib(free)} of {gib(facts.machine.memory_bytes)} available"
    if facts.plan is None:
        return Answer(text)
    promised = sum(one.memory_bytes for one in facts.plan.slices)
    if free >= promised:
        return Answer(f"{text}, {gib(promised)} of it promised to tenants")
    finding = Finding(
        "memory_taken",
        "warning",
        f"The slices promise {gib(promised)}, and others leave {gib(free)}: "
        f"tenants that use all of theirs would bring {whose} out of memory.",
        "End what else uses memory, or keep more back with --reserve.",
    )
    return Answer(text, (finding,))


CHECK = Check("memory", "free memory", ask)
