"""`tune`: finds for each chosen job the batch size that is the fastest here."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cotenant.checkout import PROGRAM
from cotenant.commands.flags import Parser, add_slice_flags, duration, given_path
from cotenant.commands.given import SuiteFlags, add_flags
from cotenant.commands.output import tell, warn
from cotenant.commands.suite_flags import add_jobs
from cotenant.commands.suite_options import options_of
from cotenant.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_PASSED, CotenantError, IsolationError
from cotenant.isolation.lock import SuiteLock, lock_path
from cotenant.launch.start import Options
from cotenant.machine.topology import Machine, discover
from cotenant.questions.sizes import Search
from cotenant.questions.tune import Tuner
from cotenant.report import numbers
from cotenant.results.store import check_place, write_named
from cotenant.text import many

OTHER_FILE = "--out names another file."
MEASURED_S = 5.0  # Starting and building take about as long.


def main(argv: Sequence[str]) -> int:
    """Search and write the new job file. Returns 0; 1 if a job has no rate, 130 if it was interrupted.

    Raises CotenantError for wrong input.
    """
    given = parser().parse_words(argv)
    out: Path = given.out.absolute()
    machine = discover()
    output = given.outdir or out.with_suffix(".tuning")
    flags = SuiteFlags.of(given, outdir=output, budget=MEASURED_S, at_least=0.0, baseline="none")
    options = options_of(flags, (), machine, jobs_alone=True)
    check_place(out.parent, OTHER_FILE)
    if out.exists() and (out.samefile(options.suite.path) or '"tuned"' not in out.read_text(errors="replace")):
        raise CotenantError(f"{given.out} exists, and no search for {options.suite.name} wrote it.", OTHER_FILE)
    options.plan(machine)  # If slices cannot be planned, no job can run.
    check_place(options.paths.output)
    with SuiteLock(lock_path()):
        results, interrupted = _searched(options, machine, given.budget)
    if results:
        content = json.dumps([tuned.entry() for tuned in results], indent=1).encode() + b"\n"
        out.parent.mkdir(parents=True, exist_ok=True)
        write_named(out, content, OTHER_FILE)
        tell(f"{given.out}: {many(len(results), 'job')}. Run it: {PROGRAM} --jobs {given.out}")
    else:
        warn("No job has a rate: nothing is written.")
    if interrupted:
        warn("Interrupted: the same command goes on with what was measured.")
        return EXIT_INTERRUPTED
    return EXIT_PASSED if len(results) == len(options.jobs) else EXIT_FAILED


def parser() -> Parser:
    """Return the parser of `tune`."""
    parser = Parser(
        "tune",
        "Find the fastest batch size of each job that fits this machine's slices, and write a job file with it.",
        "Each rate is measured by whole launches: all users at once, each in its slice. docs/tuning.md",
    )
    add = parser.add_argument_group("what is tuned").add_argument
    add_jobs(add)
    add("--out", type=given_path, metavar="FILE", required=True, help="the job file to write")
    all_of = "time for all searches together; a later start with more goes on (default 30m)"
    add("--budget", type=duration, default=1800.0, metavar="S", help=all_of)
    where = "where records go, a directory for each job (default: FILE with .tuning at its end)"
    add("--outdir", type=given_path, metavar="DIR", help=where)
    add_flags(add, "--timeout", "--ready-timeout")
    add_slice_flags(parser)
    return parser


def _searched(options: Options, machine: Machine, budget_s: float) -> tuple[list[Tuner], bool]:
    """Search for each job in turn, and show it. Return the searches that have a rate, and whether it was interrupted.

    Jobs that cannot be tuned are named and left out. Raises IsolationError.
    """
    results: list[Tuner] = []
    end_s = time.monotonic() + budget_s
    for job in options.jobs:
        name, paths = job.stem, replace(options.paths, output=options.paths.output / job.stem)
        try:
            tuned = Tuner(replace(options, paths=paths), machine, job)
            if not results:
                tell(f"{tuned.tenancy}; records: {options.paths.output}")
            for trial in tuned.trials(end_s, tell):
                found = trial.flaw if trial.rate is None else f"{numbers.rate(trial.rate)} {tuned.unit}/s"
                tell(f"{name}  batch {trial.size}  {found}")
        except IsolationError:
            raise
        except CotenantError as error:
            warn(f"{name}: left out: {error}")
            continue
        if tuned.ended == "budget":
            warn(f"{name}: the budget is spent; start again with a larger --budget to go on.")
        if tuned.search.rate(tuned.search.best) is not None:
            results.append(tuned)
            tell(f"{name}  {_answer(tuned.search)}")
        if tuned.ended == "interrupted":
            return results, True
    return results, False


def _answer(search: Search) -> str:
    """Return a sentence on the size that is taken."""
    gain = search.gain
    if search.best == search.own:
        return f"batch {search.own} stays."
    if gain is None or gain.interval is None:
        return f"batch {search.best} is taken: {search.own} does not fit."
    ratio = f"{numbers.ratio(gain.ratio)} ({numbers.ratio_interval(*gain.interval)})"
    return f"batch {search.best} is taken, with {ratio} times the rate of {search.own}."
