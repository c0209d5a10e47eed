"""Without persistence a driver lets go of an idle device, and each launch pays for its return."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.text import listed


def ask(facts: Facts) -> Answer | None:
    off = [one.index for one in facts.devices if one.persistent is False]
    if not facts.devices:
        return None
    if not off:
        told = any(one.persistent is not None for one in facts.devices)
        return Answer("on" if told else "not told")
    finding = Finding(
        "persistence",
        "warning",
        f"Persistence mode is off on devices {listed(off)}: the driver starts anew with each launch, and forgets "
        "what clocks and limits were set.",
        "nvidia-smi -pm 1, or run nvidia-persistenced.",
    )
    return Answer("off", (finding,))


CHECK = Check("devices", "persistence", ask)
