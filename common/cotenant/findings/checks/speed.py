"""The processor's speed from moment to moment, while nothing of ours runs: rates can be no evener."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts

MOST = 1.2


def ask(facts: Facts) -> Answer | None:
    if facts.speed is None:
        return None
    fast_ns, slow_ns = facts.speed.fast_ns, facts.speed.slow_ns
    text = f"a clock read takes {fast_ns:.0f} to {slow_ns:.0f} ns"
    if slow_ns <= MOST * fast_ns:
        return Answer(text)
    finding = Finding(
        "speed_uneven",
        "warning",
        f"One processor's speed changed within moments: the same work took {slow_ns / fast_ns:.2g} times as long.",
        "Its clock may change, or others unseen may share its core: use dedicated cores, and compare several launches.",
    )
    return Answer(text, (finding,))


CHECK = Check("processors", "even speed", ask)
