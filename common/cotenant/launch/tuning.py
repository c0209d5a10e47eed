"""Launches the settings of one job: `tune` measures by suite runs, like every other command.

Each launch is a repetition in the journal of the search's directory, so that a search that is started again finds the
launches that have ended, and makes only new ones.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from statistics import median
from typing import Protocol

from cotenant.errors import CotenantError
from cotenant.launch.command import BATCH_FLAGS, WORKERS_FLAGS, number_behind
from cotenant.launch.data import named_inputs
from cotenant.launch.heading import tenancy
from cotenant.launch.observer import Observer
from cotenant.launch.paths import RunPaths
from cotenant.launch.prepared import PreparedSuite
from cotenant.launch.resume import earlier
from cotenant.launch.start import Options, Start
from cotenant.launch.suite import SuiteRun
from cotenant.machine.topology import Machine
from cotenant.results.record import Record
from cotenant.suite.cells import Job, JobCell, expand
from cotenant.suite.variables import Value
from cotenant.tuning.search import NO_EFFECT, Knob, Search, Space
from cotenant.tuning.trial import Setting, Trial

NUMBER = "--number"
BATCH, WORKERS, FORMAT, COMPILE = "batch-size", "workers", "channels-last", "compile"
KNOBS = (BATCH, WORKERS, FORMAT, COMPILE)
"""The settings that may be tuned, in this order; none of them changes the work of an item."""
OTHER_WORK, OTHER_ITEMS = "other_work", 0.1
"""The outcome of a trial whose rows hold more or fewer items than the job's own, and the relative difference for it."""
LONGEST_STEP_S = 3.0
"""Batch sizes with longer steps are not tried, as a launch makes some twelve steps."""
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")


class TuningObserver(Observer, Protocol):
    """An observer of a search, which hears of the launches and of their outcomes."""

    def settings(self, search: Search, unit: str) -> None:
        """Hear that the search has one more trial."""

    def tell(self, line: str) -> None:
        """Hear a warning."""


class Tuner:
    """Searches the settings of one job in its own directory, `options.paths.output`, on the slices of `options`.

    `base` is the job's own cell, `command` its program, `suite` the job file's name, `tenancy` the slices in words,
    `ended` the reason why the search has ended.
    """

    def __init__(self, options: Options, machine: Machine, job: Job, knobs: Sequence[str]) -> None:
        """Raises CotenantError for a job that cannot be started here, or names no batch size."""
        self._options = replace(options, jobs=(job,), mixes=())
        self._machine = machine
        suite = PreparedSuite(self._options, machine)
        start, *others = suite.starts
        size = number_behind(start.specs[0].command, *BATCH_FLAGS)
        if others or len(expand(job)) > 1:
            raise CotenantError(f"{job.name} has several cells.", "Tune a job file in which each is a job of its own.")
        if not size:
            raise CotenantError(f"{job.name} names no batch size.", f"Add {BATCH_FLAGS[0]} to its arguments.")
        self.base, self.command, self.tenancy = start.cell, start.command, tenancy(suite)
        space = Space(
            base=Setting(size),
            knobs=tuple(_knobs(knobs, start, options.paths)),
            sized=BATCH in knobs,
            tenants=len(start.specs),
            longest_step_s=LONGEST_STEP_S,
        )
        self.search = Search(space)
        self.suite, self.unit, self.ended, self.records = options.suite.name, "", "", list[Record]()

    @property
    def job(self) -> Job:
        """The job in the best setting."""
        return with_setting(self.base, self.search.best, self.search.space.base)

    def run(self, observer: TuningObserver, until_s: float) -> None:
        """Search until all is tried, an interruption, or launches have taken `until_s` seconds.

        Raises CotenantError if the job itself has no rate, for any reason other than memory.
        """
        try:
            self.ended = self._search(observer, until_s)
        except KeyboardInterrupt:  # Between two launches; within a launch its runner sees the signal.
            self.ended = "interrupted"

    def _search(self, observer: TuningObserver, until_s: float) -> str:
        """Launch setting after setting; return why the search ended."""
        spent_s = 0.0
        for uid, setting in enumerate(self.search.settings()):
            if spent_s >= until_s:
                return "budget"
            records, interrupted = self._launched(uid, setting, observer)
            if interrupted or not records:
                return "interrupted"
            self._take(setting, records)
            spent_s = sum(trial.seconds for trial in self.search.trials)
            observer.settings(self.search, self.unit)
        return "complete"

    def _launched(self, uid: int, setting: Setting, observer: TuningObserver) -> tuple[list[Record], str | None]:
        """Return the records of a launch, and the signal that ended it; a launch that has ended is not repeated."""
        job = with_setting(self.base, setting, self.search.space.base)
        options = replace(self._options, jobs=(job,), uid=uid)
        suite = PreparedSuite(options, self._machine)
        before = earlier(options, suite.starts, suite.backend.name, self._machine.hostname)
        if before is not None:
            if before.lost:
                lost = options.paths.output / before.lost[0]
                raise CotenantError(
                    f"A record of an earlier launch of this search cannot be read: {lost}.",
                    "Put it back, or begin anew with another --outdir.",
                )
            if before.finished:
                return before.records, None
            suite = PreparedSuite(replace(options, resume=True), self._machine)
        suite.settle()
        result = SuiteRun(suite, observer.tell, observer).run()
        return result.records, result.interrupted

    def _take(self, setting: Setting, records: Sequence[Record]) -> None:
        self.records += records
        trial = trial_of(setting, records, self.records[0], self.search.space.base)
        self.search.take(trial)
        self.unit = self.unit or next((record.unit for record in records if record.unit), "")
        if len(self.search.trials) == 1 and trial.rate is None and not trial.too_large:
            raise CotenantError(
                f"{self.base.job.name} has no rate as it is: {trial.outcome}: {trial.message}",
                "Mend that first: --dry and doctor say more.",
            )


def trial_of(setting: Setting, records: Sequence[Record], first: Record, base: Setting) -> Trial:
    """Return a launch's result for its setting; `first` is a record of the job as it is, in the setting `base`."""
    from cotenant.results.launches import launches_in
    from cotenant.results.newest import newest_in
    from cotenant.results.table import table_of_records

    launch = launches_in(newest_in(table_of_records(records).frame.with_row_index("at"))[0])[0]
    outcome, message, rate = launch.failure or "completed", launch.flaw or "", launch.rate
    failed = next((record for record in records if record.outcome == outcome), None)
    message = message if failed is None else failed.message
    changed = {flag for flag, _ in setting.flags}
    if setting.batch_size != base.batch_size:
        changed |= {*BATCH_FLAGS}
    # Only arguments that the setting has changed are checked: one of the job's own may always have been ignored.
    if rate is not None and (unheeded := changed.intersection(records[0].ignored)):
        outcome, message, rate = NO_EFFECT, f"{min(unheeded)} does nothing here.", None
    items, usual = (each.observed.get("items_per_row") for each in (records[0], first))
    if rate is not None and items and usual and abs(items / usual - 1) > OTHER_ITEMS:
        outcome, message, rate = OTHER_WORK, f"A row holds {items:.4g} items, and {usual:.4g} in the job.", None
    items_of_a_step = None if rate is None else _items_of_a_step(records)
    return Trial(setting, rate, outcome, message, _seconds(records), items_of_a_step)


def with_setting(cell: JobCell, setting: Setting, base: Setting) -> Job:
    """Return the job of a cell in a setting, named after it; `base` is the job's own.

    An observation holds about as many items as before: `--number` shrinks as the batch grows.
    """
    args: dict[str, Value] = dict(cell.args)
    flags = dict(setting.flags)
    for names, value in ((BATCH_FLAGS, setting.batch_size), (WORKERS_FLAGS, flags.pop(WORKERS_FLAGS[0], None))):
        if value is not None:
            name = next((name for name in names if name in args), names[0])
            args[name] = value
    number = args.get(NUMBER)
    if isinstance(number, int):
        args[NUMBER] = max(1, round(number * base.batch_size / setting.batch_size))
    words = (_NOT_IN_NAMES.sub("", f"{flag.lstrip('-')}{value}") for flag, value in setting.flags)
    return replace(
        cell.job,
        args=tuple((flag, (value,)) for flag, value in (args | flags).items()),
        stem=".".join([cell.label, f"b{setting.batch_size}", *words]),
    )


def _knobs(names: Collection[str], start: Start, paths: RunPaths) -> Iterator[Knob]:
    """Yield the knobs beside the batch size that can have an effect, in order: workers only if files are read. One
    that a benchmark ignores costs a launch."""
    spec = start.specs[0]
    command, processors = spec.command, len(spec.slice.processors)
    if WORKERS in names and named_inputs(start, paths):
        own = number_behind(command, *WORKERS_FLAGS)
        powers = [0, *(1 << octave for octave in range((2 * processors).bit_length()))]
        yield Knob(WORKERS_FLAGS[0], tuple(count for count in powers if count != own))
    for name in (FORMAT, COMPILE):
        if name in names:
            yield Knob(f"--no-{name}" if f"--{name}" in command else f"--{name}")


def _items_of_a_step(records: Sequence[Record]) -> float | None:
    """Return the items of a step of all tenants together; None if one does not report its number of steps."""
    total = 0.0
    for record in records:
        number = record.given.number if record.given is not None else record.arguments.get("number")
        if not isinstance(number, int) or number < 1:
            return None
        total += median(seen.items or 0.0 for seen in record.observations) / number
    return total


def _seconds(records: Sequence[Record]) -> float:
    """Return the seconds of a launch from its beginning to the end of its last tenant."""
    with suppress(ValueError):
        begin = min(datetime.fromisoformat(record.start_time) for record in records)
        return (max(datetime.fromisoformat(record.end_time) for record in records) - begin).total_seconds()
    return 0.0
