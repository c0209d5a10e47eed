"""Makes the launches that find a machine's capacity: suite runs of one job with various numbers of users."""

from __future__ import annotations

import itertools
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import msgspec

from cotenant.decoding import Nanoseconds
from cotenant.errors import CotenantError
from cotenant.launch.design.designs import InCrowds, Searcher
from cotenant.launch.heading import callers_part, tenancy
from cotenant.launch.needs import check_memory
from cotenant.launch.prepared import PreparedSuite
from cotenant.launch.start import Options
from cotenant.launch.suite import SuiteRun
from cotenant.machine.topology import Machine
from cotenant.results.record import Record
from cotenant.stats.capacity import AloneUse, CrowdUse, Requirement, Values
from cotenant.stats.crowd_search import LEAST_ROUNDS, MOST_ROUNDS, CrowdSearch, SteadyCrowd
from cotenant.stats.quantiles import quantile
from cotenant.suite.cells import expand
from cotenant.suite.mixes import JOINED, Mix
from cotenant.suite.pressure import FULL, neighbours

ALONE_S = 5.0
"""Seconds for which a user alone is measured."""
P95 = 0.95
NO_MEMORY = ("out_of_memory", "host_out_of_memory", "device_out_of_memory")


class SuiteLaunches:
    """Launches users of the one job of `options`, on the number of slices there; each kind of launch has its own
    directory.

    The number of users is a multiple of `step`, so that slices have equally many. `tell` gets the progress.
    """

    def __init__(
        self, options: Options, machine: Machine, requirement: Requirement, tell: Callable[[str], None]
    ) -> None:
        """Check the job. Raises CotenantError if it cannot be started here, has several cells or owns the machine."""
        self.step, self.mode = options.slices or 1, options.share
        self._options, self._machine, self._requirement, self.tell = options, machine, requirement, tell
        self._uids: dict[str, Iterator[int]] = defaultdict(itertools.count)
        self._suite = PreparedSuite(self._of_users(self.step), machine)
        launch, *others = self._suite.starts
        (job,) = options.jobs
        if others or len(expand(job)) > 1:
            raise CotenantError(f"{job.name} has several cells.", "Choose a job of one cell by --name.")
        if job.group != "student":
            raise CotenantError(f"{job.name} owns the machine.", 'Choose a job of the group "student".')
        self.label = launch.label
        self.tenancy = "\n".join([tenancy(self._suite), *callers_part(self._suite)])

    def holds_memory(self) -> bool:
        """Return whether slices limit memory here."""
        return "memory" not in self._suite.backend.unenforced

    def holds(self, users: int, alone: AloneUse) -> int | None:
        """Return the bytes of memory that each of `users` users has, or None if that is too little."""
        options = self._of_users(users)
        try:
            made = options.plan(self._machine)
            check_memory(options, self._machine, self._suite.backend, self._suite.starts)
        except CotenantError:
            return None
        least = min(slice_.memory_bytes for slice_ in made.slices)
        device_bytes = made.device_share_bytes
        if alone.device_bytes is not None and device_bytes is not None and device_bytes < alone.device_bytes:
            return None
        return least if alone.peak_bytes is None or alone.peak_bytes <= least else None

    def alone(self) -> AloneUse | str:
        """Launch a user in each slice; return its rate and its use of the machine, or why they are unknown."""
        self.tell("one user alone" if self.step == 1 else "one user in each slice")
        records = self._launch(self._of_users(self.step), "alone", ALONE_S)
        if flaw := flaw_of(records):
            return flaw
        first, counters = records[0], [record.isolation.counters for record in records]
        plan = self._of_users(self.step).plan(self._machine)
        return AloneUse(
            rate=fmean(record.statistics.median for record in records if record.statistics is not None),
            unit=first.unit,
            busy=_busy(first),
            processors=len({processor for part in plan.parts for processor in part}),
            peak_bytes=_most([needed_bytes(counts) for counts in counters]),
            processes=_most([counts.get("pids_peak") for counts in counters]),
            device_bytes=_most([(entry.meters.get("device_memory") or {}).get("reserved_bytes") for entry in records]),
            audited=all(record.audited for record in records),
        )

    def crowd(self, users: int, crowd: Searcher, budget_s: float, pressure: str = "") -> CrowdUse:
        """Launch this many users; in each round as many run at once as the crowd says. With a `pressure` the last one
        is a neighbour of ours that takes all it can of a resource."""
        if self._requirement.kind == "p95":
            return self._by_steps(crowd, budget_s, pressure)
        folder = "search" if isinstance(crowd, CrowdSearch) else f"users-{users}"
        return _use_of(self._launch_crowd(users, crowd, budget_s, pressure, folder), users)

    def _by_steps(self, crowd: Searcher, budget_s: float, pressure: str) -> CrowdUse:
        """Make a separate launch for each number of users of the crowd: the times of steps come only with records."""
        until_s = time.monotonic() + budget_s
        while (users := crowd.next_users()) is not None:
            steady = SteadyCrowd(users, LEAST_ROUNDS if isinstance(crowd, CrowdSearch) else MOST_ROUNDS)
            records = self._launch_crowd(users, steady, budget_s, pressure, f"users-{users}")
            use = _use_of(records, users)
            if use.flaw or use.out_of_memory:
                return use
            rounds = p95_rounds([record for record in records if record.tenants == users][: users - bool(pressure)])
            if not rounds:
                return CrowdUse(
                    f"{self.label} does not time single steps: --p95 is for jobs that serve, such as decode."
                )
            for values in rounds:
                crowd.take(users, values)
            if isinstance(crowd, SteadyCrowd) or time.monotonic() > until_s:
                break
        return use

    def _launch_crowd(self, users: int, crowd: Searcher, budget_s: float, pressure: str, folder: str) -> list[Record]:
        design = InCrowds(crowd, self.step, of_rates=self._requirement.kind == "rate")
        options = replace(self._of_users(users), crowd=design)
        if pressure:
            folder, options = f"beside-{pressure}", self._beside(options, users, pressure)
        return self._launch(options, folder, budget_s)

    def _of_users(self, users: int) -> Options:
        return replace(self._options, users=users, slices=self.step)

    def _beside(self, options: Options, users: int, pressure: str) -> Options:
        (neighbour,) = neighbours(f"{pressure}:{FULL}")
        mix = Mix(f"{self.label}{JOINED}{pressure}", (self.label,) * (users - 1) + (neighbour.name,))
        return replace(options, jobs=(), mixes=(mix,), neighbours=(neighbour,))

    def _launch(self, options: Options, folder: str, budget_s: float) -> list[Record]:
        """Return the records of one launch. Raises KeyboardInterrupt if a signal ends it, CotenantError."""
        limits = replace(options.limits, budget_s=budget_s, at_least_s=0.0)
        paths = replace(options.paths, output=options.paths.output / folder)
        options = replace(options, limits=limits, paths=paths, uid=next(self._uids[folder]))
        suite = PreparedSuite(options, self._machine)
        suite.settle()
        result = SuiteRun(suite, self.tell).run()
        if result.interrupted:
            raise KeyboardInterrupt(result.interrupted)
        return result.records


def _use_of(records: Sequence[Record], users: int) -> CrowdUse:
    """Return the result of a launch of this many users; its other records are of rounds with fewer."""
    if any(record.outcome in NO_MEMORY for record in records):
        return CrowdUse(out_of_memory=True)
    crowd = [record for record in records if record.tenants == users]
    spent = [record.blocks.spent.get("all") for record in crowd if record.blocks is not None]
    busy = [part.processor_ns / part.lasted_ns for part in spent if part is not None and part.lasted_ns]
    return CrowdUse(flaw_of(records), busy=sum(busy) if busy else None)


def flaw_of(records: Sequence[Record]) -> str:
    """Return why the numbers of a launch do not count; "" if they do."""
    for record in records:
        if not record.completed:
            return f"{record.name}: {record.outcome}: {record.message}"
        if record.invalid:
            finding = next(finding for finding in record.findings if finding.severity == "error")
            return f"{record.name} is INVALID: {finding.sentence} {finding.remedy}"
    return "" if records else "Nothing was launched."


def _busy(record: Record) -> float | None:
    """Return the mean number of processors that a launch of one tenant kept busy from GO to its last observation."""
    used, met = record.isolation.counters.get("processor_ns"), record.rendezvous
    if used is None or met is None or met.load_end_ns <= met.t0_ns:
        return None
    return float(used / (met.load_end_ns - met.t0_ns))


def needed_bytes(counters: Mapping[str, Any]) -> int | None:
    """Return the peak of a slice's memory without the page cache at the end, which the kernel gives back when asked."""
    peak_bytes = counters.get("memory_peak_bytes")
    return None if peak_bytes is None else peak_bytes - min(peak_bytes, counters.get("memory_cache_bytes") or 0)


def _most(values: Sequence[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def p95_rounds(records: Sequence[Record]) -> list[Values]:
    """Return the value of each user in each round in which all users of the launch ran beside each other: the
    logarithm of 1 / p95 of its steps in seconds. A user that timed none of its steps has no value."""
    of_rounds: dict[int, dict[int, float]] = defaultdict(dict)
    for record in records:
        for number, times_ns in _steps_ns(record).items():
            of_rounds[number][record.tenant] = -math.log(quantile(times_ns, P95).value / 1e9)
    return [of_rounds[number] for number in sorted(of_rounds)]


def _steps_ns(record: Record) -> dict[int, list[int]]:
    """Return the times of a user's steps beside the others, in ns, by round."""
    try:
        rows = msgspec.convert(record.observed.get("steps_ns"), list[list[Nanoseconds]])
    except msgspec.ValidationError:
        return {}
    steps: dict[int, list[int]] = defaultdict(list)
    if len(rows) == len(record.observations):
        for made, times_ns in zip(record.observations, rows, strict=True):
            if made.kept and made.kind == "all" and made.round is not None:
                steps[made.round] += times_ns
    return {number: times_ns for number, times_ns in steps.items() if times_ns}
