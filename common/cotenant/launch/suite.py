"""A suite run: open the backend, launch cell after cell, keep the records, leave nothing behind."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cotenant.choices import TRANSCRIPT
from cotenant.confidential import by_new_key, words_without
from cotenant.errors import CotenantError, IsolationError, NodeLostError
from cotenant.finding import Finding, survived
from cotenant.findings import ask_all
from cotenant.findings.checks import EVERY_SUITE
from cotenant.findings.facts import Isolation, gather
from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.choose import choose_backend
from cotenant.isolation.leftovers import new_shared_files, shared_files
from cotenant.isolation.processes import adopt_orphans, await_reapers, end_orphans, now_ticks, sweep_marked
from cotenant.isolation.unenforced import NoIsolation
from cotenant.launch import data
from cotenant.launch.across import node_part, whole
from cotenant.launch.baseline import QUICK_KEPT_S, limits_alone
from cotenant.launch.device_sharing import check_share
from cotenant.launch.duration import Pace, crowd_words, estimates_s, slowness
from cotenant.launch.events import Interruption
from cotenant.launch.launch import Launch
from cotenant.launch.mps import MpsDaemon
from cotenant.launch.needs import check_memory, isolation_of, loader_bytes
from cotenant.launch.observer import Observer, Unobserved
from cotenant.launch.opening import device_line
from cotenant.launch.outcome import LaunchResult, TenantResult
from cotenant.launch.output import Output
from cotenant.launch.paths import REMEDY, cleared, remove_tree
from cotenant.launch.reaper import Reaper
from cotenant.launch.resume import begin, begun, conditions_of
from cotenant.launch.start import Options, Resolver, Start
from cotenant.machine.limits import cgroup_mounts
from cotenant.machine.load import HostCounts, host_counts, since
from cotenant.machine.topology import Machine
from cotenant.meters.meters import meters_of
from cotenant.nodes.connection import SILENCE_S
from cotenant.nodes.coordinator import Coordinator
from cotenant.nodes.member import Member
from cotenant.nodes.peers import NO_PEERS, Peers
from cotenant.nodes.slurm import held
from cotenant.results.journal import Challenged, Ended, Launched, now
from cotenant.results.record import cell_of, why_no_blocks
from cotenant.results.store import check_place, launch_line, prepare_directory, total_line
from cotenant.text import listed, many, quoted

if TYPE_CHECKING:
    from cotenant.challenge.vendor import Buyer
    from cotenant.results.record import Record


@contextlib.contextmanager
def _isolation_errors() -> Iterator[None]:
    """Turn a refusal of the kernel into a sentence."""
    try:
        yield
    except NotIsolatedError as error:
        raise IsolationError(f"Isolation failed: {error}.", "--isolation none measures without it.") from error


@dataclass(slots=True)
class SuiteResult:
    """The results of a suite run in memory: every record, in order, and the reason why it was cut short."""

    records: list[Record] = field(default_factory=list)
    interrupted: str | None = None


class SuiteRun:
    """Resolves the options against this machine at once; `run()` then does the work.

    `records` are those of all launches so far, also of one that could not be written.
    """

    def __init__(self, options: Options, machine: Machine) -> None:
        """Raises CotenantError for everything that can be known to be wrong before anything runs."""
        self._options = options
        self._machine = machine
        self._paths = options.paths
        self.chosen = choose_backend(options.isolation, cgroup_mounts(), options.cgroup_base)
        self.chosen.backend.oom_group = options.limits.on_oom == "group"
        self._resolver = Resolver(options, self._machine, self.chosen)
        if options.share is not None:
            check_share(options.share, machine.accelerators, self.chosen.backend)
        self._started, self._conceal = datetime.now(UTC), by_new_key()
        self.records: list[Record] = []
        self._limits = options.limits
        self.starts = self._resolver.starts()
        check_memory(options, machine, self.chosen.backend, self.starts)
        self.left_out = self._resolver.left_out()

    def check(self) -> None:
        """Raise CotenantError where records have no place, or `--resume` would go on with other work; make nothing."""
        options = self._options
        check_place(self._paths.output)
        if options.resume and (options.cluster is None or not options.cluster.node):
            begun(options, self.starts, self.chosen.backend.name, self._machine.hostname)

    @_isolation_errors()
    def settle(self) -> None:
        """Go where the backend needs us: this program may begin anew, once, and not return. Raises CotenantError."""
        self.chosen.settle()

    def check_room(self) -> None:
        """Raise CotenantError where records or temporary files have no room: what is lost then was measured in vain."""
        for finding in self.before:
            if finding.rule in ("disk_full", "not_writable") and finding.severity == "error":
                raise CotenantError(finding.sentence, finding.remedy)

    def heading(self) -> list[str]:
        """Describe the run to come, in a few lines."""
        devices = many(len(self._machine.accelerators), "accelerator")
        grave = [finding for finding in self.before if finding.severity != "info"]
        strangers = any(finding.rule == "device_in_use" for finding in self.before)
        made, class_name = self._resolver.plans["student"], self._options.memory_class
        on_devices = device_line(made, len(self.expected), class_name, strangers)
        return [
            *([on_devices] if on_devices else []),
            f"{self._options.suite.name} on {self._machine.hostname}: {self._launches()}, {devices}",
            self.tenancy,
            f"records: {self._paths.output}",
            *self.left_out,
            *(f"{finding.severity}: {finding.sentence} {finding.remedy}".rstrip() for finding in grave),
        ]

    @property
    def tenancy(self) -> str:
        """How many tenants there are, of what slices, and who enforces them."""
        made = self._resolver.plans["student"]
        if self.chosen.backend.name == NoIsolation.name:
            return f"{many(len(made.slices), 'user')} without slices, as everybody just starts (isolation none)"
        if "memory" in self.chosen.backend.unenforced:
            why = "no cgroups here" if self._options.isolation == "auto" else f"isolation {self._options.isolation}"
            return f"{made.processors_words}; memory NOT limited ({why}): sudo ./cgroup_setup.sh"
        return f"{made}, by {self.chosen.backend.name}"

    def _launches(self) -> str:
        alone = sum(start.solo for start in self.expected)
        launches, kind = many(len(self.expected), "launch", "es"), self._options.baseline
        if kind == "none":
            return launches
        if any(start.takes_turns for start in self.starts):
            by_turns = "what each keeps is measured within them, by turns"
            return f"{launches} (baseline blocks: {by_turns}{f'; {alone} of one user alone' if alone else ''})"
        if not alone:
            return f"{launches} (--baseline {kind} adds none: no job here has several users)"
        where = (
            "on the whole machine, without slices" if self.chosen.backend.name == NoIsolation.name else "in its slice"
        )
        if self._options.counted_by:
            why = f"quick instead of blocks, as {self._options.counted_by} says how much is observed"
            return f"{launches} ({alone} of one user alone {where}; baseline {why})"
        of_kind = kind if kind == "whole" else f"quick: {QUICK_KEPT_S:.0f} s, one for each job and kind of slice"
        return f"{launches} ({alone} of one user alone {where}; baseline {of_kind})"

    @property
    def expected(self) -> tuple[Start, ...]:
        """The launches there are where all that are to be of blocks can be."""
        return tuple(start for start in self.starts if not start.without_blocks)

    def estimates_s(self) -> list[float | None]:
        """Return how long each of the expected launches will take, None where its job counts what it measures.

        Seeing how slow this host is takes half a second: of short suites on their own processors nobody asks it.
        """
        if self._pace is None and not self._crowded and not self._machine.accelerators:
            return [None] * len(self.expected)
        return estimates_s(self.expected, self._options.limits, self._slowness, self._pace)

    def crowd_words(self) -> str:
        """How long users that share processors take until GO; "" where none does."""
        return crowd_words(self.expected, self._slowness) if self._crowded else ""

    @property
    def _crowded(self) -> bool:
        return any(start.sharers > 1 for start in self.expected)

    @functools.cached_property
    def _slowness(self) -> float:
        return slowness()

    @functools.cached_property
    def _pace(self) -> Pace | None:
        """The pace that keeps the suite within its time, from when it is asked first on."""
        within_s = self._options.within_s
        return None if within_s is None else Pace(within_s, self._slowness)

    @functools.cached_property
    def before(self) -> tuple[Finding, ...]:
        """The findings on this host before anything runs on it: made once, and kept in every record."""
        facts = dataclasses.replace(
            gather(self._machine, self._paths.purposes),
            isolation=self._isolation,
            plan=self._resolver.plans["student"],
            loader_bytes=loader_bytes(self.starts),
        )
        return tuple(finding for _, answer in ask_all(EVERY_SUITE, facts) for finding in answer.findings)

    def run(self, tell: Callable[[str], None], observer: Observer | None = None) -> SuiteResult:
        """Launch every cell; `tell` is given warnings. Raises CotenantError; leaves nothing behind.

        Whoever calls it holds the machine's lock (`isolation.lock`).
        """
        result = SuiteResult(self.records)
        self._observer: Observer = observer or Unobserved()
        begin_s = time.monotonic()
        self._tell = tell
        with contextlib.ExitStack() as stack:
            interruption = stack.enter_context(Interruption())
            self._open(stack, tell)
            coordinator = self._gather(stack, interruption)
            # The launches that follow one that could not be of blocks have its place.
            places = itertools.accumulate(int(not start.without_blocks) for start in self.starts)
            positions = {start.key: place for start, place in zip(self.starts, places, strict=True)}
            starts = self._begin(tell)
            ready = data.prepare_data(self._options, starts, interruption, self._observer)
            # A launch behind the first that a baseline belongs to may have lacked blocks as well.
            again = [(start, missing) for start, missing in ready if start.without_blocks]
            launched: set[str] = set()
            for start, missing in (*ready, *again):
                if interruption.requested:
                    break
                if start.key in launched or (start.without_blocks and not self._lacks_blocks(start)):
                    continue
                launched.add(start.key)
                position = positions[start.key]
                if self._pace is not None:
                    left = [other for other in starts if other.key not in launched and not other.without_blocks]
                    self._limits = self._pace.limits(self._options.limits, [start, *left])
                records = self._launch(position, start, missing, interruption, coordinator)
                if self._options.raise_error and not all(record.completed for record in records):
                    break
                if coordinator is not None and (lost := coordinator.lost()) is not None:
                    tell(f"warning: {lost} The suite ends here; the same command with --resume goes on.")
                    break
            self._journal(Ended, interrupted=interruption.requested)
            self._output.summary(total_line(time.monotonic() - begin_s))
            self._output.check()
            self._output.check_name()
        # Whoever launches more after this one has to hear of a signal that came while slices were taken down.
        result.interrupted = interruption.requested
        return result

    def follow(self, tell: Callable[[str], None], observer: Observer | None = None) -> SuiteResult:
        """Launch the tenants that node 0 names, on another node; the records are kept there. Raises CotenantError."""
        options = self._options
        assert options.cluster is not None
        self._observer = observer or Unobserved()
        starts = {start.key: start for start in self.starts}
        with contextlib.ExitStack() as stack:
            interruption = stack.enter_context(Interruption())
            self._open(stack, tell)
            member = Member(options.cluster, SILENCE_S)
            stack.callback(member.close)
            member.join(self._identity, options.limits.ready_limit_s, lambda: interruption.requested)
            while (key := member.next_launch(lambda: interruption.requested)) is not None:
                self._reaper.ensure()
                if key not in starts:
                    raise NodeLostError(f"Node 0 begins {quoted(key)}, which is no launch of this suite.")
                for start, missing in data.prepare_data(options, [starts[key]], interruption, self._observer):
                    if missing is None:
                        result = self._measure(start, interruption, member)
                    else:
                        result = _without_data(start, missing)
                        member.fail(("missing_data", missing))
                    member.send_result(node_part(result, self.chosen.backend))
                    cleared(spec.temporary for spec in start.specs)
            return SuiteResult(interrupted=interruption.requested)

    def _gather(self, stack: contextlib.ExitStack, interruption: Interruption) -> Coordinator | None:
        """Wait for all other nodes; None where there are none. Raises CotenantError."""
        cluster, limit_s = self._options.cluster, self._options.limits.ready_limit_s
        if cluster is None:
            return None
        coordinator = Coordinator(cluster, SILENCE_S)
        stack.callback(coordinator.close)
        coordinator.gather(self._identity, limit_s, lambda: interruption.requested)
        return coordinator

    @property
    def _identity(self) -> str:
        """The conditions that must be equal on all nodes: those of --resume, without the ones that are a host's own."""
        conditions = conditions_of(self._options, self.starts, "") | {"the slices": "", "uid": str(self._options.uid)}
        return hashlib.sha256(json.dumps(conditions, sort_keys=True).encode()).hexdigest()

    def _open(self, stack: contextlib.ExitStack, tell: Callable[[str], None]) -> None:
        """Make directories, reaper and backend; they are undone when `stack` closes."""
        options, run, own = self._options, self._options.run, self._paths.own
        self.check_room()
        self._output = Output(self._paths.output)
        stack.callback(self._output.close)
        self._reaper = Reaper(str(run), self.chosen.backend.location(), own, self._output.directory)
        # First, and dismissed last: from here on nothing is made that it does not know of.
        stack.callback(_warn, tell, self._reaper.dismiss)
        # Where our parent ignores it, so would we, and nobody could say how a child of ours has ended.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._reaper.ensure()
        for finding in self._output.put_right():
            tell(f"warning: {finding.sentence} {finding.remedy}")
        self._output.write(f"{options.suite.name}.R{options.uid}.resolved", self._resolved())
        for directory in own:
            stack.callback(_warn, tell, functools.partial(remove_tree, directory), REMEDY)
        prepare_directory(self._paths.temporary, "BASE names another place for temporary files.")
        self._paths.sockets.mkdir(mode=0o700)
        self._own_children = adopt_orphans()
        with _isolation_errors():
            await_reapers()
            # Cgroups first: a dead run's fork bomb ends with its slice, while a search by marker would be outrun.
            self.chosen.backend.sweep()
            sweep_marked()
            for left in self._paths.sweep():
                tell(f"warning: {left} {REMEDY}")
            self.chosen.backend.open(run)
        stack.callback(_isolation_errors()(self.chosen.backend.close))

    def _begin(self, tell: Callable[[str], None]) -> Sequence[Start]:
        """Write the start into the journal; return the launches to come, fewer where the suite goes on. Raises."""
        progress = begin(self._options, self.expected, self.chosen.backend.name, self._machine.hostname, self._output)
        self.records += progress.records
        if progress.records:
            # It is still the run that launched these.
            self._started = datetime.fromisoformat(progress.records[0].suite_start_time)
        for sentence in progress.sentences:
            tell(sentence)
        return [start for start in self.starts if start.key not in progress.finished]

    def _journal(self, entry: type[Launched | Challenged | Ended], **fields: Any) -> None:
        options = self._options
        self._output.journal(entry(suite=options.suite.name, uid=options.uid, time=now(), **fields))

    def _resolved(self) -> bytes:
        """The suite as it runs: every cell with the command of each tenant."""
        cells = [
            {
                "name": start.mix or start.cell.job.name,
                "label": start.label,
                "cells": [program.cell.label for program in start.programs],
                "solo": start.solo,
                "baseline": start.baseline,
                "stands_for": start.stands_for,
                "cgroup": start.cell.job.group,
                "weight": start.cell.job.weight,
                "tenants": [words_without(spec.command, self._conceal) for spec in start.specs],
            }
            for start in self.expected
        ]
        return json.dumps(cells, indent=1).encode() + b"\n"

    def _launch(
        self,
        position: int,
        start: Start,
        missing: str | None,
        interruption: Interruption,
        coordinator: Coordinator | None,
    ) -> list[Record]:
        begin_s = time.monotonic()
        self._observer.launch(position, start.label, len(start.specs))
        self._reaper.ensure()
        buyer, name = self._options.challenge if start.challenged else None, secrets.token_hex(16)
        if buyer is not None:
            start = start.in_front_of(buyer, name)
        if missing is not None:
            result = _without_data(start, missing)
        elif coordinator is None:
            result = self._measure(start, interruption)
        else:
            coordinator.begin(start.key, start.cell.nodes or coordinator.nodes)
            own = self._measure(start, interruption, coordinator)
            result = whole(own, coordinator.results(lambda: interruption.requested))
        if self._pace is not None and result.stop_ns:
            loaded_s = (result.stop_ns - min(go.t0_ns for go in result.gos.values())) / 1e9
            self._pace.took(start, time.monotonic() - begin_s - loaded_s)
        left = cleared(spec.temporary for spec in start.specs)
        found = (*start.findings, *left, *self._output.put_right())
        records = self._keep(dataclasses.replace(start, findings=found), result)
        minutes, outcomes = (time.monotonic() - begin_s) / 60, [record.outcome for record in records]
        line = launch_line(position, len(self.expected), outcomes, minutes, start.commands)
        self._output.summary(line)
        self._observer.ended(records)
        if (why := why_no_blocks(finding for record in records for finding in record.findings)) is not None:
            self._tell(f"{start.label}: {why.sentence} {why.remedy}")
        if unfinished := sum(tenant.unfinished for tenant in result.tenants):
            of = f"{unfinished} of {many(len(result.tenants), 'program')}"
            self._tell(f"warning: {of} had not come to an end, and --timeout ended them: the numbers stand.")
        if buyer is not None:
            self._keep_transcript(start, buyer, name, interruption)
        self._output.check()
        if result.left_behind:
            # Not before its records are kept: the next launch would not be alone.
            with _isolation_errors():
                raise NotIsolatedError(result.left_behind)
        return records

    def _lacks_blocks(self, start: Start) -> bool:
        """Whether a launch that a baseline belongs to could not be one of blocks."""
        return any(
            cell_of(record.name, record.solo, record.mix) == start.cell.label
            and why_no_blocks(record.findings) is not None
            for record in self.records
        )

    def _keep_transcript(self, start: Start, buyer: Buyer, launch: str, interruption: Interruption) -> None:
        """Take the buyer's report of a launch: its replays are part of it, so that takes a while."""
        try:
            content, line = buyer.transcript(launch, lambda: interruption.requested)
        except CotenantError as error:
            self._tell(f"warning: {start.label}: no transcript of the challenge: {error}")
            return
        name = f"{self._options.suite.name}.R{self._options.uid}.{launch}{TRANSCRIPT}"
        self._journal(Challenged, label=start.key, files=self._output.write(name, content))
        self._tell(line)

    def _measure(self, start: Start, interruption: Interruption, peers: Peers = NO_PEERS) -> LaunchResult:
        """Launch the tenants of a start; its meters also hold what happened around them, from the input on."""
        options, slices = self._options, [spec.slice for spec in start.specs]
        shared_before = shared_files().keys()
        commands = [options.image.inside(spec.command) if options.image else spec.command for spec in start.specs]
        inputs = data.input_paths(commands, self._paths)
        cached = data.prepare_cache(options.cache, inputs, lambda: bool(interruption.requested))
        begin_ticks = now_ticks()
        with meters_of(self._machine, slices) as sampling, self._output.logs() as logs, _isolation_errors():
            limits = limits_alone(start.baseline, self._limits).of_job(start.timeout_s)
            backend, upkeep = self.chosen.backend, self._reaper.ensure
            daemon = self._daemon(start)
            launch = Launch(
                start.specs,
                backend,
                interruption,
                limits,
                upkeep,
                sampling,
                self._observer,
                daemon,
                peers,
                logs,
                start.takes_turns,
                start.pairing,
                start.crowd,
            )
            counts = self._counts()
            result = launch.run()
            meters = result.meters | {"host": since(counts, self._counts(), result.killed_outside)}
            left_behind, changes = result.left_behind, result.changes
            try:
                orphans = end_orphans(self._own_children | self._reaper.pids, begin_ticks)
                # Whoever was in a slice has ended with it.
                if orphans and backend.location():
                    changes += (f"users were planned in slices, but {listed(orphans.values(), 3)} lived outside",)
            except NotIsolatedError as error:
                left_behind = left_behind or str(error)
        if given := held():
            meters["slurm"] = given
        if cached is not None:
            meters["input"] = dataclasses.asdict(cached)
        # Where each tenant has a /dev/shm of its own, what is new in the machine's is not theirs.
        if not self._isolation.own_shm and (new := new_shared_files(shared_before)):
            meters["shm_kept"] = new
        return dataclasses.replace(result, meters=meters, left_behind=left_behind, changes=changes)

    def _daemon(self, start: Start) -> MpsDaemon | None:
        """Return the daemon that a launch's tenants are clients of, not yet started; None where they are of none."""
        slices = [spec.slice for spec in start.specs]
        if not any(slice_.device_share and slice_.device_share.mode.kind == "mps" for slice_ in slices):
            return None
        devices = list(dict.fromkeys(device for slice_ in slices for device in slice_.accelerators))
        shm_bytes = sum(slice_.memory_bytes for slice_ in slices) if self._isolation.own_shm else 0
        return MpsDaemon(str(self._options.run), self._paths.mps, devices, shm_bytes)

    def _keep(self, start: Start, result: LaunchResult) -> list[Record]:
        # Not before: the modules for numbers take their time to import, and until now nothing needed any.
        from cotenant.findings.rules import with_findings
        from cotenant.launch.records import SuiteFacts, parts_of, records_of

        options = self._options
        policies = {"cache": options.cache, **limits_alone(start.baseline, self._limits).policies()}
        backend, findings = self.chosen.backend, tuple(dict.fromkeys((*start.findings, *survived(self.before))))
        seen = (self._facts, backend, policies, findings, self._conceal)
        facts = SuiteFacts(options.suite.name, self._started, options.uid, *seen)
        records: list[Record] = []
        for part, own in parts_of(result, start):
            records += with_findings(records_of(part, own, facts), [*self.records, *records])
        self.records += records
        files = self._output.keep(records, result.ended)
        if len(files) == len(records):
            outcomes = tuple(record.outcome for record in records)
            self._journal(Launched, label=start.key, outcomes=outcomes, records=files, host=self._machine.hostname)
        return records

    def _counts(self) -> HostCounts:
        # Siblings count what slows their core alike: the first of them stands for it.
        return host_counts({processor.core for processor in self._machine.processors}, self._machine.nvidia_places)

    @functools.cached_property
    def _isolation(self) -> Isolation:
        return isolation_of(self.chosen.backend)

    @functools.cached_property
    def _facts(self) -> dict[str, Any]:
        from cotenant.machine.facts import machine_facts

        return machine_facts(self._machine, self._options.checkout)


def _without_data(start: Start, reason: str) -> LaunchResult:
    now = datetime.now(UTC)
    return LaunchResult(tuple(TenantResult(spec, "missing_data", reason) for spec in start.specs), now, now)


def _warn(tell: Callable[[str], None], step: Callable[[], str], remedy: str = "") -> None:
    """Do the last step of something, and tell the sentence it returns."""
    if sentence := step():
        tell(f"warning: {sentence} {remedy}".rstrip())
