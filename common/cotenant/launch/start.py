"""Turns options and a machine into planned launches, and finds every fault that can be found before anything runs."""

from __future__ import annotations

import functools
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import get_args

from cotenant.choices import BaselineKind
from cotenant.errors import CotenantError
from cotenant.isolation.choose import Chosen
from cotenant.isolation.device_modes import ShareMode
from cotenant.isolation.memory_shares import Mems
from cotenant.isolation.plan import Plan, Policy, plan, plan_whole, ranks_of_all, split_ranks, tenants_by_default
from cotenant.isolation.runs import RunName
from cotenant.isolation.slice import Slice
from cotenant.launch.alone import one_of_each_kind
from cotenant.launch.command import interpreter, resolve_command, resolve_foreign, supervised
from cotenant.launch.containers import Image
from cotenant.launch.design.designs import ALL_AT_ONCE, AllAtOnce, InBlocks, InCrowds, InDuet, InPairs, Pair
from cotenant.launch.design.shared import Design
from cotenant.launch.environment import RunEnvironment, environment_without_jobs, free_ports, node_variables
from cotenant.launch.groups import PAIR_S, PART_OF_TIMEOUT, USUAL_BYTES, groups_of
from cotenant.launch.limits import USUAL_LIMITS, Limits
from cotenant.launch.paths import RunPaths
from cotenant.launch.planned import PlannedLaunch, PlannedUser, Program
from cotenant.launch.sizing import Sizing, check_axis
from cotenant.launch.tenant import TenantSpec
from cotenant.machine.nvidia import mps_pipes
from cotenant.machine.space import is_in_memory
from cotenant.machine.topology import Machine
from cotenant.nodes.cluster import Cluster
from cotenant.procfs import format_list
from cotenant.protocol.messages import SOCKET_VARIABLE, WARM_UP_VARIABLE
from cotenant.results.journal import read_journal
from cotenant.results.last import last_peaks
from cotenant.results.record import SOLO, Side
from cotenant.suite.cells import (
    ON_PROCESSORS,
    Job,
    JobCell,
    arguments,
    expand,
    fitting,
    swept,
    without_unsupported,
)
from cotenant.suite.duets import BETWEEN, Duet
from cotenant.suite.fields import PRECISION
from cotenant.suite.jobfile import Suite
from cotenant.suite.mixes import Mix
from cotenant.suite.pressure import why_unpressed
from cotenant.suite.variables import expand_variables
from cotenant.text import listed, many


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line."""

    suite: Suite
    jobs: tuple[Job, ...]
    checkout: Path
    run: RunName
    paths: RunPaths
    uid: int = 0
    repetitions: int = 1
    """The number of runs of the suite, from `uid` on."""
    users: int | None = None
    slices: int | None = None
    share: ShareMode | None = None
    isolation: str = "auto"
    cgroup_base: str | None = None
    policy: Policy = "cores"
    mems: Mems = "local"
    reserve_bytes: int | None = None
    limits: Limits = USUAL_LIMITS
    mixes: tuple[Mix, ...] = ()
    duet: Duet | None = None
    """The duet, if one is requested: it is the only launch, and its `users` are two in each slice."""
    crowd: InCrowds | None = None
    """The design of a launch in which a searcher chooses how many users run beside each other."""
    neighbours: tuple[Job, ...] = ()
    """Our own jobs of known pressure, which are in mixes only, and do not get a user's arguments for benchmarks."""
    memory_class: str | None = None
    image: Image | None = None
    baseline: BaselineKind = "none"
    within_s: float | None = None
    """The seconds of the whole suite, if no flag says how much a launch measures."""
    counted_by: str = ""
    """The flag that sets the number of observations, so that a baseline by blocks is not possible."""
    raise_error: bool = False
    resume: bool = False
    cluster: Cluster | None = None
    """This host's place among several, over which every launch of the group `all` extends."""
    extra: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """The words of the run, which its records keep."""

    @property
    def typed(self) -> tuple[str, ...]:
        """The words after `--`; in a duet, the words of both sides."""
        return self.extra if self.duet is None else (*self.duet.sides[0], BETWEEN, *self.duet.sides[1])

    def plan(self, machine: Machine) -> Plan:
        """Return each tenant's slice of a machine. Raises CotenantError."""
        return plan(
            machine,
            tenants_by_default(machine, self.users),
            slices=self.slices,
            share=self.share,
            policy=self.policy,
            mems=self.mems,
            reserve_bytes=self.reserve_bytes,
        )


class Resolver:
    """Turns cells into planned launches, for one machine. Raises CotenantError for a cell that cannot be started."""

    def __init__(self, options: Options, machine: Machine, chosen: Chosen) -> None:
        self._options = options
        self._machine = machine
        self._chosen = chosen
        self.plans: dict[str, Plan] = {
            "student": options.plan(machine),
            "all": plan_whole(machine, options.reserve_bytes),
        }
        self._slices = self.plans["student"].slices
        self.tenants = len(self._slices)
        self.ranks = ranks_of_all(machine, self.plans["student"])
        most = max((len(mix.labels) for mix in options.mixes if mix.pairs), default=0)
        first_port = free_ports(max(self.tenants, most))
        self._environment = RunEnvironment(
            suite=options.suite.name,
            uid=options.uid,
            run=options.run,
            paths=options.paths,
            machine=machine,
            first_port=first_port,
        )
        for job in options.jobs:
            check_axis(job, options.extra)
        tables = (options.suite.path.parent, options.checkout / "profiles")
        self._sizing = Sizing(options.memory_class, tables, self.plans, options.extra)
        supported = without_unsupported(options.jobs, has_devices=bool(machine.accelerators))
        # Over several hosts only jobs of the group `all` can run.
        here = (job for job in supported if options.cluster is None or job.group == "all")
        self._jobs = tuple(swept(job, self.ranks) for job in here)

    def starts(self) -> tuple[PlannedLaunch, ...]:
        """Return every cell of the chosen jobs that fits, and every mix, in the file's order, each followed by its
        baselines: a cell alone in a slice is measured once, even if a job and several mixes need it."""
        together = [
            self._of_equals(cell)
            for job in self._jobs
            for cell in fitting(job, self.ranks)
            if cell.nodes <= self._nodes
            if not self._sizing.is_too_large(cell)
        ]
        together += (launch for mix in self._mixes if not self._why_not(mix) for launch in self._of_mix(mix))
        if self._options.duet is not None:
            together.append(self._of_duet(self._options.duet))
        starts: dict[tuple[str, tuple[int, ...]], PlannedLaunch] = {}
        for launch in chain.from_iterable(map(self._with_others, together)):
            starts.setdefault((launch.label, launch.stands_for), launch)
        if not starts:
            raise CotenantError("No job is left to run.", " ".join(self.left_out()))
        _check_labels(starts.values())
        return tuple(starts.values())

    def left_out(self) -> tuple[str, ...]:
        """Return sentences on the jobs, cells and mixes for which this machine lacks precisions, devices or memory."""
        of_hosts = self._options.cluster is not None
        alone = [job.stem for job in self._options.jobs if of_hosts and job.group != "all"]
        sentences = []
        if alone:
            sentences.append(f"{listed(alone)}: left out, as over several nodes only jobs of the group all run.")
        stems = {job.stem for job in self._jobs} | set(alone)
        sentences += _without_device(job for job in self._options.jobs if job.stem not in stems)
        for job in self._jobs:
            too_many = {cell.devices for cell in {*expand(job)} - {*fitting(job, self.ranks)}}
            if too_many:
                cells = f"cells of --devices {format_list(too_many)}"
                sentences.append(f"{job.stem}: {cells} are left out, as DEVICE_TOTAL is {self.ranks}.")
            if beyond := {cell.nodes for cell in expand(job) if cell.nodes > self._nodes}:
                sentences.append(
                    f"{job.stem}: cells of --nodes {format_list(beyond)} are left out: there are {self._nodes}."
                )
        sentences += [f"{mix.name}: left out, as {why}" for mix in self._mixes if (why := self._why_not(mix))]
        if self._why_apart and any(mix.pairs for mix in self._options.mixes):
            sentences.append(f"Each pair is a launch by itself: {self._why_apart}.")
        return (*sentences, *self._sizing.left_out(self._jobs))

    @property
    def _nodes(self) -> int:
        return self._options.cluster.nodes if self._options.cluster else 1

    def _why_not(self, mix: Mix) -> str:
        """Return why a mix does not fit this machine; "" if it does."""
        if self._options.cluster is not None:
            return "over several nodes only jobs of the group all run."
        if len(mix.labels) > self.tenants and not mix.pairs:
            there = many(self.tenants, "user")
            return f"it has {len(mix.labels)} users and there are {there}: --users {len(mix.labels)}."
        if why := why_unpressed(mix.labels, self._devices, self._in_memory):
            return why
        too_large = [label for label in mix.labels if self._sizing.is_too_large(self._cells[label])]
        return f"the table of batch sizes has none of {listed(dict.fromkeys(too_large))} here." if too_large else ""

    @functools.cached_property
    def _in_memory(self) -> bool:
        """True if temporary files are in memory; computed once, since every mix needs it."""
        return is_in_memory(self._options.paths.temporary)

    @functools.cached_property
    def _devices(self) -> list[set[tuple[str, int]]]:
        """The devices of each tenant; instances of a device (MIG) have its number, as they may disturb each other."""
        return [{(device.vendor, device.index) for device in slice_.accelerators} for slice_ in self._slices]

    @functools.cached_property
    def _cells(self) -> dict[str, JobCell]:
        """Every cell of the suite by its label."""
        every = (*self._options.suite.jobs, *self._options.neighbours)
        return {cell.label: cell for job in every for cell in expand(job)}

    @functools.cached_property
    def _mixes(self) -> tuple[Mix, ...]:
        """The mixes; a mix of pairs that cannot meet in one launch is split into its pairs."""
        all_apart = self._options.baseline != "blocks" or self._why_apart
        mixes = (
            mix.apart if len(mix.pairs) == 1 or (mix.pairs and all_apart) else (mix,) for mix in self._options.mixes
        )
        return tuple(chain.from_iterable(mixes))

    @functools.cached_property
    def _why_apart(self) -> str:
        """The reason why pairs that should be measured by blocks are separate launches; "" if they meet in one."""
        options = self._options
        if options.baseline != "blocks":
            return ""
        if options.counted_by:
            return f"{options.counted_by} says how much is observed"
        return "what a job holds of a device stays there" if any(self._devices) else ""

    def _of_equals(self, cell: JobCell) -> PlannedLaunch:
        slices = self.plans[cell.job.group].slices
        return self._together(cell.label, (self._program(cell, slices),) * len(slices), slices)

    def _of_mix(self, mix: Mix) -> Iterator[PlannedLaunch]:
        """Yield the launch of a mix, or the launches of groups of its pairs, if memory cannot hold all jobs at once."""
        groups = self._groups(mix) if mix.pairs else [()]
        for number, pairs in enumerate(groups, start=1):
            there = sorted({*chain.from_iterable(pairs)})
            labels = [mix.labels[at] for at in there] if pairs else mix.of_tenants(self.tenants)
            met = tuple((there.index(a), there.index(b)) for a, b in pairs)
            slices = _residents(self._slices, len(labels)) if pairs else self._slices
            programs = {label: self._program(self._cells[label], slices) for label in dict.fromkeys(labels)}
            of_tenants = tuple(programs[label] for label in labels)
            name = f"{mix.name}.{number}" if len(groups) > 1 else mix.name
            launch = self._together(name, of_tenants, slices, name, met)
            yield replace(launch, timeout_s=mix.timeout_s or launch.timeout_s)

    def _groups(self, mix: Mix) -> list[tuple[Pair, ...]]:
        """Return a mix's pairs in groups, one for each launch, by the peak memory of each job in the newest launches
        here; a resumed repetition keeps its earlier groups."""
        slots, options, began = self._slices, self._options, None
        if options.resume:
            journal = read_journal(options.paths.output)
            began = journal.last_start(options.suite.name, options.uid, self._machine.hostname)
        before = None if began is None else datetime.fromisoformat(began.time)
        peaks = last_peaks(options.paths.output, options.suite.name, before)
        needs = [min(peaks.get(label, USUAL_BYTES), slots[0].memory_bytes) for label in mix.labels]
        longest_s = max(self._cells[label].job.timeout_s or 0.0 for label in mix.labels)
        timeout_s = mix.timeout_s or longest_s or options.limits.timeout_s
        most = max(1, int(PART_OF_TIMEOUT * timeout_s / PAIR_S))
        return groups_of(mix.pairs, needs, sum(slot.memory_bytes for slot in slots), most)

    def _of_duet(self, duet: Duet) -> PlannedLaunch:
        cell, slices = self._cells[duet.label], self._slices
        sides = [
            self._program(duet.cell(cell, side), slices, words)
            for side, words in zip(get_args(Side), duet.sides, strict=True)
        ]
        return self._together(duet.name, tuple(sides * (len(slices) // len(sides))), slices)

    def _program(self, cell: JobCell, slices: Sequence[Slice], extra: tuple[str, ...] | None = None) -> Program:
        cell, size = self._sizing.sized(cell)
        job, options = cell.job, self._options
        if extra is None:
            extra = () if job in options.neighbours else options.extra
        total = self.ranks if job.group == "all" else self.tenants
        variables = tuple(
            self._environment.job_variables(cell, slice_, total) | self._sizing.variables(job, size)
            for slice_ in slices
        )
        if job.foreign is not None:
            command = resolve_foreign(job.foreign)
        else:
            cmd = expand_variables(job.cmd, variables[0])
            command = resolve_command(cmd, job.name, options.suite.path, options.checkout)
        return Program(cell, command, size, variables, extra)

    def _together(
        self,
        label: str,
        programs: tuple[Program, ...],
        slices: Sequence[Slice],
        mix: str = "",
        pairs: tuple[Pair, ...] = (),
    ) -> PlannedLaunch:
        """Return the launch of all tenants, by blocks if that is the baseline and several run."""
        options, cells = self._options, [program.cell.label for program in programs]
        by_blocks = options.baseline == "blocks" and len(programs) > 1
        launch = replace(self._start(label, programs, slices, self._design(by_blocks, pairs)), mix=mix)
        if launch.design.failure or not by_blocks:
            return launch
        goes_on = one_of_each_kind(slices, self._machine, cells)
        # A neighbour of ours needs no baseline.
        alone = tuple(goer for goer in goes_on if programs[goer.tenant].cell.job not in options.neighbours)
        return replace(launch, goes_on=alone)

    def _design(self, by_blocks: bool, pairs: tuple[Pair, ...]) -> Design:
        options = self._options
        if pairs:
            return InPairs(pairs, self._slices)
        if options.duet is not None:
            return InDuet()
        if options.crowd is not None:
            return options.crowd
        if by_blocks and not options.counted_by:
            return InBlocks()
        return AllAtOnce(f"{options.counted_by} says how much is observed" if by_blocks else "")

    def _start(
        self, label: str, programs: tuple[Program, ...], slices: Sequence[Slice], design: Design = ALL_AT_ONCE
    ) -> PlannedLaunch:
        """Return a launch, with the longest timeout of its jobs."""
        findings = (*self._chosen.findings, *self.plans[programs[0].cell.job.group].findings)
        users = tuple(
            PlannedUser(program, self._spec(program, label, slice_, design))
            for program, slice_ in zip(programs, slices, strict=True)
        )
        longest_s = max(program.cell.job.timeout_s or 0.0 for program in programs)
        return PlannedLaunch(label, design, users, findings, timeout_s=longest_s or None)

    def _with_others(self, launch: PlannedLaunch) -> Iterator[PlannedLaunch]:
        """Yield a launch; for the baseline `whole`, right after it a launch of each of its tenants alone, so that the
        machine's state is the same."""
        yield launch
        if self._options.baseline != "whole" or len(launch.users) < 2:
            return
        for user in launch.users:
            if user.program.cell.job not in self._options.neighbours:
                alone = self._start(user.cell + SOLO, (user.program,), (user.slice.alone,))
                yield replace(alone, baseline="whole", stands_for=(user.slice.tenant,))

    def _spec(self, program: Program, label: str, slice_: Slice, design: Design) -> TenantSpec:
        cell, command, variables = program.cell, program.command, program.variables[slice_.tenant]
        options, paths, group = self._options, self._options.paths, cell.job.group
        place = design.place(slice_.tenant)
        # Both sides of a duet's slice have one seed, so that they do the same work.
        of_slice = 100 * (1 + (slice_.tenant if place is None else place.slice))
        seed = options.uid + (self.ranks if group == "all" else of_slice)
        foreign = cell.job.foreign
        if foreign is None:
            words = [*interpreter(command), str(command), *arguments(cell, variables, program.extra, seed)]
        else:
            words = supervised(foreign, command, slice_.tenant, options.uid)
        socket = paths.socket_of(slice_.tenant)
        # On a shared file system the logs of all nodes are in one directory.
        node = f".node{options.cluster.node}" if options.cluster and options.cluster.node else ""
        log = paths.logs / f"{label}.R{options.uid}.T{slice_.tenant}{node}.log"
        ranks: Sequence[Sequence[int]] = ()
        # Without isolation no tenant is bound, and the number of threads is the caller's.
        if self._chosen.backend.name != "none":
            ranks = split_ranks(self._machine, slice_, self.ranks) if group == "all" else [slice_.processors]
        environment = self._environment.added(variables, cell, slice_, ranks, log)
        environment |= node_variables(options.cluster, cell.nodes)
        follows = None if options.cluster is None else options.cluster.follows(cell.nodes)
        if follows:
            del environment[SOCKET_VARIABLE]
        # Tenants of a design that needs blocks never all run at once.
        environment |= {WARM_UP_VARIABLE: "alone"} if design.failure else {}
        temporary = Path(variables["TEMP_DIRECTORY"])
        if foreign is not None:
            # Sockets of multiprocessing below this directory have paths short enough for the kernel.
            temporary = socket.with_name(f"d{socket.name}")
            environment = environment_without_jobs(environment, foreign, temporary)
        if options.image is not None:
            places = {paths.base, paths.output, paths.sockets, options.checkout, command.parent}
            # A missing directory cannot be bound; the default one for data is below the base.
            places |= {place for place in (paths.data, mps_pipes(os.environ)) if place.is_dir()}
            words = options.image.around(words, slice_.accelerators, places, environment)
        return TenantSpec(slice_, words, environment, log, temporary, socket, cell.label, foreign, follows)


def _residents(slots: Sequence[Slice], count: int) -> tuple[Slice, ...]:
    """Return the slices of `count` tenants, two of which meet at a time: each has a slot's processors, and memory on
    the nodes of both slots."""
    nodes = tuple(sorted({node for slot in slots for node in slot.nodes}))
    return tuple(
        replace(slots[number % len(slots)], tenant=number, nodes=nodes, slices=count) for number in range(count)
    )


def _without_device(unsupported: Iterable[Job]) -> Iterator[str]:
    """Yield a sentence for the families that lack the same precisions on a processor."""
    precisions_of, families_of = defaultdict[str, list[object]](list), defaultdict[tuple[object, ...], list[str]](list)
    for job in unsupported:
        precisions_of[job.family].append(dict(job.args)[PRECISION][0])
    for family, precisions in precisions_of.items():
        families_of[tuple(precisions)].append(family)
    for lacking, families in families_of.items():
        cells = f"cells in {' and '.join(map(str, lacking))}"
        alone = f"a processor trains in {' and '.join(ON_PROCESSORS)} alone"
        yield f"{', '.join(families)}: {cells} are left out, as {alone}."


def _check_labels(starts: Collection[PlannedLaunch]) -> None:
    """Raise CotenantError for a job named as another's tenant alone or in a mix: both would write the same files."""
    jobs = {launch.label for launch in starts if not launch.solo and not launch.mix}
    turns = (launch.of_turn(goer) for launch in starts for goer in launch.goes_on)
    for launch in chain(chain.from_iterable(launch.met for launch in starts), turns):
        for name, program in zip(launch.names, launch.programs, strict=True):
            if (launch.solo or launch.mix) and name in jobs:
                where = f"in the mix '{launch.mix}'" if launch.mix else "alone"
                raise CotenantError(
                    f"Job '{name}' has the name of a launch of a user of '{program.cell.label}' {where}.",
                    "Rename one, or choose one of them with --name.",
                )
