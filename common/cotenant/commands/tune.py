"""`tune`: finds for each chosen job the batch size, workers, memory format and so on that are fastest here."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cotenant.checkout import CHECKOUT, PROGRAM
from cotenant.choices import READY_LIMIT_S, TIMEOUT_S
from cotenant.commands.flags import Parser, add_slice_flags, duration, place
from cotenant.commands.output import live_console, tell, tell_grid, warn, write_page
from cotenant.commands.suite_flags import add_jobs, suite_parser
from cotenant.commands.suite_options import options_of
from cotenant.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_PASSED, CotenantError, IsolationError
from cotenant.isolation.lock import SuiteLock, lock_path
from cotenant.launch.start import Options
from cotenant.launch.tuned_file import check_target, write_tuned
from cotenant.launch.tuning import KNOBS, Tuner
from cotenant.machine.topology import Machine, discover
from cotenant.report.tuning import LiveSearch, PlainSearch, search_grid
from cotenant.results.store import check_place
from cotenant.suite.cells import Job, with_values
from cotenant.suite.fields import PRECISION
from cotenant.text import many

MEASURED_S = 5.0
"""Seconds of measurement in a launch: to start and build takes about as long."""
PRECISIONS = ("tf32", "bf16", "fp16")


def main(argv: Sequence[str]) -> int:
    """Search and write the new job file. Returns 0; 1 if a job has no rate, 130 if it was interrupted.

    Raises CotenantError for wrong input.
    """
    given = parser().parse_words(argv)
    out: Path = given.out.absolute()
    given.outdir = given.outdir or out.with_suffix(".tuning")
    machine = discover()
    flags = suite_parser("tune", "").completed(given, budget=given.measured, at_least=0.0, baseline="none")
    options = options_of(flags, (), machine, jobs_alone=True)
    check_target(out, options.suite.path)
    options.plan(machine)  # If slices cannot be planned, no job can run.
    jobs = [precise for job in options.jobs for precise in _in_precisions(job, given.allow)]
    check_place(options.paths.output)
    tuners = _tuners(jobs, options, machine, given.only)
    if not tuners:
        return EXIT_FAILED
    with SuiteLock(lock_path()):
        status = _tune(given, options, tuners)
    return status or (EXIT_PASSED if len(tuners) == len(jobs) else EXIT_FAILED)


def parser() -> Parser:
    """Return the parser of `tune`."""
    parser = Parser(
        "tune",
        "Find the fastest setting of each job that fits this machine's slices, and write a job file with it.",
        "Rates are those of whole launches: all users at once, each in its slice. docs/tuning.md",
        "--help lists the flags.",
    )
    add = parser.add_argument_group("what is tuned").add_argument
    add_jobs(add)
    add("--out", type=place, metavar="FILE", required=True, help="the job file to write")
    what = f"search over these alone: {', '.join(KNOBS)} (comma list; default all)"
    add("--only", type=_knobs, default=KNOBS, metavar="KNOBS", help=what)
    other = "also tune each job in this precision, as a job of its own; may be repeated"
    add("--allow", action="append", default=[], choices=PRECISIONS, help=other)
    all_of = "what all searches together may take; a later start with more goes on (default 30m)"
    add("--budget", type=duration, default=1800.0, metavar="S", help=all_of)
    measured = "what a launch measures (default 5s)"
    add("--measured", type=duration, default=MEASURED_S, metavar="S", help=measured)
    add("--html", type=place, metavar="FILE", help="write the searches as one page that works offline")
    where = "where records go, a directory for each job (default: FILE with .tuning at its end)"
    add("--outdir", type=place, metavar="DIR", help=where)
    add("--timeout", type=duration, default=TIMEOUT_S, metavar="S", help="seconds one launch may take")
    add("--ready-timeout", type=duration, default=READY_LIMIT_S, metavar="S", help="seconds until GO")
    add_slice_flags(parser)
    return parser


def _knobs(text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in KNOBS]:
        raise argparse.ArgumentTypeError(f"'{unknown[0]}' is none of {', '.join(KNOBS)}")
    return tuple(names)


def _in_precisions(job: Job, allowed: Sequence[str]) -> Iterator[Job]:
    """Yield a job, then a job for each allowed precision, named as the jobs of a precision axis are."""
    yield job
    own = dict(job.args).get(PRECISION, ("fp32",))[0]
    for precision in allowed:
        if not job.family and precision != own:
            precise = with_values(job, PRECISION, precision)
            yield replace(precise, name=f"{job.name}_{precision}", stem=f"{job.stem}_{precision}")


def _tuners(jobs: Sequence[Job], options: Options, machine: Machine, knobs: Sequence[str]) -> dict[str, Tuner]:
    """Return the searches by their jobs' stems; warn of jobs that cannot be tuned. Raises IsolationError."""
    tuners: dict[str, Tuner] = {}
    for job in jobs:
        paths = replace(options.paths, output=options.paths.output / job.stem)
        try:
            tuners[job.stem] = Tuner(replace(options, paths=paths), machine, job, knobs)
        except IsolationError:
            raise
        except CotenantError as error:
            warn(f"{job.stem}: left out: {error}")
    return tuners


def _tune(given: argparse.Namespace, options: Options, tuners: Mapping[str, Tuner]) -> int:
    results: dict[str, Tuner] = {}
    left_s, status = given.budget, EXIT_PASSED
    for name, tuned in tuners.items():
        if left_s <= 0:
            warn(f"{name}: the budget is spent; start again with a larger --budget to go on.")
            continue
        try:
            if not results:
                tell(f"{tuned.tenancy}; records: {options.paths.output}")
            with _view(name, left_s) as view:
                tuned.run(view, left_s)
        except CotenantError as error:
            warn(f"{name}: left out: {error}")
            status = EXIT_FAILED
            continue
        left_s -= sum(trial.seconds for trial in tuned.search.trials)
        if any(trial.rate is not None for trial in tuned.search.trials):
            results[name] = tuned
            tell_grid(search_grid(tuned.search, name, tuned.unit), "text")
        if tuned.ended == "interrupted":
            status = EXIT_INTERRUPTED
            break
    if not results:
        warn("No job has a rate: nothing is written.")
        return status or EXIT_FAILED
    write_tuned(given.out.absolute(), list(results.values()), CHECKOUT)
    if given.html is not None:
        from cotenant.report.view_pages import tuning_page  # matplotlib takes a second to import

        searches = {name: (tuned.search, tuned.unit) for name, tuned in results.items()}
        write_page(given.html, tuning_page(f"Tuned: {given.out.name}", searches))
    tell(f"{given.out}: {many(len(results), 'job')}. Run it: {PROGRAM} --jobs {given.out}")
    if status == EXIT_INTERRUPTED:
        warn("Interrupted: the same command goes on with what was measured.")
    return status


def _view(name: str, budget_s: float) -> contextlib.AbstractContextManager[LiveSearch | PlainSearch]:
    if (console := live_console()) is None:
        return contextlib.nullcontext(PlainSearch(name, budget_s, tell))
    return contextlib.closing(LiveSearch(name, budget_s, console))
