"""The enforcement of slices, each tenant's part, and the limits around us."""

from __future__ import annotations

import shlex

from cotenant.finding import Finding, info, warning
from cotenant.findings import Inspection, check
from cotenant.findings.facts import Facts
from cotenant.findings.rules.host import unenforced_limits
from cotenant.text import gib, listed

OF_SIBLINGS = ("siblings_split", "cores_uneven")
OF_NODES = ("nodes_straddled", "sockets_straddled", "device_on_other_node")
OF_CONTAINERS = ("processor_quota",)
"""Findings of the plan that other checks than `slices` show."""
NEARLY = 0.99


@check("isolation", "backend")
def backend(facts: Facts) -> Inspection:
    """The backend that would enforce slices, and the limits that it would not enforce."""
    isolation = facts.isolation
    if isolation is None:
        return None
    yield from isolation.findings
    if not isolation.name:
        return "none serves"
    if not isolation.unenforced:
        return f"{isolation.name}, which holds all limits"
    yield unenforced_limits(isolation.name, isolation.unenforced)
    return f"{isolation.name}, without {', '.join(isolation.unenforced)}"


@check("isolation", "slices")
def slices(facts: Facts) -> Inspection:
    """The slice that each tenant would get, and the resources that no tenant would."""
    if facts.plan_refusal is not None:
        yield facts.plan_refusal
        return "none can be planned"
    if facts.plan is None:
        return None
    elsewhere = (*OF_SIBLINGS, *OF_NODES, *OF_CONTAINERS)
    yield from (finding for finding in facts.plan.findings if finding.rule not in elsewhere)
    return str(facts.plan)


@check("isolation", "container", every_suite=True)
def container(facts: Facts) -> Inspection:
    """Limits around us: the slices are parts of the rest that they leave."""
    machine, host_bytes = facts.machine, facts.memory.total_bytes
    where = f"inside {facts.virtual.container}" if facts.virtual.container else "none seen"
    limits: list[str] = []
    if len(machine.processors) < machine.processor_total:
        limits.append(f"{len(machine.processors)} of {machine.processor_total} processors")
    if machine.quota_processors is not None and machine.quota_processors < len(machine.processors):
        limits.append(f"the time of {machine.quota_processors:g} processors")
    if machine.memory_bytes < NEARLY * host_bytes:
        limits.append(f"{gib(machine.memory_bytes)} of {gib(host_bytes)} of memory")
    if limits:
        yield info(
            f"A cgroup, a container or an affinity mask around us leaves us {' and '.join(limits)}.",
            "Numbers describe that part, with neighbours outside of it. Raise the limits to measure the whole machine.",
            rule="container_limits",
        )
    yield from planned_findings(facts, OF_CONTAINERS)
    return f"{where}, {' and '.join(limits) or 'the whole machine is ours'}"


@check("isolation", "other suites", every_suite=True)
def other_suites(facts: Facts) -> Inspection:
    """A suite in another container on this host: it has a lock of its own, and ours does not keep it out."""
    if facts.isolation is None:
        return None
    directories = facts.isolation.elsewhere
    if not directories:
        return "none seen"
    names = sorted({path.name for path in directories})
    yield warning(
        f"Suites may be running in other PID namespaces of this host ({listed(names)}), and two disturb each other.",
        "Wait for their end. This removes what a dead one has left: "
        f"find {shlex.join(map(str, directories))} -depth -type d -exec rmdir {{}} +",
        rule="run_elsewhere",
    )
    return f"{len(names)} in other PID namespaces"


def planned_findings(facts: Facts, rules: tuple[str, ...]) -> tuple[Finding, ...]:
    """Return the plan's findings that one check shows."""
    return tuple(finding for finding in facts.plan.findings if finding.rule in rules) if facts.plan else ()
