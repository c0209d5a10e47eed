"""A guest of a shared host: what the host takes away is in no counter of a tenant."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts

MOST = 0.01


def ask(facts: Facts) -> Answer:
    below, stolen = facts.virtual.hypervisor, facts.stolen_share
    findings = []
    if below:
        findings.append(
            Finding(
                "virtual_machine",
                "info",
                f"This is a virtual machine (hypervisor: {below}), whose host may be shared with others unseen.",
                "Repeat at other hours before a number is published, or ask for a dedicated host.",
            )
        )
    if stolen > MOST:
        findings.append(
            Finding(
                "steal",
                "warning",
                f"Since boot the host has taken away {100 * stolen:.1f} % of this machine's processor time.",
                "Use an instance with dedicated processors.",
            )
        )
    text = f"virtual, hypervisor {below}" if below else "no hypervisor seen"
    return Answer(f"{text}, {100 * stolen:.1f} % stolen since boot", tuple(findings))


CHECK = Check("processors", "virtual machine", ask)
