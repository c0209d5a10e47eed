"""How slices would be enforced, and what of them would not be."""

from __future__ import annotations

from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.findings.rules.not_enforced import not_enforced


def ask(facts: Facts) -> Answer | None:
    held = facts.isolation
    if held is None:
        return None
    if not held.name:
        return Answer("none serves", held.findings)
    if not held.unenforced:
        return Answer(f"{held.name}, which holds all limits", held.findings)
    missing = ", ".join(held.unenforced)
    return Answer(f"{held.name}, without {missing}", (*held.findings, not_enforced(held.name, held.unenforced)))


CHECK = Check("isolation", "backend", ask)
