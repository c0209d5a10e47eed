"""Is the memory there that the slices promise?"""

from __future__ import annotations

from cotenant.findings.check import Answer, Check, gib
from cotenant.findings.facts import Facts
from cotenant.findings.finding import Finding


def ask(facts: Facts) -> Answer:
    memory = facts.memory
    text = f"{gib(memory.available_bytes)} of {gib(memory.total_bytes)} available"
    if facts.plan is None:
        return Answer(text)
    promised = sum(one.memory_bytes for one in facts.plan.slices)
    if memory.available_bytes >= promised:
        return Answer(f"{text}, {gib(promised)} of it promised to tenants")
    finding = Finding(
        "memory_taken",
        "warning",
        f"The slices promise {gib(promised)}, and others leave {gib(memory.available_bytes)}: "
        "tenants that use all of theirs would bring the host out of memory.",
        "End what else uses memory, or keep more back with --reserve.",
    )
    return Answer(text, (finding,))


CHECK = Check("memory", "free memory", ask)
