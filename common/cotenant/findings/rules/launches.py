"""Rules that need several records: of the tenants of one launch, and of the launches before it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Any

from cotenant.finding import Finding, error, warning
from cotenant.findings import launch_rule, record_rule
from cotenant.findings.rules.timing import kept_observations, work_learned
from cotenant.results.identity import NOT_WORK
from cotenant.results.record import Record
from cotenant.text import listed

EQUAL_ARGUMENTS = ("batch_size", "precision", "number")
LEAST_RATE = 0.9
EQUAL_RATE, KNOWN_EQUAL = 0.002, 0.02
OTHER_ITEMS = 1.5
"""Observations of batches with varying items, as of sentences, differ in their items by less than this factor."""
LEAST_EFFICIENCY, MOST_EFFICIENCY = 0.5, 1.04
"""More than 1 is impossible; the ratio of two rates that scatter by 1 % exceeds 1.04 three times in a thousand."""


@record_rule
def shared_nodes(record: Record) -> Finding | None:
    """Nodes that are one machine: they serve for a trial of the procedure, not of the speed."""
    shared = [str(node["node"]) for node in record.meters.get("nodes", ()) if node.get("shared")]
    if not shared:
        return None
    return warning(
        f"This is a shared rate: node {listed(shared)} and node 0 are one machine, whose processors they compete for.",
        "Give each node a machine of its own.",
    )


@record_rule
def scaling(record: Record) -> Finding | None:
    """Several devices as fast as more single ones, or as less than half as many: one of the rates is wrong."""
    worth = record.meters.get("scaling")
    return None if worth is None else of_efficiency(worth["devices"], worth["efficiency"])


def of_efficiency(devices: int, efficiency: float, interval: tuple[float, float] | None = None) -> Finding | None:
    """Return a finding about an efficiency over `devices` devices, of one launch, or of many by its interval."""
    low, high = interval or (efficiency, efficiency)
    if low <= MOST_EFFICIENCY and high >= LEAST_EFFICIENCY:
        return None
    if efficiency < LEAST_EFFICIENCY:
        remedy = "Check that every rank has a device and processors of its own, and how the devices are linked."
    else:
        remedy = "Run one device again, with nothing else on the machine, and compare the items that both counted."
    return warning(
        f"{devices} devices ran {devices * efficiency:.2f} times as fast as one: an efficiency of {efficiency:.2f}.",
        remedy,
        rule="scaling",
        value=efficiency,
        effect=abs(1 - efficiency),
    )


@launch_rule
def different_work(launch: Sequence[Record], earlier: Sequence[Record]) -> dict[int, Finding]:
    """Tenants of one launch that did different work: their rates have no sum and no fairness."""
    measured = [place for place, record in enumerate(launch) if record.statistics is not None]
    works = [_equal_in_a_launch(launch[place]) for place in measured]
    for name in works[0] if works else ():
        values = list(dict.fromkeys(work[name] for work in works))
        if len(values) > 1:
            finding = error(
                f"The users of this launch did different work: {name} {listed(values)}.",
                "Let every user do what the job's arguments say; only --seed differs between them.",
            )
            return dict.fromkeys(measured, finding)
    return {}


def _equal_in_a_launch(record: Record) -> dict[str, Any]:
    """Return the values that have to be equal, as text; paths are left out, as a tenant may be given its own."""
    arguments = {name: str(record.arguments.get(name)) for name in EQUAL_ARGUMENTS}
    return {"source": record.version, "unit": record.unit} | arguments


@launch_rule
def different_items(launch: Sequence[Record], earlier: Sequence[Record]) -> dict[int, Finding]:
    """Tenants of equal work that count other items in an observation: one of them counts work that it did not do."""
    counts = {
        place: [row.items for row in kept_observations(record) if row.items]
        for place, record in enumerate(launch)
        if record.statistics is not None
    }
    ids = {launch[place].unique_id for place in counts}
    if len(ids) != 1:
        return {}
    least, most = (pick(counts, key=lambda place: median(counts[place])) for pick in (min, max))
    constant = all(min(counts[place]) == max(counts[place]) for place in (least, most))
    if max(counts[least]) * (1 if constant else OTHER_ITEMS) >= min(counts[most]):
        return {}
    finding = error(
        f"Users {launch[least].tenant} and {launch[most].tenant} did equal work, and counted "
        f"{median(counts[least]):g} and {median(counts[most]):g} items in an observation.",
        "Count in `items` what a step trains on; only --seed differs between users.",
    )
    return dict.fromkeys(counts, finding)


@launch_rule
def same_seed(launch: Sequence[Record], earlier: Sequence[Record]) -> dict[int, Finding]:
    """Tenants with one seed: they did the very same work, but neighbours should only do similar work."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, record in enumerate(launch):
        if isinstance(seed := record.arguments.get("seed"), int):
            places[seed].append(place)
    findings: dict[int, Finding] = {}
    for seed, equal in places.items():
        if len(equal) > 1:
            finding = warning(
                f"Users {listed(launch[place].tenant for place in equal)} ran with one seed ({seed}): they read the "
                "same data in the same order.",
                "Let the benchmark take --seed: every user is given its own.",
            )
            findings |= dict.fromkeys(equal, finding)
    return findings


@launch_rule
def slow_user(launch: Sequence[Record], earlier: Sequence[Record]) -> dict[int, Finding]:
    """A tenant that got clearly less than its neighbours, which do equal work, in the same launch."""
    numbers = [record.statistics for record in launch if record.statistics is not None and not record.invalid]
    if len(numbers) < len(launch) or len(launch) < 2 or any(map(work_learned, launch)):
        return {}
    slow, fast = (pick(range(len(launch)), key=lambda place: numbers[place].median) for pick in (min, max))
    worst, best = numbers[slow], numbers[fast]
    # The intervals have to be that far apart: medians of few or scattered observations differ by chance.
    if worst.interval is None or best.interval is None or worst.interval[1] >= LEAST_RATE * best.interval[0]:
        return {}
    ratio = worst.median / best.median
    finding = warning(
        f"User {launch[slow].tenant} ran at {ratio:.3f} times the rate of user {launch[fast].tenant}.",
        "Compare their slices, clocks and counters in the records: `plan` shows each user's slice.",
        value=ratio,
        effect=1 - ratio,
    )
    return {slow: finding}


@launch_rule
def no_speed_up(launch: Sequence[Record], earlier: Sequence[Record]) -> dict[int, Finding]:
    """Another precision at the very same rate: one of the two may have run in the other's precision."""
    return {
        place: finding
        for place, record in enumerate(launch)
        for other in earlier
        if (finding := _compared(record, other)) is not None
    }


def _compared(record: Record, other: Record) -> Finding | None:
    # A late import, as it brings numpy, which a suite does not need until something was measured.
    from cotenant.stats.interference import interval_of_quotient

    mine, before = record.arguments.get("precision"), other.arguments.get("precision")
    if mine is None or before is None or mine == before or record.statistics is None or other.statistics is None:
        return None
    mine_ends, others_ends = record.statistics.interval, other.statistics.interval
    if mine_ends is None or others_ends is None:
        return None
    ratio = record.statistics.median / other.statistics.median
    # Two rates that are known to a few per cent are the same by chance.
    low, high = interval_of_quotient(record.statistics.median, mine_ends, other.statistics.median, others_ends)
    if (
        max(1 - low, high - 1) > KNOWN_EQUAL
        or abs(ratio - 1) > EQUAL_RATE
        or _but_precision(record) != _but_precision(other)
    ):
        return None
    return warning(
        f"In {mine} it ran at {ratio:.4f} times the rate of {other.name} in {before}.",
        "See in both records which dtype was observed, and what the step spends its time on.",
        rule="no_speed_up",
        value=ratio,
    )


def _but_precision(record: Record) -> str:
    """Return all that is equal in two records of one work, their precision aside."""
    arguments = {name: value for name, value in record.arguments.items() if name not in {*NOT_WORK, "precision"}}
    work = [record.suite, record.hostname, record.group, record.tenant, record.tenants, record.neighbours]
    work += [record.version, arguments]
    return json.dumps(work, sort_keys=True, default=str)
