"""`cotenant run`: flags to options, a suite run, a table."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from cotenant.checkout import CHECKOUT, INSTALLED, PROGRAM, base_directory, output_directory
from cotenant.commands import GROUPS
from cotenant.commands.flags import (
    Parser,
    add_format,
    add_slice_flags,
    at_dashes,
    duration,
    duration_or_none,
    place,
    share,
)
from cotenant.commands.output import note, shown, tell, tell_document, tell_grid, warn
from cotenant.commands.preview import dry_document, dry_lines, show_document, show_lines, whole_dry_lines
from cotenant.commands.refusals import refused
from cotenant.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_PASSED, EXIT_USAGE, CotenantError
from cotenant.finding import Finding
from cotenant.isolation.lock import SuiteLock, lock_path
from cotenant.isolation.plan import plan, ranks_of_all, tenants_by_default
from cotenant.isolation.runs import RunName
from cotenant.launch.baseline import BASELINES, BaselineKind
from cotenant.launch.command import CACHE_POLICIES
from cotenant.launch.limits import READY_LIMIT_S, TIMEOUT_S, Limits
from cotenant.launch.paths import RunPaths
from cotenant.launch.start import Options, Start
from cotenant.launch.suite import SuiteRun
from cotenant.machine.topology import Machine, discover
from cotenant.report.progress import PlainView, Planned, Progress, duration_words
from cotenant.results.last import last_seconds
from cotenant.results.record import Record
from cotenant.suite.jobfile import load, resolve_path, select
from cotenant.suite.sizes import CLASSES

HINT = "--name chooses jobs; a benchmark's own flags stand after --; --help lists all others."
EXIT_STATUSES = (
    "exit status: 0 all passed, 1 a job failed, 2 wrong usage or input, 4 isolation was required and cannot be had, "
    "130 interrupted"
)
SETTLE_S, AT_LEAST_S = 3.0, 10.0
"""On devices: most benchmarks of the reference take less than two seconds there, too short for heat, power, energy."""


def main(argv: Sequence[str]) -> int:
    """Run a suite. Returns 0 all passed, 1 a job failed, 130 interrupted, 2 where a task would refuse its arguments.

    Tasks are asked by `--dry`, and where a person gives arguments after --.

    Raises CotenantError for the rest.
    """
    ours, others = at_dashes(argv)
    given = _parse(ours)
    if given.show or given.dry:
        return _preview(given, others)
    # Before anything that takes a while: who has to wait learns it at once.
    with SuiteLock(lock_path()):
        return _run(given, others)


def _preview(given: argparse.Namespace, others: tuple[str, ...]) -> int:
    """Print what would run."""
    machine = discover()
    options = options_of(given, others, machine)
    if given.show:
        tenants = tenants_by_default(machine, options.users)
        made = plan(machine, tenants, policy=options.policy, mems=options.mems, reserve_bytes=options.reserve_bytes)
        ranks = ranks_of_all(machine, made)
        if given.format == "json":
            tell_document(show_document(options.jobs, ranks))
        else:
            tell("\n".join(show_lines(options.jobs, tenants, ranks, options.baseline)))
        return EXIT_PASSED
    run = SuiteRun(options, machine)
    refusals, backend = refused(run.starts), run.chosen.backend.name
    if given.format == "json":
        tell_document(dry_document(run.starts, backend, run.left_out, refusals))
    elif given.verbose:
        tell("\n".join([*run.left_out, *whole_dry_lines(run.starts, backend)]))
    else:
        tell("\n".join([*run.heading(), *dry_lines(run.starts)]))
    for sentence in refusals:
        warn(sentence)
    return EXIT_USAGE if refusals else EXIT_PASSED


def _run(given: argparse.Namespace, others: tuple[str, ...]) -> int:
    """Run the suite. With `--format json` standard output has the document alone, and the rest is on standard error."""
    machine = discover()
    options = options_of(given, others, machine)
    run = SuiteRun(options, machine)
    if others and (refusals := refused(run.starts)):
        for sentence in refusals:
            warn(sentence)
        return EXIT_USAGE
    run.settle()
    whole = given.format == "json"
    say = note if whole else tell
    say("\n".join(run.heading()))
    planned = _planned(run.starts, options)
    if (expected := Progress(planned).remaining_s()) is not None:
        say(f"expected: {duration_words(expected[0])}, {expected[1]}")
    try:
        with contextlib.nullcontext(PlainView(planned, note)) if whole else shown(planned) as view:
            report = run.run(view.tell, view)
    finally:
        # Also where a full disk ends it in the middle.
        if run.records:
            _print_results(run.records, run.before, given)
            say(f"As a page, with pictures: {_report_command(options.paths.output)} --html page.html")
    if report.interrupted:
        note(f"Interrupted by {report.interrupted}; the records so far are in {options.paths.output}.")
        return EXIT_INTERRUPTED
    failed = any(not record.completed or _is_doubtful(record, given.strict) for record in report.records)
    return EXIT_FAILED if failed else EXIT_PASSED


def _planned(starts: Sequence[Start], options: Options) -> list[Planned]:
    """Return the launches for who watches them, with what each took last time here."""
    seconds = last_seconds(options.paths.output, options.suite.name)
    return [
        Planned(f"{start.cell.label} alone" if start.solo else start.label, start.solo, seconds.get(start.label))
        for start in starts
    ]


def _is_doubtful(record: Record, strict: str | None) -> bool:
    """Whether a record that completed counts as failed: an INVALID one, or also one with a warning."""
    severities = {"invalid": {"error"}, "suspect": {"error", "warning"}}.get(strict or "", set())
    return any(finding.severity in severities for finding in record.findings)


def _print_results(records: Sequence[Record], before: Collection[Finding], given: argparse.Namespace) -> None:
    """Print what the records say. What reads them takes a while to import, so that comes after the last launch."""
    try:
        from cotenant.report.jobs import suite_grids, suite_report
        from cotenant.report.renderers import show
    except ModuleNotFoundError as error:
        warn(f"There is no table: the package '{error.name}' is missing. The records are written all the same.")
        return
    if given.format == "json":
        tell_grid(suite_report(records), given.format)
    else:
        show(suite_grids(records, before, given.verbose))


def _report_command(output: Path) -> str:
    """Return the command that reports on an output directory, which is not named where it is the usual one."""
    place = "" if output == output_directory() else f" {shlex.quote(str(output))}"
    return f"{PROGRAM} report{place}"


def _parse(words: Sequence[str]) -> argparse.Namespace:
    return parser().parse_words(words)


def parser() -> Parser:
    """Return the parser of `run`, whose help is that of the whole program."""
    parser = suite_parser(
        "",
        "Launch the jobs of a suite, one copy per tenant at the same moment, each in its slice of this machine.",
        "\n".join(
            [
                f"Arguments after -- go to the benchmarks: {PROGRAM} --name vae -- --repeat 5",
                *(line for group in GROUPS.items() for line in _command_lines(*group)),
                f"{PROGRAM} help COMMAND prints a command's flags.",
                EXIT_STATUSES,
            ]
        ),
    )
    parser.usage = "%(prog)s [flags] [-- arguments of the benchmarks]\n       %(prog)s COMMAND [flags]"
    printed = parser.add_argument_group("what is printed")
    add = printed.add_argument
    add("--show", action="store_true", help="the chosen jobs with their cells and commands; nothing runs")
    what = "every launch with its command, and what tasks refuse of their arguments; nothing runs"
    add("--dry", action="store_true", help=what)
    add("--verbose", action="store_true", help="more: every finding; with --dry each tenant's slice and environment")
    add_format(printed)
    add(
        "--strict",
        nargs="?",
        const="invalid",
        choices=("invalid", "suspect"),
        help="an INVALID launch counts as failed; --strict=suspect: so does one with a warning",
    )
    return parser


def _command_lines(title: str, commands: Mapping[str, str]) -> list[str]:
    return [f"commands {title}:", *(f"  {name:15} {what}" for name, what in commands.items())]


def suite_parser(command: str, description: str, epilog: str = "") -> Parser:
    """Return a parser with the flags that say what is to run, and how: `options_of` reads what it gives."""
    parser = Parser(command, description, epilog, HINT)
    runs = parser.add_argument_group("what runs")
    add = runs.add_argument
    add_jobs(add)
    small = "batch sizes of this class, where a job names $BATCH_SIZE (default: the class of a tenant's device memory)"
    add("--memory-class", choices=CLASSES, help=small)
    add("--uid", type=int, default=0, help="number of this repetition of the suite (default 0)")
    alone = runs.add_mutually_exclusive_group()
    kinds = (
        "after each launch, measure what a tenant has alone: each as long as beside the others (whole), one for all "
        "equal slices in a few seconds (quick; the default without --jobs), or nobody (none)"
    )
    alone.add_argument("--baseline", choices=BASELINES, help=kinds)
    whole = "the same as --baseline whole"
    alone.add_argument("--solo", action="store_const", const="whole", dest="baseline", help=whole)
    add("--singularity", metavar="IMG", help="run every command inside this image")
    add("--raise-error", action="store_true", help="stop after the first launch that fails")
    add("--resume", action="store_true", help="go on with this --uid after its last finished launch")
    add("--outdir", type=place, help="where records go (default $BASE/output)")
    add_slice_flags(parser)
    add = parser.add_argument_group("how it is measured").add_argument
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
    return parser


def add_jobs(add: Callable[..., object]) -> None:
    """Add the flags that choose jobs."""
    add("--jobs", metavar="FILE", help="a job file, or the name of one in profiles/")
    names = "only these jobs: names, globs, comma lists"
    add("--name", action="append", default=[], metavar="NAMES", help=names)
    add("--exclude", action="append", default=[], metavar="NAMES", help="not these jobs")


def options_of(given: argparse.Namespace, extra: tuple[str, ...], machine: Machine) -> Options:
    """Return what is asked for; without `--jobs` the machine decides which suite.

    Raises CotenantError for what makes no sense, and for a wrong job file.
    """
    if given.uid < 0:
        raise CotenantError(f"--uid {given.uid} is negative.", "Use --uid 0 or more.")
    if given.singularity and INSTALLED:
        raise CotenantError(
            "--singularity binds a checkout into the image, and this is an installed package.",
            "Use ./run.sh of a checkout.",
        )
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
        baseline=_baseline(given),
        raise_error=given.raise_error,
        resume=given.resume,
        extra=extra,
    )


def _baseline(given: argparse.Namespace) -> BaselineKind:
    """Return which baseline is asked for; quick where nobody says which jobs: a job file names all that is to run.

    Without slices nothing is alone in one, so that nothing is measured there that nobody asked for.
    """
    if given.baseline is not None:
        kind: BaselineKind = given.baseline
        return kind
    return "quick" if given.jobs is None and given.isolation != "none" else "none"


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
        raise CotenantError(
            f"--at-least and {other} both say how much is observed.", f"Leave out --at-least, or {other}."
        )
    return least


def default_jobs(machine: Machine) -> Path:
    """Return the reference suite where there is an accelerator, and its CPU sizes where there is none."""
    return CHECKOUT / ("baselines.json" if machine.accelerators else "profiles/cpu.json")
