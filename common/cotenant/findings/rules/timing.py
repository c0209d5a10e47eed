"""The times of observations, and whether their rate is one rate: beside all tenants, steadily, by one clock."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import fields
from itertools import pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING

from cotenant.finding import Finding, error, info, warning
from cotenant.findings import record_rule
from cotenant.findings.rules.host import kept_busy
from cotenant.results.decoded import list_of, mapping_of
from cotenant.results.record import Observed, Record, counted, counts
from cotenant.stats.tenants import WorkBeside
from cotenant.text import listed

if TYPE_CHECKING:
    from cotenant.stats.steadiness import Drift

LEAST_OVERLAP = 0.99
RESTS, EASES = 0.25, 0.6
"""Shares of a tenant's own work: a tenant that does less than the first beside others rests. Between the two, other
work may have had the processors: on a busy machine, honest tenants were seen at 0.61, and at 0.39 over half a
second."""
LEAST_WORK, LEAST_BESIDE_S, MOST_IDLE = 0.05, 0.5, 0.02
"""Processors, seconds and a share of time: with less, a rest cannot be told from chance."""
MOST_STARVED, LEAST_STARVED_S = 0.1, 1.0
"""A share of time and seconds: with less, a rest cannot be told from starvation by a machine that others keep busy. An
honest tenant was seen at 0.07 over 0.55 s."""
LATE_S = 1.0
"""From the end of an observation to its message a tenant takes milliseconds."""
GAP_NS = 2_000_000
"""A benchmark's harness takes about a millisecond between two observations."""
ASKS_IN_GAP = 3
"""Times that it waits for the device there: to look at a batch, to read losses, and before the next clock read."""
RARE_GAPS = 0.25
"""The share of the gaps, the longest ones, in which the machine may have done something else."""
SOME_UNTIMED, MOST_UNTIMED, MOST_WITH_RARE = 0.05, 0.2, 0.5
"""Parts of the observations' time."""
LEAST_WITH_RARE_NS = 250_000_000
"""On a busy host the scheduler makes a few gaps of 50 ms: more than half the time of observations of 10 ms."""
MOST_CLOCK_DIFFERENCE = 0.01
TIME_SLICE_NS = 2_000_000
"""The default time for which an NVIDIA device works for one of its processes before it turns to the next."""
LEAST_LEAD = 0.1
"""Part of a batch: a host that is ahead of its device leads by at least this when it issues the last batch."""
LEAST_SLOW_START = 1.02
MOST_DRIFT, UNLIKELY = 0.01, 0.01
MANY_OUTLIERS = 0.1
MOST_PAUSED = 0.1
MOST_WIDTH = 0.5
"""The width of an interval, relative to its median."""


def kept_observations(record: Record) -> list[Observed]:
    """Return the observations behind the record's statistics; none if it has no statistics."""
    return counted(record.observations, record.skip) if record.statistics is not None else []


def work_learned(record: Record) -> bool:
    """Return whether a step's work follows what a tenant has learned: the rate changes with that, and with the seed."""
    return record.observed.get("work_learned") is True


def seconds_per_item(record: Record) -> tuple[list[float], list[float]]:
    """Return the seconds an item took in each kept observation, and the waiting part of these."""
    times, waits = [], []
    for observation in kept_observations(record):
        assert observation.items  # statistics are only of these
        times.append(observation.took_ns / observation.items / 1e9)
        waits.append(observation.data_wait_ns / observation.items / 1e9)
    return times, waits


def moved_by(times: Sequence[float], indices: Collection[int]) -> float | None:
    """Return the distance of the median of these times from the median without some `indices`, relative to the latter.

    None if these are all times.
    """
    rest = [time for index, time in enumerate(times) if index not in indices]
    return abs(median(times) / median(rest) - 1) if rest else None


def audits_after(record: Record) -> dict[int, int]:
    """Return the nanoseconds of audits between two observations, by the number of observations before them."""
    audit = mapping_of(record.observed.get("audit"))
    pairs = zip(list_of(audit.get("after")), list_of(audit.get("cost_ns")), strict=False)
    costs: dict[int, int] = {}
    for after, cost_ns in pairs:
        if isinstance(after, int) and isinstance(cost_ns, int) and 0 < after < len(record.observations):
            costs[after] = costs.get(after, 0) + max(0, cost_ns)
    return costs


@record_rule
def neighbour_lost(record: Record) -> Finding | None:
    """A tenant whose neighbour was lost after GO was measured on an emptying machine."""
    if record.comparable or not record.completed:
        return None
    return error(
        "Another user of this launch did not finish, so this rate was not measured beside all of them.",
        "Repair the failed user (its record names the reason) and run the job again.",
    )


@record_rule
def overlap(record: Record) -> Finding | None:
    """Observations outside the common load were not made beside all tenants."""
    if record.rendezvous is None or record.rendezvous.overlap >= LEAST_OVERLAP:
        return None
    # Round down: 98.996 % must not read as the 99 % that would do.
    percent = math.floor(10_000 * record.rendezvous.overlap) / 100
    return error(
        f"Only {percent:.2f} % of the observed time lies inside the load common to all users.",
        "Make observations longer (--number), or keep other work off the machine.",
        value=record.rendezvous.overlap,
        effect=1 - record.rendezvous.overlap,
    )


@record_rule
def idle_load(record: Record) -> Finding | None:
    """Tenants that rested while others were observed, though they claimed to go on: the others lacked neighbours."""
    # On a busy machine, a rest is told from starvation by its depth and length alone.
    is_busy = kept_busy(record)
    most_work, most_idle = (RESTS, MOST_STARVED) if is_busy else (EASES, MOST_IDLE)
    least_s = LEAST_STARVED_S if is_busy else LEAST_BESIDE_S
    idle = {
        seen["tenant"]: work
        for seen in record.meters.get("beside", ())
        for work in [WorkBeside(*(seen[field.name] for field in fields(WorkBeside)))]
        if work.own >= LEAST_WORK
        and work.beside < most_work * work.own
        and work.beside_s >= least_s
        and work.idle_share > most_idle
    }
    if not idle:
        return None
    worst = max(idle.values(), key=lambda work: work.idle_share)
    one = len(idle) == 1
    severity = error if any(work.beside < RESTS * work.own for work in idle.values()) else warning
    return severity(
        f"{'User' if one else 'Users'} {listed(idle)} used {worst.beside:.2f} processors while others were "
        f"observed, and {worst.own:.2f} in {'its' if one else 'their'} own observations: "
        f"{100 * worst.idle_share:.0f} % of the others' time passed without {'it' if one else 'them'}.",
        "Go on with the same steps from t0 until STOP, also in skipped observations and after the last one.",
        value=worst.beside / worst.own,
        effect=worst.idle_share,
    )


@record_rule
def impossible_observation(record: Record) -> Finding | None:
    """Observations without a possible rate: a wrong number must not look like a number."""
    if not record.completed or not record.observations or record.statistics is not None:
        return None
    total = len(record.observations)
    flags = counts(record.observations, record.skip)
    wrong = [index for index in range(total) if flags[index] and not record.observations[index].possible]
    if not wrong and record.blocks is not None:
        return error(
            f"None of {total} observations is kept: none lies within a block.",
            "Make observations shorter (--number), or use --baseline whole.",
        )
    if not wrong:
        return error(
            f"None of {total} observations is kept: the first {record.skip} are skipped.",
            "Give a --skip smaller than --repeat.",
        )
    first = record.observations[wrong[0]]
    return error(
        f"Observation {wrong[0]} counts {first.items or 'no'} items in {first.took_ns} ns; "
        f"{len(wrong)} of {sum(flags)} kept ones are like this, so there is no rate.",
        "Count items above zero, and time both ends of an observation by one monotonic clock.",
    )


@record_rule
def untimed(record: Record) -> Finding | None:
    """Time between observations that no clock measured: work may have been moved there, to the neighbours' relief."""
    observations = kept_observations(record)
    audits, usual_ns = audits_after(record), _usual_gap_ns(record)
    flags, pairs = counts(record.observations, record.skip), pairwise(record.observations)
    gaps_ns = sorted(
        max(0, later.start_ns - earlier.end_ns - audits.get(after, 0) - usual_ns)
        for after, (earlier, later) in enumerate(pairs, 1)
        if flags[after - 1] and flags[after] and earlier.block == later.block
    )
    timed_ns = sum(row.took_ns for row in observations)
    usual = gaps_ns[: math.ceil(len(gaps_ns) * (1 - RARE_GAPS))]
    # By a program's own stamps no time may have passed. (Between two blocks a tenant may have rested.)
    if not gaps_ns or timed_ns <= 0:
        return None
    share, of_usual = sum(gaps_ns) / timed_ns, fmean(usual) * len(gaps_ns) / timed_ns
    if share <= MOST_UNTIMED and of_usual <= SOME_UNTIMED:
        return None
    with_rare = share > MOST_WITH_RARE and sum(gaps_ns) > LEAST_WITH_RARE_NS
    severity = error if of_usual > MOST_UNTIMED or with_rare else warning
    return severity(
        f"The pauses between kept observations, audits and the harness not counted, add {100 * share:.0f} % to their "
        "time: no clock measured them.",
        "Make observations longer (--number), and do nothing between them that belongs to a step.",
        value=share,
        effect=share,
    )


def _usual_gap_ns(record: Record) -> int:
    """Return the harness's time between two observations, with the others' turns if a device is shared by turns."""
    share = record.share
    turns = 0 if share is None or share.seen != "time" else ASKS_IN_GAP * (share.sharers - 1)
    return GAP_NS * record.sharers + turns * TIME_SLICE_NS


@record_rule
def late_observations(record: Record) -> Finding | None:
    """Observations that ended, by the tenant's report, long before it sent them: their making was not witnessed."""
    observations = kept_observations(record)
    if record.rendezvous is None or not observations:
        return None
    usual_s, late_s = median(row.took_ns for row in observations) / 1e9, record.rendezvous.late_ns / 1e9
    if late_s <= max(LATE_S, usual_s):
        return None
    return error(
        f"An observation had not been sent {late_s:.1f} s after its end, by the runner's clock: it may be invented.",
        "Send each observation as soon as its clock has stopped.",
    )


@record_rule
def impossible_wait(record: Record) -> Finding | None:
    """A wait for data that is negative, or longer than its observation."""
    for row in kept_observations(record):
        if not 0 <= row.data_wait_ns <= row.took_ns:
            return error(
                f"An observation of {row.took_ns / 1e6:.4g} ms waited {row.data_wait_ns / 1e6:.4g} ms for data.",
                "Sum up only the waits inside the observation, by the clock that times it.",
            )
    return None


@record_rule
def clocks(record: Record) -> Finding | None:
    """The device's own clock against the host's over the same observations."""
    observations = [row for row in kept_observations(record) if row.event_ns is not None]
    host_ns = sum(row.took_ns for row in observations)
    event_ns = sum(row.event_ns or 0 for row in observations)
    # The opening event waits until the other processes of a shared device have had their turns.
    others = math.ceil(record.tenants / max(1, len(record.machine.get("accelerators") or ()))) - 1
    allowed_ns = MOST_CLOCK_DIFFERENCE * host_ns + max(0, others) * TIME_SLICE_NS * len(observations)
    if not host_ns or abs(event_ns - host_ns) <= allowed_ns:
        return None
    return warning(
        f"Device events differ from the host clock by {100 * (event_ns / host_ns - 1):+.1f} %.",
        "Make observations longer (--number): the costs of launching and synchronising weigh in.",
        value=event_ns / host_ns - 1,
        effect=abs(event_ns / host_ns - 1),
    )


@record_rule
def host_bound(record: Record) -> Finding | None:
    """A host that cannot issue work as fast as its device does it: the rate is the host's."""
    rows = [row for row in kept_observations(record) if row.issued_ns is not None]
    number = record.given.number if record.given is not None else record.arguments.get("number")
    if not rows or not isinstance(number, int):
        return None
    lead_ns = sum(row.end_ns - (row.issued_ns or 0) for row in rows)
    batch_ns = sum(row.took_ns for row in rows) / max(1, number)
    if lead_ns >= LEAST_LEAD * batch_ns:
        return None
    return info(
        f"host-bound: the device was done {100 * lead_ns / batch_ns:.1f} % of a batch after the host had issued its "
        "last work, so this is the rate of the host.",
        "A larger batch, --compile=reduce-overhead, or more processors for the user show the device's own.",
    )


@record_rule
def few_observations(record: Record) -> Finding | None:
    """Too few observations for an interval; a single one does not show whether another would agree."""
    if record.statistics is None or record.statistics.interval is not None:
        return None
    n, cut = record.statistics.n, record.asked is not None and len(record.observations) < record.asked.repeat
    # It was requested to be short, and its tables say that it has no interval.
    asked = cut or record.baseline == "quick"
    severity = error if n == 1 else info if asked else warning
    longer = "--baseline whole" if record.baseline == "quick" else f"a larger {'--budget' if cut else '--repeat'}"
    return severity(
        f"Only {n} of {len(record.observations)} observations are kept, too few for an interval of their median.",
        f"Use {longer}: six kept observations are the least.",
        value=float(n),
    )


@record_rule
def slow_start(record: Record) -> Finding | None:
    """Warm-up counted in: the first kept observations are slower than all that follow."""
    # A late import, as it brings numpy, which a suite does not need until something was measured.
    from cotenant.stats import steadiness

    times, _ = seconds_per_item(record)
    first = steadiness.slow_start(times)
    slower = median(times[:first]) / median(times[first:]) if first else 1.0
    # If the rest goes on changing it is a drift, which another rule reports.
    if slower < LEAST_SLOW_START or _drifts(steadiness.drift(times[first:])):
        return None
    skip = record.observations.index(kept_observations(record)[first])
    return warning(
        f"The first {first} of {len(times)} kept observations took {100 * (slower - 1):.0f} % longer than the rest: "
        "warm-up is counted in.",
        f"Skip them: --skip {skip}.",
        value=float(skip),
        effect=moved_by(times, range(first)),
    )


@record_rule
def drift(record: Record) -> Finding | None:
    """A rate that rises or falls over a launch, skipped observations included: its median is of one moment."""
    from cotenant.stats import steadiness

    kept = kept_observations(record)
    skipped = [] if record.blocks is not None else [row for row in record.observations[: record.skip] if row.possible]
    rates = [(row.items or 0.0) / row.took_ns for row in (*skipped, *kept)]
    if len(kept) < 2:
        return None
    trend = steadiness.drift(steadiness.behind_warm_up(rates, len(skipped)))
    if not _drifts(trend):
        return None
    if work_learned(record):
        return info(
            f"The rate drifted by {100 * trend.change:+.1f} %, as the work of a step follows what was learned.",
            "Compare launches of equal seeds.",
            value=trend.change,
        )
    return warning(
        f"The rate drifted by {100 * trend.change:+.1f} % over the launch (Mann-Kendall p = {trend.p:.1g}).",
        "Skip more observations (--skip) if it settles later; else look at clocks, heat and memory over time.",
        value=trend.change,
        # No moment of a steady trend is farther from its middle.
        effect=abs(trend.change) / 2,
    )


@record_rule
def wide_interval(record: Record) -> Finding | None:
    """An interval wider than half the rate: the median is unreliable."""
    if record.statistics is None or record.statistics.interval is None:
        return None
    (low, high), middle = record.statistics.interval, record.statistics.median
    if high - low <= MOST_WIDTH * middle:
        return None
    return warning(
        f"The rate is hardly known: its interval is from {low / middle:.2f} to {high / middle:.2f} times the median.",
        "Make observations longer (--number) or more of them (--repeat); a rate that falls or rises has none.",
        value=(high - low) / middle,
    )


@record_rule
def outliers(record: Record) -> Finding | None:
    """Observations far off the others: flagged, never removed. A few of them hardly move the median; with many, as
    a neighbour in bursts makes them, the rate over the whole time differs from it."""
    from cotenant.stats import steadiness

    times, waits = seconds_per_item(record)
    if (paused := _paused(record)) is not None:
        return paused
    far = steadiness.spikes(times, waits).others
    if not far:
        return None
    middle = median(times)
    farthest = max((times[index] / middle for index in far), key=lambda ratio: abs(ratio - 1))
    said = (
        f"{len(far)} of {len(times)} kept observations stand far off (modified z > 14.8): "
        f"the farthest took {farthest:.2f} times the median time"
    )
    if record.sharers > 1:
        advice = "Make observations longer (--number): its neighbours use its processors by turns."
        return info(f"{said}.", advice, value=farthest)
    advice = "See what else ran at that moment: the observations' times are in the record."
    if len(far) <= MANY_OUTLIERS * len(times):
        return info(f"{said}.", advice, value=farthest)
    over_time = middle / fmean(times)
    return warning(
        f"{said}, and over the whole time the rate is {over_time:.3f} times the median.",
        advice,
        rule="bursts",
        value=over_time,
        effect=abs(1 - over_time),
    )


def _paused(record: Record) -> Finding | None:
    """Return the finding on a rate over the whole time below the median, as when each hundredth step saves."""
    if record.statistics is None:
        return None
    rate, blocks, rows, rest_s, alone = record.statistics.median, record.blocks, kept_observations(record), 0.0, 1.0
    if blocks is not None and blocks.residents is None and record.kept is not None and "rest" in blocks.spent:
        # A pause of seconds crosses borders, where nothing is kept; so does all time at rest.
        rows = [row for row in record.observations if row.possible]
        across_ns = sum(row.took_ns for row in rows if row.block is None)
        rest_s, alone = min(across_ns, blocks.spent["rest"].lasted_ns) / 1e9, record.kept.value
    took_s = [row.took_ns / 1e9 for row in rows]
    usual_s = [(row.items or 0.0) / rate * (alone if row.kind == "only" else 1.0) for row in rows]
    awake_s = sum(took_s) - rest_s
    over_time = sum(usual_s) / awake_s
    if 1 - over_time <= MOST_PAUSED:
        return None
    severity = info if record.sharers > 1 else warning
    return severity(
        f"Over the whole time it makes {rate * over_time:.4g} {record.unit or 'item'}/s, and {rate:.4g} by the median: "
        f"pauses or longer observations take {awake_s - sum(usual_s):.2g} of {awake_s:.2g} s.",
        "If it saves or validates meanwhile, the rate over the whole time is its own; else see what else ran.",
        rule="bursts",
        value=over_time,
        effect=1 - over_time,
    )


def _drifts(trend: Drift) -> bool:
    """Return whether a trend is neither chance nor too small to matter."""
    return trend.p < UNLIKELY and abs(trend.change) > MOST_DRIFT
