"""Swap turns a tenant that outgrows its memory into one that slows everybody's disk."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.text import gib


def ask(facts: Facts) -> Answer:
    memory = facts.memory
    if not memory.swap_bytes:
        return Answer("none")
    used = memory.swap_bytes - memory.swap_free_bytes
    text = f"{gib(used)} of {gib(memory.swap_bytes)} in use"
    closed = facts.isolation is not None and "swap" not in facts.isolation.unenforced
    if closed and not used:
        return Answer(f"{text}, closed to tenants")
    sentence = (
        f"{gib(used)} of swap are in use: what lies there comes back during somebody's observations."
        if closed
        else f"There are {gib(memory.swap_bytes)} of swap that this isolation does not close to tenants."
    )
    return Answer(text, (Finding("swap", "info" if closed else "warning", sentence, "swapoff -a"),))


CHECK = Check("memory", "swap", ask)
