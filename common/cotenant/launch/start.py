"""From options and a machine to what will be started: everything that can be wrong is found before anything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cotenant.errors import CotenantError
from cotenant.finding import Finding
from cotenant.isolation.choose import Chosen
from cotenant.isolation.memory_shares import Mems
from cotenant.isolation.plan import Plan, Policy, Slice, plan, plan_whole, ranks_of_all, split_ranks, tenants_by_default
from cotenant.isolation.runs import RunName
from cotenant.launch.baseline import BaselineKind, alone_of
from cotenant.launch.command import CachePolicy, in_container, nocache_prefix, resolve_command
from cotenant.launch.environment import added_environment, free_ports, job_variables, seed_of
from cotenant.launch.limits import USUAL_LIMITS, Limits
from cotenant.launch.paths import RunPaths
from cotenant.launch.sizing import Sizing, check_axis
from cotenant.launch.tenant import TenantSpec
from cotenant.machine.topology import Machine
from cotenant.procfs import format_list
from cotenant.results.record import SOLO, Baseline
from cotenant.suite.cells import ON_PROCESSORS, JobCell, arguments, expand, fitting, without_unsupported
from cotenant.suite.fields import PRECISION
from cotenant.suite.jobfile import Job, Suite
from cotenant.suite.sizes import Size
from cotenant.suite.variables import expand_variables


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for."""

    suite: Suite
    jobs: tuple[Job, ...]
    checkout: Path
    run: RunName
    paths: RunPaths
    uid: int = 0
    users: int | None = None
    isolation: str = "auto"
    cgroup_base: str | None = None
    policy: Policy = "cores"
    mems: Mems = "local"
    reserve_bytes: int | None = None
    limits: Limits = USUAL_LIMITS
    memory_class: str | None = None
    singularity: str | None = None
    cache: CachePolicy = "none"
    baseline: BaselineKind = "none"
    raise_error: bool = False
    resume: bool = False
    extra: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Start:
    """A cell, its command, and a spec per tenant.

    One of a `baseline` has a single spec: one tenant as it is beside others; `stands_for` names the tenants whose
    baseline that is.
    """

    cell: JobCell
    label: str
    """The start of its files' names."""
    command: Path
    specs: tuple[TenantSpec, ...]
    findings: tuple[Finding, ...]
    size: Size | None = None
    """From the table of batch sizes, where the job leaves it to that."""
    baseline: Baseline | None = None
    stands_for: tuple[int, ...] = ()

    @property
    def solo(self) -> bool:
        """Whether one tenant is launched alone."""
        return self.baseline is not None

    @property
    def key(self) -> str:
        """What names it among the launches of its suite: tenants alone have one label."""
        return f"{self.label} T{self.specs[0].slice.tenant}" if self.solo else self.label

    @property
    def sharers(self) -> int:
        """How many of its tenants have the same processors: as many everywhere, and alone it is one."""
        return max(Counter(spec.slice.processors for spec in self.specs).values())


class Resolver:
    """Turns cells into starts, for one machine. Raises CotenantError for what cannot be started."""

    def __init__(self, options: Options, machine: Machine, chosen: Chosen) -> None:
        self._options = options
        self._machine = machine
        self._chosen = chosen
        self.tenants = tenants_by_default(machine, options.users)
        self.plans: dict[str, Plan] = {
            "student": plan(
                machine,
                self.tenants,
                policy=options.policy,
                mems=options.mems,
                reserve_bytes=options.reserve_bytes,
            ),
            "all": plan_whole(machine, options.reserve_bytes),
        }
        self.ranks = ranks_of_all(machine, self.plans["student"])
        self._port = free_ports(self.tenants)
        for job in options.jobs:
            check_axis(job, options.extra)
        tables = (options.suite.path.parent, options.checkout / "profiles")
        self._sizing = Sizing(options.memory_class, tables, self.plans, options.extra)
        self._jobs = without_unsupported(options.jobs, has_devices=bool(machine.accelerators))

    def starts(self) -> tuple[Start, ...]:
        """Return every cell that fits of the chosen jobs, in the file's order, each followed by its baselines."""
        starts = tuple(
            start
            for job in self._jobs
            for cell in fitting(job, self.ranks)
            if not self._sizing.is_too_large(cell)
            for start in self._starts(cell)
        )
        if not starts:
            raise CotenantError("No job is left to run.", " ".join(self.left_out()))
        _check_labels(starts)
        return starts

    def left_out(self) -> tuple[str, ...]:
        """Return a sentence for what of the chosen jobs this machine has no precision, devices or memory for."""
        sentences = [*_without_device(job for job in self._options.jobs if job not in self._jobs)]
        for job in self._jobs:
            too_many = {cell.devices for cell in {*expand(job)} - {*fitting(job, self.ranks)}}
            if too_many:
                cells = f"cells of --devices {format_list(too_many)}"
                sentences.append(f"{job.stem}: {cells} are left out, as DEVICE_TOTAL is {self.ranks}.")
        return (*sentences, *self._sizing.left_out(self._jobs))

    def _starts(self, cell: JobCell) -> Iterator[Start]:
        """Yield all tenants together, then whom the baseline has alone: both rates are of one state of the machine."""
        cell, size = self._sizing.sized(cell)
        job, options, planned = cell.job, self._options, self.plans[cell.job.group]
        suite, uid, port = options.suite.name, options.uid, self._port
        total = self._total(job)
        variables = [
            job_variables(cell, suite, uid, total, slice_, self._machine, options.paths, port + slice_.tenant)
            | self._sizing.variables(job, size)
            for slice_ in planned.slices
        ]
        cmd = expand_variables(job.cmd, variables[0])
        command = resolve_command(cmd, job.name, options.suite.path, options.checkout)
        findings = (*self._chosen.findings, *planned.findings)

        def start(tenants: Sequence[int], label: str, *alone: Any) -> Start:
            specs = [self._spec(cell, label, command, planned.slices[i], variables[i]) for i in tenants]
            return Start(cell, label, command, tuple(specs), findings, size, *alone)

        yield start(range(len(planned.slices)), cell.label)
        for tenant, stands_for in alone_of(options.baseline, planned.slices, self._machine):
            yield start([tenant], cell.label + SOLO, options.baseline, stands_for)

    def _total(self, job: Job) -> int:
        return self.ranks if job.group == "all" else self.tenants

    def _spec(self, cell: JobCell, label: str, command: Path, slice_: Slice, variables: dict[str, str]) -> TenantSpec:
        options, paths, group = self._options, self._options.paths, cell.job.group
        seed = seed_of(group, options.uid, self._total(cell.job), slice_.tenant)
        words = [str(command), *arguments(cell, variables, options.extra, seed)]
        if options.singularity:
            words = in_container(options.singularity, words, slice_.accelerators, paths, options.checkout)
        words = [*nocache_prefix(options.cache, options.singularity), *words]
        socket = paths.sockets / f"t{slice_.tenant}"
        log = paths.logs / f"{label}.R{options.uid}.T{slice_.tenant}.log"
        ranks: Sequence[Sequence[int]] = ()
        threads = None
        # Without isolation nobody is bound, and threads are as many as the caller has them.
        if self._chosen.backend.name != "none":
            ranks = split_ranks(self._machine, slice_, self.ranks) if group == "all" else ()
            threads = len(ranks[0] if ranks else slice_.processors)
        environment = added_environment(variables, cell, slice_, threads, ranks, options.run, socket, log)
        return TenantSpec(slice_, words, environment, log, Path(variables["TEMP_DIRECTORY"]), socket)


def _without_device(unsupported: Iterable[Job]) -> Iterator[str]:
    """Yield a sentence for the families that lack the same precisions on a processor."""
    precisions_of: dict[str, tuple[object, ...]] = {}
    for job in unsupported:
        precisions_of[job.family] = (*precisions_of.get(job.family, ()), dict(job.args)[PRECISION][0])
    families_of: dict[tuple[object, ...], list[str]] = {}
    for family, precisions in precisions_of.items():
        families_of.setdefault(precisions, []).append(family)
    for precisions, families in families_of.items():
        cells = f"cells in {' and '.join(map(str, precisions))}"
        alone = f"a processor trains in {' and '.join(ON_PROCESSORS)} alone"
        yield f"{', '.join(families)}: {cells} are left out, as {alone}."


def _check_labels(starts: Sequence[Start]) -> None:
    """Refuse a job that is called like a tenant of another alone: both would write the same files."""
    together = {start.label for start in starts if not start.solo}
    for start in starts:
        if start.solo and start.label in together:
            raise CotenantError(
                f"Job '{start.label}' is called like a launch of a tenant of '{start.cell.label}' alone.",
                "Rename one, or choose one of them with --name.",
            )
