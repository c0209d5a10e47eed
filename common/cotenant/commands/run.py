"""`cotenant run`: flags to options, a suite run, a table."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from cotenant.checkout import CHECKOUT, base_directory, output_directory
from cotenant.commands.flags import Parser, add_slice_flags, at_dashes, duration, duration_or_none, place, share
from cotenant.commands.output import shown, tell, warn
from cotenant.commands.refusals import refused
from cotenant.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_PASSED, EXIT_USAGE, CotenantError
from cotenant.finding import Finding
from cotenant.isolation.plan import ranks_of_all, tenants_by_default
from cotenant.isolation.runs import RunName
from cotenant.launch.command import CACHE_POLICIES
from cotenant.launch.limits import READY_LIMIT_S, TIMEOUT_S, Limits
from cotenant.launch.paths import RunPaths
from cotenant.launch.start import Options, Start
from cotenant.launch.suite import SuiteRun
from cotenant.machine.topology import Machine, discover
from cotenant.procfs import format_list
from cotenant.results.record import Record
from cotenant.suite.cells import expand, fitting
from cotenant.suite.jobfile import Job, load, resolve_path, select
from cotenant.suite.sizes import CLASSES

SETTLE_S, AT_LEAST_S = 3.0, 10.0
"""On devices: most benchmarks of the reference take less than two seconds there, too short for heat, power, energy."""


def main(argv: Sequence[str]) -> int:
    """Run a suite. Returns 0 all passed, 1 a job failed, 130 interrupted, 2 where a task would refuse its arguments.

    Tasks are asked by `--dry`, and where a person gives arguments after --.

    Raises CotenantError for the rest.
    """
    ours, others = at_dashes(argv)
    given = _parse(ours)
    machine = discover()
    options = options_of(given, others, machine)
    if given.show:
        tenants = tenants_by_default(machine, options.users)
        tell("\n".join(show_lines(options.jobs, tenants, ranks_of_all(machine, options.users), options.solo)))
        return EXIT_PASSED
    run = SuiteRun(options, machine)
    if given.dry:
        tell("\n".join([*run.left_out, *dry_lines(run.starts, run.chosen.backend.name)]))
    if given.dry or others:
        sentences = refused(run.starts)
        for sentence in sentences:
            warn(sentence)
        if given.dry or sentences:
            return EXIT_USAGE if sentences else EXIT_PASSED
    run.settle()
    tell("\n".join(run.heading()))
    try:
        with shown([start.label for start in run.starts]) as view:
            report = run.run(view.tell, view) if view else run.run(tell)
    finally:
        # Also where a full disk ends it in the middle.
        if run.records:
            _print_table(run.records, run.before, given.verbose)
            tell(f"As a page, with pictures: ./run.sh report {options.paths.output} --html page.html")
    if report.interrupted:
        print(
            f"Interrupted by {report.interrupted}; the records so far are in {options.paths.output}.",
            file=sys.stderr,
        )
        return EXIT_INTERRUPTED
    failed = any(not record.completed or _is_doubtful(record, given.strict) for record in report.records)
    return EXIT_FAILED if failed else EXIT_PASSED


def _is_doubtful(record: Record, strict: str | None) -> bool:
    """Whether a record that completed counts as failed: an INVALID one, or also one with a warning."""
    severities = {"invalid": {"error"}, "suspect": {"error", "warning"}}.get(strict or "", set())
    return any(finding.severity in severities for finding in record.findings)


def _print_table(records: Sequence[Record], before: Collection[Finding], verbose: bool) -> None:
    """Print what the records say. What reads them takes a while to import, so that comes after the last launch."""
    try:
        from cotenant.report.jobs import suite_grids
        from cotenant.report.renderers import show
    except ModuleNotFoundError as error:
        warn(f"There is no table: the package '{error.name}' is missing. The records are written all the same.")
        return
    show(suite_grids(records, before, verbose))


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = suite_parser(
        "run.sh",
        "Launch every benchmark of a job file once per accelerator, all copies at once, each in its slice.",
        "Arguments after -- override or extend every chosen cell's own: ./run.sh --name vae -- --repeat 5. "
        "Other commands, each with --help: ./run.sh plan, doctor, compare, history, report, export, mlbench-report. "
        "Exit status: 0 all passed, 1 a job failed, 2 wrong usage or input, 4 isolation was required and cannot be "
        "had, 130 interrupted.",
    )
    add = parser.add_argument
    add("--show", action="store_true", help="list the chosen jobs and stop")
    add(
        "--dry",
        action="store_true",
        help="print each tenant's command, environment and slice, and what tasks refuse, and stop",
    )
    add("--verbose", action="store_true", help="say more: every finding of every record")
    add(
        "--strict",
        nargs="?",
        const="invalid",
        choices=("invalid", "suspect"),
        help="an INVALID launch counts as failed; --strict=suspect: so does one with a warning",
    )
    return parser.parse_words(words)


def suite_parser(prog: str, description: str, epilog: str = "") -> Parser:
    """Return a parser with the flags that say what is to run, and how: `options_of` reads what it gives."""
    parser = Parser(prog, description, epilog, "--help lists the flags; a benchmark's own stand after --.")
    add = parser.add_argument
    add("--jobs", metavar="FILE", help="a job file, or the name of one in profiles/")
    names = "only these jobs: names, globs, comma lists"
    add("--name", action="append", default=[], metavar="NAMES", help=names)
    add("--exclude", action="append", default=[], metavar="NAMES", help="not these jobs")
    add("--uid", type=int, default=0, help="number of this repetition of the suite (default 0)")
    add("--outdir", type=place, help="where records go (default $BASE/output)")
    add_slice_flags(parser)
    add("--no-nocache", action="store_true", help="accepted: no page-cache policy is the default")
    cache = "page cache of a launch's input: left alone, bypassed, dropped or read before it (default none)"
    add("--cache", choices=CACHE_POLICIES, default="none", help=cache)
    victim = "when the kernel kills a process for memory: end its tenant, or that process alone (default group)"
    add("--on-oom", choices=("group", "process"), default="group", help=victim)
    longest = "seconds one launch may take (default 3600); 2m and 1h are times, too"
    add("--timeout", type=duration, default=TIMEOUT_S, metavar="S", help=longest)
    ready = "seconds a launch's tenants may take to be ready for GO (default 600)"
    add("--ready-timeout", type=duration, default=READY_LIMIT_S, metavar="S", help=ready)
    measured = "seconds one launch may measure: fewer batches, then fewer observations, the same for all its tenants"
    add("--budget", type=duration, metavar="S", help=measured)
    narrow = (
        "end a launch once half of every tenant's 95 %% interval is at most this share of its median, as 1%% or 0.01"
    )
    add("--until-interval", type=share, metavar="SHARE", help=narrow)
    settling = "seconds of unmeasured load before the first observation (default 3s on devices, else 0)"
    add("--settle", type=duration_or_none, metavar="S", help=settling)
    lasting = "observe until the kept observations last so long (default 10s on devices, else 0; not with --budget)"
    add("--at-least", type=duration_or_none, metavar="S", help=lasting)
    small = "batch sizes of this class, where a job names $BATCH_SIZE (default: the class of a tenant's device memory)"
    add("--memory-class", choices=CLASSES, help=small)
    add("--solo", action="store_true", help="after each launch, launch its tenants one at a time: what neighbours cost")
    add("--singularity", metavar="IMG", help="run every command inside this image")
    add("--raise-error", action="store_true", help="stop after the first launch that fails")
    return parser


def options_of(given: argparse.Namespace, extra: tuple[str, ...], machine: Machine) -> Options:
    """Return what is asked for; without `--jobs` the machine decides which suite.

    Raises CotenantError for what makes no sense, and for a wrong job file.
    """
    if given.uid < 0:
        raise CotenantError("--uid must not be negative.")
    path = resolve_path(given.jobs, [Path.cwd(), CHECKOUT]) if given.jobs is not None else default_jobs(machine)
    suite = load(path)
    base = base_directory()
    output = (given.outdir or output_directory()).absolute()
    data = Path(os.environ.get("DATA_DIRECTORY") or base / "data").absolute()
    run = RunName()
    return Options(
        suite=suite,
        jobs=select(suite.jobs, given.name, given.exclude),
        checkout=CHECKOUT,
        run=run,
        paths=RunPaths.of_run(base, data, output, run),
        uid=given.uid,
        users=given.users,
        isolation=given.isolation,
        cgroup_base=given.cgroup_base,
        policy=given.plan,
        mems=given.mems,
        reserve_bytes=given.reserve,
        limits=Limits(
            timeout_s=given.timeout,
            ready_limit_s=given.ready_timeout,
            budget_s=given.budget,
            until_interval=given.until_interval,
            settle_s=(SETTLE_S if machine.accelerators else 0.0) if given.settle is None else given.settle,
            at_least_s=_at_least_s(given, extra, machine),
            on_oom=given.on_oom,
        ),
        memory_class=given.memory_class,
        singularity=given.singularity,
        cache=given.cache,
        solo=given.solo,
        raise_error=given.raise_error,
        extra=extra,
    )


def _at_least_s(given: argparse.Namespace, extra: Sequence[str], machine: Machine) -> float:
    """Return the time that kept observations last: by default only where nobody says how many there are.

    A job file's `--repeat` is that of the reference, made for slower devices. Raises CotenantError for two wishes.
    """
    repeat = any(word.partition("=")[0] == "--repeat" for word in extra)
    if given.at_least is None:
        return AT_LEAST_S if machine.accelerators and given.budget is None and not repeat else 0.0
    least: float = given.at_least
    if least and (given.budget is not None or repeat):
        other = "--repeat" if repeat else "--budget"
        raise CotenantError(f"--at-least and {other} both say how much is observed.", f"Leave one out, or {other}.")
    return least


def show_lines(jobs: Iterable[Job], tenants: int, ranks: int, solo: bool = False) -> Iterator[str]:
    """Yield a line per job: its name, group, how many cells run, command. With `solo` each tenant also runs alone.

    `ranks`: of a job that owns the machine.
    """
    for job in jobs:
        every, cells = len(expand(job)), len(fitting(job, ranks))
        of = f" of {every}" if cells < every else ""
        alone = f" + {cells * tenants} solo" if solo and tenants > 1 and job.group == "student" else ""
        yield f"{job.stem:28} {job.group:8} {cells:3d} cell{'s' if cells > 1 else ' '}{of}{alone}  {job.cmd}"


def dry_lines(starts: Iterable[Start], backend: str) -> Iterator[str]:
    """Yield each tenant's slice, exact command, and what its environment has beyond the caller's."""
    for start in starts:
        for spec in start.specs:
            slice_ = spec.slice
            devices = ",".join(accelerator.uuid for accelerator in slice_.accelerators) or "none"
            beside = "alone" if start.solo else f"of {len(start.specs)}"
            yield f"{start.label}, tenant {slice_.tenant} {beside}"
            yield (
                f"  slice    processors {format_list(slice_.processors)}  nodes {format_list(slice_.nodes)}  "
                f"memory {slice_.memory_bytes / 2**30:.2f} GiB  accelerators {devices}  by {backend}"
            )
            if start.size:
                more = "".join(f" {flag} {value}" for flag, value in start.size.args)
                yield f"  sizes    {start.size.memory_class}: batch size {start.size.batch_size}{more}"
            yield f"  command  {shlex.join(spec.command)}"
            yield from (f"  env      {name}={value}" for name, value in spec.environment.items())
        yield from (f"  finding  {finding.sentence} {finding.remedy}".rstrip() for finding in start.findings)


def default_jobs(machine: Machine) -> Path:
    """Return the reference suite where there is an accelerator, and its CPU sizes where there is none."""
    return CHECKOUT / ("baselines.json" if machine.accelerators else "profiles/cpu.json")
