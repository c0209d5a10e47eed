"""What neighbours cost and what slices are worth: launches alone in a slice, together in slices, together without."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from cotenant.report.alone import NO_SLICES, Row, Side, alone, rows_of, sliced, together, unlike
from cotenant.report.summary import Job, Summary
from cotenant.results.identity import natural
from cotenant.stats.interference import Ratio, mean_ratio, ratio
from cotenant.stats.launches import AcrossLaunches, across_launches


@dataclass(frozen=True, slots=True)
class Line:
    """One job's node, or one tenant of it. What is None was not measured, or does not count.

    Rates are items per second: `alone` in the slice, `sliced` together in slices, `unsliced` together without;
    `unsliced_alone` is a tenant alone on the whole machine, and below no line of a ratio.
    """

    job: str
    tenant: str | None
    unit: str
    alone: AcrossLaunches | None
    sliced: AcrossLaunches | None
    unsliced: AcrossLaunches | None
    unsliced_alone: AcrossLaunches | None
    kept: Ratio | None
    """Together in slices over alone: 1 - it is the interference."""
    unsliced_kept: Ratio | None
    """Together without slices over alone in the slice."""
    worth: Ratio | None
    """Together in slices over together without."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mean:
    """The geometric mean of a ratio over the `jobs` that have it."""

    ratio: Ratio | None
    jobs: int


@dataclass(frozen=True, slots=True)
class Block:
    """One suite on one host: its lines, and over its `jobs` the means of the three ratios of nodes."""

    suite: str
    host: str
    lines: tuple[Line, ...]
    jobs: int
    kept: Mean
    unsliced_kept: Mean
    worth: Mean


def interference_blocks(summary: Summary) -> list[Block]:
    """Return a block per suite and host that has a job measured in two of the three ways."""
    groups: dict[tuple[str, str], dict[str, list[Job]]] = defaultdict(lambda: defaultdict(list))
    for job in summary.jobs:
        if job.group != "all":
            groups[job.suite, job.host][job.name].append(job)
    blocks = []
    solos: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows_of(summary.solos):
        solos[row["suite"], row["hostname"], row["job"]].append(row)
    for (suite, host), jobs in groups.items():
        found = [_lines(same, solos[suite, host, name]) for name, same in jobs.items()]
        lines = tuple(chain.from_iterable(found))
        if lines:
            blocks.append(_block(suite, host, lines))
    return blocks


def apart(summary: Summary) -> list[str]:
    """Say which jobs were measured with slices and without, but not in one suite on one host."""
    places: dict[str, dict[bool, set[tuple[str, str]]]] = defaultdict(lambda: {True: set(), False: set()})
    for job in summary.jobs:
        if job.group != "all" and job.isolation:
            places[job.name][sliced(job.isolation)].add((job.suite, job.host))
    return [
        f"{name}: in slices it ran as {_named(with_slices)}, without as {_named(without)}; those are never compared."
        for name, of in places.items()
        for with_slices, without in [(of[True], of[False])]
        if with_slices and without and not with_slices & without
    ]


def _named(places: set[tuple[str, str]]) -> str:
    return ", ".join(sorted(f"{suite or 'a suite'} on {host or 'an unnamed host'}" for suite, host in places))


def _block(suite: str, host: str, lines: tuple[Line, ...]) -> Block:
    nodes = [line for line in lines if line.tenant is None]
    means = []
    for name in ("kept", "unsliced_kept", "worth"):
        known = [found for line in nodes if (found := getattr(line, name)) is not None]
        means.append(Mean(mean_ratio(known), len(known)))
    return Block(suite, host, lines, len(nodes), *means)


def _lines(jobs: Sequence[Job], solos: Sequence[Row]) -> Iterator[Line]:
    """Yield the lines of the jobs of one name: with and without slices, paired where their work is equal."""
    without = [job for job in jobs if job.isolation == NO_SLICES]
    pairs: list[tuple[Job | None, Job | None, list[str]]] = []
    for job in jobs:
        if sliced(job.isolation):
            partner, notes = _partner(job, without)
            pairs.append((job, partner, notes))
            without = [one for one in without if one is not partner]
    pairs += [(None, job, [] if len(jobs) == 1 else ["nothing equal ran in slices"]) for job in without]
    for with_, without_, notes in pairs:
        if solos or (with_ is not None and without_ is not None):
            yield from _of_pair(with_, without_, solos, notes, one_of=len(pairs))


def _partner(job: Job, without: Sequence[Job]) -> tuple[Job | None, list[str]]:
    """Return the job that did the same without slices, and what there is to say where there is none."""
    mine = rows_of(job.members)
    reasons = {id(other): unlike([*mine, *rows_of(other.members)]) for other in without}
    # Of one that never finished nothing is known but its name.
    for one in sorted(without, key=lambda one: not one.members):
        if reasons[id(one)] is None:
            return one, []
    return None, [f"without slices: {reason}" for reason in dict.fromkeys(reasons.values())]


def _of_pair(
    with_: Job | None, without: Job | None, solos: Sequence[Row], notes: Sequence[str], one_of: int
) -> Iterator[Line]:
    jobs = [job for job in (with_, without) if job is not None]
    members = [row for job in jobs for row in rows_of(job.members)]
    lone, reason = alone([row for row in solos if sliced(row["isolation"])], members)
    unsliced_lone, _ = alone([row for row in solos if row["isolation"] == NO_SLICES], members)
    in_slices, loose = (_side(job) for job in (with_, without))
    said = [
        *notes,
        *([f"alone: {reason}"] if reason else []),
        *([f"in slices: {with_.verdict}"] if with_ is not None and not with_.rates else []),
        *([f"without slices: {without.verdict}"] if without is not None and not without.rates else []),
    ]
    sides = (lone, in_slices, loose, unsliced_lone)
    for who in (None, *sorted({who for side in sides for who in side.tenants}, key=natural)):
        rates = [side.node if who is None else side.tenants.get(who, {}) for side in sides]
        under, over, over_loose, unsliced_under = rates
        yield Line(
            job=jobs[0].label if one_of > 1 else jobs[0].name,
            tenant=who,
            unit=jobs[0].unit or jobs[-1].unit,
            alone=_across(under),
            sliced=_across(over),
            unsliced=_across(over_loose),
            unsliced_alone=_across(unsliced_under),
            kept=ratio(over, under),
            unsliced_kept=ratio(over_loose, under),
            worth=ratio(over, over_loose),
            notes=tuple(said) if who is None else (),
        )


def _side(job: Job | None) -> Side:
    return Side({}, {}) if job is None else together(rows_of(job.members), job.rates)


def _across(rates: dict[int, float]) -> AcrossLaunches | None:
    return across_launches(list(rates.values())) if rates else None
