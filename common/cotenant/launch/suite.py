"""A suite run: makes launch after launch, keeps the records of each, and leaves no process or cgroup behind."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from cotenant.errors import CotenantError, NodeLostError
from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.choose import isolation_errors
from cotenant.launch import data
from cotenant.launch.across import node_part, whole
from cotenant.launch.events import Interruption
from cotenant.launch.launcher import Launcher
from cotenant.launch.limits import Limits
from cotenant.launch.observer import Observer, Unobserved
from cotenant.launch.outcome import LaunchResult, TenantResult, refusal
from cotenant.launch.paths import cleared
from cotenant.launch.prepared import PreparedSuite
from cotenant.launch.recorder import Recorder
from cotenant.launch.resources import Resources, acquire
from cotenant.launch.resume import conditions_of
from cotenant.launch.start import Start
from cotenant.nodes.connection import SILENCE_S
from cotenant.nodes.coordinator import Coordinator
from cotenant.nodes.member import Member
from cotenant.results.record import NO_BLOCKS, NOT_ALONE, Record
from cotenant.results.store import launch_line, total_line
from cotenant.text import quoted


@dataclass(slots=True)
class SuiteResult:
    """The results of a suite run in memory: every record, in order, and the reason why it was cut short."""

    records: list[Record] = field(default_factory=list)
    interrupted: str | None = None
    made: list[Record] = field(default_factory=list)
    """The records without those of a resumed repetition's earlier launches."""


@dataclass(slots=True)
class SuiteRun:
    """Runs a prepared suite once. The caller holds the machine's lock (`isolation.lock`).

    `records` are those of all launches so far, even if they could not be written. `tell` gets warnings. The observer
    numbers the launches after those of the `earlier` repetitions.
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
        with self._running() as (resources, interruption, stack):
            coordinator = self._gather(stack, interruption)
            recorder = Recorder(self.suite, resources.output, self.records)
            starts = recorder.begin(self.tell)
            restored = len(self.records)
            launcher = Launcher(self.suite, resources, interruption, self.observer)
            refused = _Launches(launcher, recorder, coordinator, self.tell, self.earlier).run(starts)
            recorder.end(interruption.requested)
            resources.output.summary(total_line(time.monotonic() - begin_s))
            resources.output.check()
            resources.output.check_name()
        if refused:
            raise CotenantError(refused)
        # A caller that launches more after this has to know of a signal that came while slices were removed.
        return SuiteResult(self.records, interruption.requested, self.records[restored:])

    def follow(self) -> SuiteResult:
        """Make the launches that node 0 names, on another node; node 0 keeps the records. Raises CotenantError."""
        suite, options = self.suite, self.suite.options
        assert options.cluster is not None
        starts = {start.key: start for start in suite.starts}
        with self._running() as (resources, interruption, stack):
            launcher = Launcher(suite, resources, interruption, self.observer)
            member = Member(options.cluster, SILENCE_S)
            stack.callback(member.close)
            member.join(self._identity, options.limits.ready_limit_s, lambda: interruption.requested)
            while (key := member.next_launch(lambda: interruption.requested)) is not None:
                resources.reaper.ensure()
                if key not in starts:
                    raise NodeLostError(f"Node 0 begins {quoted(key)}, which is no launch of this suite.")
                for start, missing in data.prepare_data(options, [starts[key]], interruption, self.observer):
                    if missing is None:
                        result = launcher.measure(start, options.limits, member)
                    else:
                        result = _without_data(start, missing)
                        member.fail(("missing_data", missing))
                    member.send_result(node_part(result, suite.backend))
                    cleared(spec.temporary for spec in start.specs)
            return SuiteResult(interrupted=interruption.requested)

    @contextlib.contextmanager
    def _running(self) -> Iterator[tuple[Resources, Interruption, contextlib.ExitStack]]:
        with contextlib.ExitStack() as stack:
            interruption = stack.enter_context(Interruption())
            yield acquire(self.suite, stack, self.tell), interruption, stack

    def _gather(self, stack: contextlib.ExitStack, interruption: Interruption) -> Coordinator | None:
        """Wait for all other nodes; return None if there are none. Raises CotenantError."""
        options = self.suite.options
        if options.cluster is None:
            return None
        coordinator = Coordinator(options.cluster, SILENCE_S)
        stack.callback(coordinator.close)
        coordinator.gather(self._identity, options.limits.ready_limit_s, lambda: interruption.requested)
        return coordinator

    @property
    def _identity(self) -> str:
        """A hash of the conditions that must be equal on all nodes: those of --resume without each host's own."""
        options = self.suite.options
        conditions = conditions_of(options, self.suite.starts, "") | {"the slices": "", "uid": str(options.uid)}
        return hashlib.sha256(json.dumps(conditions, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Launches:
    """The launches of a run, one after the other."""

    launcher: Launcher
    recorder: Recorder
    coordinator: Coordinator | None
    tell: Callable[[str], None]
    earlier: int

    def run(self, starts: Sequence[Start]) -> str:
        """Make these launches until one fails under `--raise`, a program refuses words after `--`, a node is lost, or a
        signal comes. Return the refusal, "" without one. Raises CotenantError."""
        suite, interruption = self.launcher.suite, self.launcher.interruption
        options = suite.options
        positions = {start.key: place for place, start in enumerate(suite.starts, start=1)}
        ready = data.prepare_data(options, starts, interruption, self.launcher.observer)
        launched: set[str] = set()
        for start, missing in ready:
            if interruption.requested:
                break
            launched.add(start.key)
            limits = options.limits
            if suite.pace is not None:
                left = [other for other in starts if other.key not in launched]
                limits = suite.pace.limits(limits, [start, *left])
            result, records = self._launch(positions[start.key], start, missing, limits)
            if message := refusal(result, options.typed):
                return f"{start.label}: {message}"
            if options.raise_error and not all(record.completed for record in records):
                break
            if self.coordinator is not None and (lost := self.coordinator.lost()) is not None:
                self.tell(f"warning: {lost} The suite ends here; the same command with --resume goes on.")
                break
        return ""

    def _launch(
        self, position: int, start: Start, missing: str | None, limits: Limits
    ) -> tuple[LaunchResult, list[Record]]:
        """Make one launch; keep its records and report its result. Raises CotenantError."""
        suite, resources, observer = self.launcher.suite, self.launcher.resources, self.launcher.observer
        output, begin_s = resources.output, time.monotonic()
        start = replace(start, goes_on=self.recorder.not_yet_alone(start))
        observer.launch(self.earlier + position, start.label, len(start.specs))
        resources.reaper.ensure()
        result = self._result(start, missing, limits)
        if suite.pace is not None and result.stop_ns:
            loaded_s = (result.stop_ns - min(go.t0_ns for go in result.gos.values())) / 1e9
            suite.pace.took(start, time.monotonic() - begin_s - loaded_s)
        left = cleared(spec.temporary for spec in start.specs)
        found = (*start.findings, *left, *output.put_right())
        records = self.recorder.keep(replace(start, findings=found), result, limits)
        outcomes = [record.outcome for record in records if record.solo == start.solo]
        minutes = (time.monotonic() - begin_s) / 60
        output.summary(launch_line(position, len(suite.starts), outcomes, minutes, start.commands))
        observer.ended(records)
        told = {NOT_ALONE} if start.refusal else {NO_BLOCKS, NOT_ALONE}
        for why in dict.fromkeys(each for record in records for each in record.findings if each.rule in told):
            self.tell(f"{start.label}: {why.sentence} {why.remedy}")
        output.check()
        if result.left_behind:
            # The records are kept first. The suite ends, as the next launch would not be alone.
            with isolation_errors():
                raise NotIsolatedError(result.left_behind)
        return result, records

    def _result(self, start: Start, missing: str | None, limits: Limits) -> LaunchResult:
        """Return the result of a launch on all its nodes."""
        if missing is not None:
            return _without_data(start, missing)
        if self.coordinator is None:
            return self.launcher.measure(start, limits)
        self.coordinator.begin(start.key, start.cell.nodes or self.coordinator.nodes)
        own = self.launcher.measure(start, limits, self.coordinator)
        return whole(own, self.coordinator.results(lambda: self.launcher.interruption.requested))


def _without_data(start: Start, reason: str) -> LaunchResult:
    now = datetime.now(UTC)
    return LaunchResult(tuple(TenantResult(spec, "missing_data", reason) for spec in start.specs), now, now)
