"""The host's processors and its memory."""

from __future__ import annotations

from cotenant.finding import info, warning
from cotenant.findings import Inspection, check
from cotenant.findings.checks.isolation import OF_NODES, OF_SIBLINGS, planned_findings
from cotenant.findings.facts import Facts
from cotenant.findings.rules.host import LOOK_FOR, MOST_STOLEN, busy_of, tolerated
from cotenant.machine.cpu import Clocking
from cotenant.procfs import shortened_list
from cotenant.text import gib, listed

MOST_UNEVEN = 1.2
SELF_GOVERNED = ("intel_pstate", "amd-pstate-epp")
"""With these drivers the hardware chooses the clock, and "powersave" is not the governor of that name."""
AWAKE = {"performance", "balance_performance"}
LEAST_SHARED_BYTES = 1 << 30
"""The least size of /dev/shm. Container engines give 64 MiB by default."""


@check("processors", "SMT siblings")
def siblings(facts: Facts) -> Inspection:
    """Physical cores that serve two tenants."""
    if facts.plan is None:
        return None
    if planned := planned_findings(facts, OF_SIBLINGS):
        yield from planned
        return "cores are cut apart"
    cores = len({processor.core for processor in facts.machine.processors})
    threads = len(facts.machine.processors) / cores
    return f"whole cores, {threads:.2g} threads each" if threads > 1 else f"{cores} cores without siblings"


@check("processors", "NUMA nodes")
def nodes(facts: Facts) -> Inspection:
    """Tenants with processors far from their devices or their memory."""
    if facts.plan is None:
        return None
    if planned := planned_findings(facts, OF_NODES):
        yield from planned
        return "slices reach over nodes or sockets"
    total = len({processor.node for processor in facts.machine.processors})
    if total == 1:
        return "one node"
    unknown = sum(device.node < 0 for device in facts.machine.accelerators)
    node_of = {processor.id: processor.node for processor in facts.machine.processors}
    # With several slices this would be a finding.
    spread = any(len({node_of[number] for number in slice_.processors}) > 1 for slice_ in facts.plan.slices)
    text = f"{total} nodes, {'the one slice on several' if spread else 'every slice on its own'}"
    return f"{text}; {unknown} devices do not say theirs" if unknown else text


@check("processors", "even speed")
def even_speed(facts: Facts) -> Inspection:
    """The processor's speed from moment to moment, while nothing of ours runs: rates can be no more even."""
    if facts.speed is None:
        return None
    fast_ns, slow_ns = facts.speed.fast_ns, facts.speed.slow_ns
    text = f"a clock read takes {fast_ns:.0f} to {slow_ns:.0f} ns"
    if slow_ns <= MOST_UNEVEN * fast_ns:
        return text
    yield warning(
        f"One processor's speed changed within moments: the same work took {slow_ns / fast_ns:.2g} times as long.",
        "Its clock may change, or an unseen neighbour may share its core: use dedicated cores, and compare several "
        "launches.",
        rule="speed_uneven",
    )
    return text


@check("processors", "niceness", every_suite=True)
def niceness(facts: Facts) -> Inspection:
    """Precedence of other work over ours: a process with a higher nice value yields processor time to others."""
    if facts.niceness > 0:
        yield warning(
            f"We run with a niceness of {facts.niceness}, and so will the users: all other work has precedence over "
            "theirs.",
            "Start it without nice; on a cluster of Ray, start Ray with RAY_worker_niceness=0.",
        )
    return f"a niceness of {facts.niceness}"


@check("processors", "governor", every_suite=True)
def governor(facts: Facts) -> Inspection:
    """The governor of the processors' clocks: one that waits for load to show makes short work slow."""
    clocking = facts.clocking
    if not clocking.governors:
        return "not known here: the clocks are chosen outside of this kernel"
    if not _fast(clocking):
        yield warning(
            f"The processors' clocks are governed by {', '.join(clocking.governors + clocking.preferences)}: "
            "they follow the load, and rates with them.",
            "cpupower frequency-set -g performance",
        )
    if clocking.capped:
        yield warning(
            f"The clocks of processors {shortened_list(clocking.capped)} are capped below what they can do.",
            "cpupower frequency-set -u with the highest value of cpupower frequency-info",
            rule="frequency_capped",
        )
    return f"{', '.join(clocking.governors)} ({clocking.driver or 'unnamed driver'})"


def _fast(clocking: Clocking) -> bool:
    if clocking.governors == ("performance",):
        return True
    return clocking.driver in SELF_GOVERNED and bool(clocking.preferences) and set(clocking.preferences) <= AWAKE


@check("processors", "turbo", every_suite=True)
def turbo(facts: Facts) -> Inspection:
    """Clocks above the nominal one, which depend on the number of working cores and their temperature."""
    if facts.clocking.boost is None:
        return "not known here"
    if not facts.clocking.boost:
        return "off: clocks do not depend on the neighbours"
    yield info(
        "The processors boost: a user alone runs at higher clocks than one beside busy neighbours.",
        "This is how the machine is used; switch boost off in the firmware or by sysfs to compare implementations.",
        rule="boost",
    )
    return "on"


@check("processors", "foreign load", every_suite=True)
def foreign_load(facts: Facts) -> Inspection:
    """Foreign work on the processors: spinning threads beside a tenant can slow it many times."""
    load, total = facts.load, facts.machine.processor_total
    average = "" if load.average is None else f", load average {load.average:g}"
    if load.busy is None and load.running is None:
        return f"not known here{average}"
    if load.busy is None:
        busy, text = float(load.running or 0), f"{load.running} foreign threads keep running{average}"
    else:
        busy, text = load.busy, f"{load.busy:.2f} of {total} processors busy{average}"
    if busy <= tolerated(total):
        return text
    named = [f"{spender.name} (pid {spender.pid}, {100 * spender.share:.0f} %)" for spender in load.busiest]
    names = listed(named or load.seen)
    yield warning(
        f"Other work keeps {busy_of(busy, total)} of {total} processors busy"
        f"{f': {names}.' if names else '. No process could be identified.'}",
        "End it, or wait for it: it takes processor time from the users." if names else LOOK_FOR,
        rule="busy_host",
    )
    return text


@check("processors", "virtual machine", every_suite=True)
def virtual_machine(facts: Facts) -> Inspection:
    """A guest of a shared host: no counter of a tenant shows the time that the host takes away."""
    hypervisor, stolen = facts.virtual.hypervisor, facts.stolen_share
    if hypervisor:
        yield info(
            f"This is a virtual machine (hypervisor: {hypervisor}), whose host may be shared with unseen others.",
            "Repeat at other hours before a number is published, or ask for a dedicated host.",
        )
    if stolen > MOST_STOLEN:
        # Only a note: each launch meters the time that was taken from it.
        yield info(
            f"Since boot the hypervisor has taken {100 * stolen:.1f} % of this machine's processor time (steal).",
            "Use an instance with dedicated processors.",
            rule="steal",
            value=stolen,
        )
    text = f"virtual, hypervisor {hypervisor}" if hypervisor else "no hypervisor seen"
    return f"{text}, {100 * stolen:.1f} % stolen since boot"


@check("memory", "free memory", every_suite=True)
def free_memory(facts: Facts) -> Inspection:
    """The available memory, against the memory that the slices promise."""
    free, whose = facts.memory.available_bytes, "the host"
    if facts.memory_left_bytes is not None and facts.memory_left_bytes < free:
        free, whose = facts.memory_left_bytes, "the cgroup around us"
    # `machine.memory_bytes` is what the plan shares out.
    text = f"{gib(free)} of {gib(facts.machine.memory_bytes)} available"
    if facts.plan is None or (facts.isolation is not None and facts.isolation.name == "none"):
        return text
    promised = sum(tenant.memory_bytes for tenant in facts.plan.slices)
    if free >= promised:
        return f"{text}, {gib(promised)} of it promised to users"
    yield warning(
        f"The slices promise {gib(promised)}, and others leave {gib(free)}: "
        f"users that fill their slices would exhaust the memory of {whose}.",
        "End what else uses memory, or keep more back with --reserve.",
        rule="memory_taken",
        # A tenant killed for memory has no rate.
        effect=0.0,
    )
    return text


@check("memory", "swap", every_suite=True)
def swap(facts: Facts) -> Inspection:
    """With swap, a tenant that outgrows its memory slows the disk for all tenants."""
    memory = facts.memory
    if not memory.swap_bytes:
        return "none"
    used = memory.swap_bytes - memory.swap_free_bytes
    text = f"{gib(used)} of {gib(memory.swap_bytes)} in use"
    closed = facts.isolation is not None and "swap" not in facts.isolation.unenforced
    if closed and not used:
        return f"{text}, closed to users"
    sentence = (
        f"{gib(used)} of swap are in use: its pages come back during observations."
        if closed
        else f"There are {gib(memory.swap_bytes)} of swap that this isolation does not close to users."
    )
    severity = info if closed else warning
    # A launch that swaps has a finding of its own (`swapped`).
    yield severity(sentence, "swapoff -a", effect=0.0)
    return text


@check("memory", "/dev/shm", every_suite=True)
def shared_memory(facts: Facts) -> Inspection:
    """/dev/shm, through which data-loader processes hand over their batches: if full, they die of a bus error."""
    if facts.isolation is not None and facts.isolation.own_shm:
        return "one of each user's own, as large as its memory"
    shared, needed = facts.shared, facts.loader_bytes
    if shared is None:
        there, free = "There is no /dev/shm", 0
        text = "missing"
    else:
        free = shared.free_bytes
        there = f"/dev/shm has {gib(free)} free of {gib(shared.size_bytes)}"
        text = f"{gib(free)} of {gib(shared.size_bytes)} free"
    if needed:
        text += f", loaders need up to {gib(needed)}"
    if free >= (needed or LEAST_SHARED_BYTES):
        return text
    why = f"the loaders of one launch may hold {gib(needed)}" if needed else "data-loader processes need it"
    yield warning(
        f"{there}, and {why}.",
        "In a container: --shm-size 16g or --ipc=host. Elsewhere: mount -o remount,size=16G /dev/shm",
        effect=0.0,
    )
    return text
