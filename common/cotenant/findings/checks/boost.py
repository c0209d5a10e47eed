"""Clocks above the nominal one, which depend on how many cores work and how warm they are."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts


def ask(facts: Facts) -> Answer:
    if facts.clocking.boost is None:
        return Answer("not told here")
    if not facts.clocking.boost:
        return Answer("off: clocks do not depend on the neighbours")
    finding = Finding(
        "boost",
        "info",
        "The processors boost: a tenant alone runs at higher clocks than one beside busy neighbours.",
        "This is how the machine is used; switch boost off in the firmware or by sysfs to compare implementations.",
    )
    return Answer("on", (finding,))


CHECK = Check("processors", "turbo", ask)
