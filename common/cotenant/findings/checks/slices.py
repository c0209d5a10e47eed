"""What each tenant would get, and what nobody would."""

from __future__ import annotations

from cotenant.findings.check import Answer, Check
from cotenant.findings.checks import container, locality, siblings
from cotenant.findings.facts import Facts
from cotenant.procfs import format_list
from cotenant.text import gib, many

ELSEWHERE = container.OF_THE_PLAN + locality.OF_THE_PLAN + siblings.OF_THE_PLAN


def ask(facts: Facts) -> Answer | None:
    if facts.plan_refusal is not None:
        return Answer("none can be planned", (facts.plan_refusal,))
    if facts.plan is None:
        return None
    slices = facts.plan.slices
    processors = " | ".join(format_list(one.processors) for one in slices)
    text = f"{many(len(slices), 'tenant')}: processors {processors}, {gib(slices[0].memory_bytes)} each"
    return Answer(text, tuple(one for one in facts.plan.findings if one.rule not in ELSEWHERE))


CHECK = Check("isolation", "slices", ask)
