"""Launches by blocks: whether frozen tenants were still, and whether running ones loaded their neighbours."""

from __future__ import annotations

from statistics import median

from cotenant.finding import Finding, error, warning
from cotenant.findings import record_rule
from cotenant.results.record import Record

MOST_AT_REST = 0.01
"""A tenant may work for this share of its time at rest: the kernel counts work in progress when it freezes. None of 600
slices had used any."""
MOST_OTHER_LOAD = 3.0
"""Processor time of an item beside others over the time alone: shared caches and clocks at most double it."""
MOST_SPUN = 5.0
"""The same if tenants share processors, for each of them: threads spin while the threads that they wait for rest.
Seen: 3.8 with two tenants, 14.7 with six."""
SOME_STARTING, MOST_STARTING = 0.2, 0.5
"""Parts of the observations' time."""


@record_rule
def worked_at_rest(record: Record) -> Finding | None:
    """A slice that used processor time while it was held still: then its neighbours were not alone."""
    rest = record.blocks.spent.get("rest") if record.blocks else None
    if rest is None or not rest.lasted_ns or rest.processor_ns <= MOST_AT_REST * rest.lasted_ns:
        return None
    share = rest.processor_ns / rest.lasted_ns
    return error(
        f"Its slice used {100 * share:.1f} % of a processor while it was held still.",
        "See what thaws it: root and the owner of a slice can, and a runner that is stopped for 30 s.",
        value=share,
        effect=share,
    )


@record_rule
def other_load(record: Record) -> Finding | None:
    """A tenant whose items take another processor time alone than beside others: it did not load its neighbours, or
    did not work alone."""
    # A process that waits for a shared device may spin meanwhile.
    if record.blocks is None or record.kept is None or record.isolation.planned.get("accelerators"):
        return None
    together, alone = (record.blocks.spent.get(kind) for kind in ("all", "only"))
    if together is None or alone is None or not alone.lasted_ns or not together.lasted_ns:
        return None
    loads = [spent.processor_ns / spent.lasted_ns for spent in (together, alone)]
    least = min(loads[0] / record.kept.value, loads[1])
    ratio = loads[0] / record.kept.value / loads[1] if least > 0 else 0.0
    most = MOST_OTHER_LOAD if record.sharers == 1 else MOST_SPUN * record.sharers
    if least > 0 and 1 / MOST_OTHER_LOAD <= ratio <= most:
        return None
    return error(
        f"Its slice used {loads[0]:.2g} processors beside the others and {loads[1]:.2g} alone, and it counts "
        f"{record.kept.value:.2f} of the items: in one of the two it did not do the work that it counts.",
        "Let every step do its work, whether others run or not.",
        value=ratio,
        effect=abs(1 - ratio),
    )


@record_rule
def starting(record: Record) -> Finding | None:
    """A command that is restarted often: while it starts it does not train, and its neighbours have more."""
    starts = record.observed.get("starts")
    inside_ns = [made.took_ns for made in record.observations if made.block is not None]
    if record.blocks is None or not isinstance(starts, int) or starts < 2 or not inside_ns:
        return None
    awake_ns = sum(spent.lasted_ns for kind, spent in record.blocks.spent.items() if kind != "rest")
    # An observation across a border includes the time at rest.
    usual_ns = median(inside_ns)
    across_ns = sum(min(made.took_ns, usual_ns) for made in record.observations if made.block is None)
    timed_ns = sum(inside_ns) + across_ns
    share = (awake_ns - timed_ns) / timed_ns
    if share <= SOME_STARTING:
        return None
    severity = error if share > MOST_STARTING else warning
    return severity(
        f"It was started {starts} times: it was awake for {100 * share:.0f} % longer than it was observed, and its "
        "neighbours had more of the machine in that time.",
        "Give it more epochs, so that --again starts it less often.",
        value=share,
        effect=share,
    )


@record_rule
def not_held(record: Record) -> Finding | None:
    """A tenant that was not held still in time: in such blocks no tenant was alone, and none of their data is kept."""
    if record.blocks is None or not record.blocks.unheld:
        return None
    return warning(
        f"It was not held still within 2 s at {record.blocks.unheld} of {record.blocks.passed} borders: the blocks "
        "after them are not kept.",
        "A process that waits inside a driver or for a slow disk cannot be held; --baseline whole does without.",
        value=float(record.blocks.unheld),
        effect=0.0,
    )
