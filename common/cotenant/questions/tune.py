"""Launches a job at one batch size after another, each as a run of a suite, and makes the entry of a new job file.

Each launch is a repetition in the journal of the search's directory: a search that is started again repeats none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from cotenant.errors import CotenantError
from cotenant.launch.command import BATCH_FLAGS, number_behind
from cotenant.launch.crowd_launches import flaw_of
from cotenant.launch.heading import tenancy
from cotenant.launch.prepared import PreparedSuite
from cotenant.launch.resume import repetitions_begun
from cotenant.launch.start import Options
from cotenant.launch.suite import SuiteRun
from cotenant.machine.topology import Machine
from cotenant.questions.sizes import Search, Trial
from cotenant.results.record import Record
from cotenant.suite.cells import Job, JobCell, expand
from cotenant.suite.variables import Value

TOO_LARGE = frozenset({"out_of_memory", "host_out_of_memory", "device_out_of_memory", "timeout"})
"""Outcomes of a batch that does not fit."""


class Tuner:
    """Searches the batch size of one job in its own directory, `options.paths.output`, on the slices of `options`.

    `tenancy` is the slices in words, `unit` the unit of the rates, `ended` the reason why the search has ended.
    """

    def __init__(self, options: Options, machine: Machine, job: Job) -> None:
        """Raises CotenantError for a job that cannot be started here, or names no batch size."""
        self._options, self._machine = replace(options, jobs=(job,), mixes=()), machine
        suite = PreparedSuite(self._options, machine)
        launch, *others = suite.starts
        size = number_behind(launch.specs[0].command, *BATCH_FLAGS)
        if others or len(expand(job)) > 1:
            raise CotenantError(
                f"{job.name} has several cells.", "Tune a job file in which each cell is a job of its own."
            )
        if not size:
            raise CotenantError(f"{job.name} names no batch size.", f"Add {BATCH_FLAGS[0]} to its arguments.")
        self._base, self._command, self.tenancy = launch.cell, launch.command, tenancy(suite)
        self.search, self.unit, self.ended = Search(size), "", ""

    def trials(self, end_s: float, tell: Callable[[str], None]) -> Iterator[Trial]:
        """Launch and yield trials until all sizes are tried, a signal interrupts, or the monotonic clock is at `end_s`.

        `tell` gets warnings. Raises CotenantError if the first launch fails other than by its size, or the job ignores
        its batch size.
        """
        for uid, size in enumerate(self.search.sizes()):
            if time.monotonic() >= end_s:
                self.ended = "budget"
                return
            records, interrupted = self._launched(uid, size, tell)
            if interrupted or not records:
                self.ended = "interrupted"
                return
            self.search.take(self._trial(size, records))
            yield self.search.trials[-1]
        self.ended = "complete"

    def _launched(self, uid: int, size: int, tell: Callable[[str], None]) -> tuple[list[Record], str | None]:
        """Return a launch's records, and the signal that interrupted it; a launch that has ended is not repeated."""
        options = replace(self._options, jobs=(with_size(self._base, size, self.search.own),), uid=uid)
        options = replace(options, resume=repetitions_begun(options, self._machine.hostname) > 0)
        suite = PreparedSuite(options, self._machine)
        suite.settle()
        result = SuiteRun(suite, tell).run()
        return result.records, result.interrupted

    def _trial(self, size: int, records: Sequence[Record]) -> Trial:
        flaw, fits = flaw_of(records), not any(record.outcome in TOO_LARGE for record in records)
        if not self.search.trials and flaw and fits:
            raise CotenantError(f"It has no rate as it is: {flaw}", "Repair that first: --dry and doctor say more.")
        if unheeded := {*BATCH_FLAGS}.intersection(records[0].ignored):
            raise CotenantError(f"{min(unheeded)} does nothing in it.")
        self.unit = self.unit or records[0].unit
        medians = [record.statistics.median for record in records if record.statistics is not None]
        return Trial(size, None, flaw, fits) if flaw else Trial(size, sum(medians))

    def entry(self) -> dict[str, Any]:
        """Return the entry of the new job file: the job at its best size, and the search for that."""
        job, gain = with_size(self._base, self.search.best, self.search.own), self.search.gain
        optional = {"weight": job.weight, "timeout": job.timeout_s, "env": dict(job.env)}
        return {
            "name": job.name,
            "cmd": str(self._command),
            "cgroup": job.group,
            "args": {flag: value for flag, (value,) in job.args},
            **{key: value for key, value in optional.items() if value not in (1, None, {})},
            "tuned": {
                "jobs": self._options.suite.name,
                "machine": self._machine.hostname,
                "tenants": self.tenancy,
                "ended": self.ended,
                "unit": f"{self.unit}/s",
                "gain": gain and gain._asdict(),
                "launches": [trial._asdict() for trial in self.search.trials],
            },
        }


def with_size(cell: JobCell, size: int, own_size: int) -> Job:
    """Return the job of a cell with this batch size in the place of `own_size`, named after it.

    An observation holds about as many items as before: `--number` shrinks as the batch grows.
    """
    args: dict[str, Value] = dict(cell.args)
    args[next((name for name in BATCH_FLAGS if name in args), BATCH_FLAGS[0])] = size
    if isinstance(number := args.get("--number"), int):
        args["--number"] = max(1, round(number * own_size / size))
    named = tuple((flag, (value,)) for flag, value in args.items())
    return replace(cell.job, args=named, stem=f"{cell.label}.b{size}")
