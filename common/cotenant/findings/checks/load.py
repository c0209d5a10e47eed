"""Foreign work on the processors: spinning threads beside a tenant can slow it many times."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.findings.rules.foreign_load import kept, tolerated
from cotenant.text import listed


def ask(facts: Facts) -> Answer:
    load, total = facts.load, facts.machine.processor_total
    average = "" if load.average is None else f", load average {load.average:g}"
    if load.busy is None and load.running is None:
        return Answer(f"not told here{average}")
    if load.busy is None:
        busy, text = float(load.running or 0), f"{load.running} foreign threads keep running{average}"
    else:
        busy, text = load.busy, f"{load.busy:.2f} of {total} processors busy{average}"
    if busy <= tolerated(total):
        return Answer(text)
    names = listed(f"{one.name} (pid {one.pid}, {100 * one.share:.0f} %)" for one in load.busiest)
    finding = Finding(
        "foreign_load",
        "warning",
        f"Other work keeps {kept(busy, total)} of {total} processors busy{f': {names}' if names else ''}.",
        "End it, or wait for it: what it uses is missing to the tenants.",
    )
    return Answer(text, (finding,))


CHECK = Check("processors", "foreign load", ask)
