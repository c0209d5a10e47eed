"""Do a tenant's processors lie where its devices and its memory do?"""

from __future__ import annotations

from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts

OF_THE_PLAN = ("nodes_straddled", "device_on_other_node")


def ask(facts: Facts) -> Answer | None:
    if facts.plan is None:
        return None
    planned = tuple(one for one in facts.plan.findings if one.rule in OF_THE_PLAN)
    nodes = {processor.node for processor in facts.machine.processors}
    if planned:
        return Answer("slices reach over nodes", planned)
    if len(nodes) == 1:
        return Answer("one node")
    unknown = sum(device.node < 0 for device in facts.machine.accelerators)
    text = f"{len(nodes)} nodes, every slice on its own"
    return Answer(f"{text}; {unknown} devices do not say theirs" if unknown else text)


CHECK = Check("processors", "NUMA nodes", ask)
