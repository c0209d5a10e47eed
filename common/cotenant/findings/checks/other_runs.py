"""A suite in another container on this host: it has a lock of its own, and ours does not keep it out."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.text import listed


def ask(facts: Facts) -> Answer | None:
    if facts.isolation is None:
        return None
    directories = facts.isolation.elsewhere
    if not directories:
        return Answer("none seen")
    names = sorted({path.name for path in directories})
    text = f"{len(names)} in other PID namespaces"
    finding = Finding(
        "run_elsewhere",
        "warning",
        f"Suites may be running in other PID namespaces of this host ({listed(names)}), and two disturb each other.",
        "Wait for their end. What a dead one has left goes with: "
        f"find {' '.join(map(str, directories))} -depth -type d -exec rmdir {{}} +",
    )
    return Answer(text, (finding,))


CHECK = Check("isolation", "other suites", ask)
