"""Does a physical core serve two tenants?"""

from __future__ import annotations

from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts

OF_THE_PLAN = ("siblings_split", "cores_uneven")


def ask(facts: Facts) -> Answer | None:
    if facts.plan is None:
        return None
    planned = tuple(one for one in facts.plan.findings if one.rule in OF_THE_PLAN)
    cores = len({processor.core for processor in facts.machine.processors})
    threads = len(facts.machine.processors) / cores
    if planned:
        return Answer("cores are cut apart", planned)
    return Answer(f"whole cores, {threads:.2g} threads each" if threads > 1 else f"{cores} cores without siblings")


CHECK = Check("processors", "SMT siblings", ask)
