"""A suite run: makes launch after launch, keeps the records of each, and leaves no process or cgroup behind."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from cotenant.errors import CotenantError
from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.choose import isolation_errors
from cotenant.launch import data
from cotenant.launch.events import Interruption
from cotenant.launch.launcher import Launcher
from cotenant.launch.limits import Limits
from cotenant.launch.observer import Observer, Unobserved
from cotenant.launch.outcome import LaunchResult, TenantResult, refused_word
from cotenant.launch.paths import cleared
from cotenant.launch.planned import PlannedLaunch
from cotenant.launch.prepared import PreparedSuite
from cotenant.launch.recorder import Recorder
from cotenant.launch.resources import Resources, acquire
from cotenant.results.journal import UNFINISHED
from cotenant.results.record import NO_BLOCKS, NOT_ALONE, Record
from cotenant.results.store import launch_line, total_line


@dataclass(slots=True)
class SuiteResult:
    """The results of a suite run in memory: every record, in order, and the reason why it was cut short."""

    records: list[Record] = field(default_factory=list)
    interrupted: str | None = None
    made: list[Record] = field(default_factory=list)
    """The records of the launches made now, without the ones that `--resume` has read."""
    failed: bool = False
    """True if a launch failed whose record another node keeps."""
    finished: bool = False
    """True if a launch came to its end, so that `--resume` goes on after it."""


@dataclass(slots=True)
class SuiteRun:
    """Runs a prepared suite once. The caller holds the machine's lock (`isolation.lock`).

    `records` are the records of all launches so far, even if they could not be written. `tell` gets warnings. The
    observer numbers the launches after those of the `earlier` repetitions.
    """

    suite: PreparedSuite
    tell: Callable[[str], None]
    observer: Observer = field(default_factory=Unobserved)
    earlier: int = 0
    records: list[Record] = field(default_factory=list, init=False)

    def run(self) -> SuiteResult:
        """Launch every cell. Raises CotenantError, also if a program refuses words after `--`.

        It leaves no process or cgroup behind.
        """
        begin_s = time.monotonic()
        with self._running() as (resources, interruption):
            recorder = Recorder(self.suite, resources.output, self.records)
            starts = recorder.begin(self.tell)
            restored = len(self.records)
            launcher = Launcher(self.suite, resources, interruption, self.observer)
            refused = _Launches(launcher, recorder, self.tell, self.earlier).run(starts)
            recorder.end(interruption.requested)
            resources.output.summary(total_line(time.monotonic() - begin_s))
            resources.output.check()
            resources.output.check_name()
        if refused:
            raise CotenantError(refused)
        # A caller that launches more after this must know of a signal that came while slices were removed.
        made = self.records[restored:]
        finished = not all(record.outcome in UNFINISHED for record in made)
        return SuiteResult(self.records, interruption.requested, made, finished=finished)

    def follow(self) -> SuiteResult:
        """Make this node's part of the launches; node 0 keeps their records. Raises CotenantError."""
        suite, options, failed, finished = self.suite, self.suite.options, False, False
        with self._running() as (resources, interruption):
            launcher = Launcher(suite, resources, interruption, self.observer)
            followed = [launch for launch in suite.starts if launch.follows]
            # Ranks without their data report that to rank 0.
            for launch, _ in data.prepare_data(options, followed, interruption, self.observer):
                if interruption.requested:
                    break
                resources.reaper.ensure()
                result = launcher.measure(launch, options.limits)
                outcome, message = result.tenants[0].outcome, result.tenants[0].message
                cleared(spec.temporary for spec in launch.specs)
                self.tell(f"{launch.label}: {outcome}. {message}".strip())
                for change in result.changes:
                    self.tell(f"{launch.label}: the slice did not stay as planned: {change}.")
                finished |= outcome == "completed"
                failed |= outcome not in ("completed", "aborted") or bool(result.changes)
                _check_cleared(result)
                if outcome == "node_lost":
                    break
            return SuiteResult(interrupted=interruption.requested, failed=failed, finished=finished)

    @contextlib.contextmanager
    def _running(self) -> Iterator[tuple[Resources, Interruption]]:
        with contextlib.ExitStack() as stack:
            interruption = stack.enter_context(Interruption())
            yield acquire(self.suite, stack, self.tell), interruption


@dataclass(frozen=True, slots=True)
class _Launches:
    """The launches of a run, one after the other."""

    launcher: Launcher
    recorder: Recorder
    tell: Callable[[str], None]
    earlier: int

    def run(self, starts: Sequence[PlannedLaunch]) -> str:
        """Make these launches until one fails under `--raise`, a program refuses words after `--`, a node is lost, or a
        signal comes. Return the refusal, "" without one. Raises CotenantError."""
        suite, interruption = self.launcher.suite, self.launcher.interruption
        options = suite.options
        positions = {launch.key: place for place, launch in enumerate(suite.starts, start=1)}
        ready = data.prepare_data(options, starts, interruption, self.launcher.observer)
        launched: set[str] = set()
        for launch, missing in ready:
            if interruption.requested:
                break
            launched.add(launch.key)
            limits = options.limits
            if suite.pace is not None:
                left = [other for other in starts if other.key not in launched]
                limits = suite.pace.limits(limits, [launch, *left])
            result, records = self._launch(positions[launch.key], launch, missing, limits)
            if message := refused_word(result, options.typed):
                return f"{launch.label}: {message}"
            if options.raise_error and not all(record.completed for record in records):
                break
            if lost := [record.message for record in records if record.outcome == "node_lost"]:
                self.tell(f"warning: {lost[0]} The suite ends here; the same command with --resume goes on.")
                break
        return ""

    def _launch(
        self, position: int, launch: PlannedLaunch, missing: str | None, limits: Limits
    ) -> tuple[LaunchResult, list[Record]]:
        """Make one launch; keep its records and report its result. Raises CotenantError."""
        suite, resources, observer = self.launcher.suite, self.launcher.resources, self.launcher.observer
        output, begin_s = resources.output, time.monotonic()
        launch = replace(launch, goes_on=self.recorder.not_yet_alone(launch))
        observer.launch(self.earlier + position, launch.label, len(launch.specs))
        resources.reaper.ensure()
        result = _without_data(launch, missing) if missing is not None else self.launcher.measure(launch, limits)
        if suite.pace is not None and result.stop_ns:
            loaded_s = (result.stop_ns - min(go.t0_ns for go in result.gos.values())) / 1e9
            suite.pace.took(launch, time.monotonic() - begin_s - loaded_s)
        left = cleared(spec.temporary for spec in launch.specs)
        found = (*launch.findings, *left, *output.put_right())
        records = self.recorder.keep(replace(launch, findings=found), result, limits, self.tell)
        outcomes = [record.outcome for record in records if record.solo == launch.solo]
        minutes = (time.monotonic() - begin_s) / 60
        output.summary(launch_line(position, len(suite.starts), outcomes, minutes, launch.commands))
        observer.ended(records)
        told = {NOT_ALONE} if launch.design.refusal else {NO_BLOCKS, NOT_ALONE}
        for why in dict.fromkeys(finding for record in records for finding in record.findings if finding.rule in told):
            self.tell(f"{launch.label}: {why.sentence} {why.remedy}")
        output.check()
        _check_cleared(result)
        return result, records


def _check_cleared(result: LaunchResult) -> None:
    """End the suite if a slice is left, as the next launch would not be alone. Raises IsolationError."""
    if result.left_behind:
        with isolation_errors():
            raise NotIsolatedError(result.left_behind)


def _without_data(launch: PlannedLaunch, reason: str) -> LaunchResult:
    now = datetime.now(UTC)
    return LaunchResult(tuple(TenantResult(spec, "missing_data", reason) for spec in launch.specs), now, now)
