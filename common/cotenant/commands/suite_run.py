"""Runs the suite that flags ask for and prints its table, or previews it."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from cotenant.checkout import PROGRAM, output_directory
from cotenant.commands.given import LaunchFlags, SuiteFlags
from cotenant.commands.on_ray import as_node_0, run_on_ray
from cotenant.commands.output import note, shown_suite, tell, tell_document, tell_folded, tell_view, warn
from cotenant.commands.preview import dry_document, dry_lines, show_document, show_lines, whole_dry_lines
from cotenant.commands.suite_options import cluster_flags, options_of
from cotenant.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_PASSED, EXIT_SLOWER, shortage
from cotenant.finding import Finding
from cotenant.isolation.lock import SuiteLock, lock_path
from cotenant.isolation.plan import ranks_of_all
from cotenant.launch.events import Interruption
from cotenant.launch.heading import heading
from cotenant.launch.prepared import PreparedSuite
from cotenant.launch.resume import repetitions_begun
from cotenant.launch.start import Options
from cotenant.launch.suite import SuiteRun
from cotenant.machine.topology import Machine, discover
from cotenant.nodes import slurm
from cotenant.nodes.cluster import Cluster, launcher_of, needs_srun
from cotenant.report.progress import PlainView, Planned, Progress, duration_words
from cotenant.results.last import last_in
from cotenant.results.record import Record
from cotenant.stats.duet import ratio_over_launches
from cotenant.stats.verdict import Verdict
from cotenant.text import many, sender_of, verb

if TYPE_CHECKING:
    from cotenant.report.live import LiveView


def run_suite(given: SuiteFlags, ours: Sequence[str], others: tuple[str, ...]) -> int:
    """Run or preview the suite chosen by `ours`, the words before `--`, parsed as `given`, and `others` after it.

    Returns the exit status. Raises CotenantError.
    """
    flags = cluster_flags(given)
    by_ray = launcher_of(flags) == "ray"
    if given.show or given.dry:
        given = as_node_0(given) if by_ray or needs_srun(flags) else given
    elif by_ray:
        return run_on_ray(given, ours, others)
    elif needs_srun(flags):
        slurm.begin_on_all_nodes([sys.executable, *sys.orig_argv[1:]])
    machine = discover()
    options = replace(options_of(given, others, machine), words=("run", *ours, *(("--", *others) if others else ())))
    if given.show:
        return _show(options, machine, given.format)
    return _preview_or_run(given, options, machine)


def run_suite_of(given: LaunchFlags, options_on: Callable[[Machine], Options]) -> int:
    """Run or preview the suite of these options on this machine; return the status. Raises CotenantError."""
    machine = discover()
    return _preview_or_run(given, options_on(machine), machine)


def _preview_or_run(given: LaunchFlags, options: Options, machine: Machine) -> int:
    suite = PreparedSuite(options, machine)
    if given.dry:
        _print_dry(suite, given)
        return EXIT_PASSED
    suite.check()
    # Locked only now, so that wrong usage is reported at once, also while another suite runs.
    with SuiteLock(lock_path()):
        return _run(suite, given)


def _show(options: Options, machine: Machine, form: str) -> int:
    """Print the chosen jobs."""
    made = options.plan(machine)
    ranks = ranks_of_all(machine, made)
    if form == "json":
        tell_document(show_document(options, ranks))
    else:
        tell("\n".join(show_lines(options, len(made.slices), ranks)))
    return EXIT_PASSED


def _print_dry(suite: PreparedSuite, given: LaunchFlags) -> None:
    """Print the launches that would run."""
    if given.format == "json":
        tell_document(dry_document(suite))
    elif given.verbose:
        tell("\n".join([*suite.left_out, *whole_dry_lines(suite.starts, suite.backend.name)]))
    else:
        tell_folded(heading(suite))
        tell("\n".join(dry_lines(suite.starts)))


def _run(suite: PreparedSuite, given: LaunchFlags) -> int:
    """Run the suite. With `--format json` only the document goes to standard output, all else to standard error."""
    suite.settle()
    suite.check_room()
    options, whole = suite.options, given.format == "json"
    say = note if whole else tell
    if whole:
        note("\n".join(heading(suite)))
    else:
        tell_folded(heading(suite))
    if options.cluster is not None and options.cluster.node:
        return _follow(suite, options.cluster)
    planned = _planned(suite) * options.repetitions
    if not options.resume:
        for sentence in _expected(suite, planned):
            say(sentence)
    records: list[Record] = []
    try:
        with contextlib.nullcontext(PlainView(planned, note)) if whole else shown_suite(planned) as view:
            interrupted, finished = _repeated(suite, view, records)
    finally:
        # They are printed also if a full disk has ended the suite halfway.
        if records:
            _print_results(records, suite, given)
            say(f"As a page, with pictures: {_report_command(options.paths.output)} --html page.html")
    if interrupted:
        where = f"the records so far are in {options.paths.output}"
        note(f"Stopped by {sender_of(interrupted)}; {where}, and the same command with --resume goes on.")
        status = _status_of(interrupted, finished)
        if status != EXIT_INTERRUPTED:
            note(
                "No launch ended within the time of this Slurm job, so it would get no further if requeued. Give it "
                "more time (sbatch --time), or launches less (--budget)."
            )
        return status
    failed = any(not record.completed or _is_doubtful(record, given.strict) for record in records)
    slower = options.duet is not None and is_slower(records)
    return EXIT_FAILED if failed else EXIT_SLOWER if slower else EXIT_PASSED


def _status_of(interrupted: str, finished: bool) -> int:
    """Return the exit status of an interrupted run: failed, if it would be useless to requeue its Slurm job."""
    in_vain = interrupted == "SIGTERM" and slurm.in_job(os.environ) and not finished
    return EXIT_FAILED if in_vain else EXIT_INTERRUPTED


def _repeated(suite: PreparedSuite, view: LiveView | PlainView, records: list[Record]) -> tuple[str | None, bool]:
    """Run the suite as often as its options say, and add its records to `records`, also after an error.

    Returns the signal that ended it early, and whether any launch came to its end. A repetition in which nothing
    completes is the last one.
    """
    options, earlier, finished = suite.options, 0, False
    begun = repetitions_begun(options, suite.machine.hostname) if options.resume else 0
    with Interruption() as between:
        for number in range(options.repetitions):
            if number:
                uid, resume = options.uid + number, number < begun
                suite = PreparedSuite(replace(options, uid=uid, resume=resume), suite.machine)
                suite.check()
            if between.requested:
                break
            run = SuiteRun(suite, view.tell, view, earlier)
            earlier += len(suite.starts)
            try:
                result = run.run()
            finally:
                records += run.records
            finished |= result.finished
            completed = [record.completed for record in result.made]
            failed = completed and (not any(completed) or (options.raise_error and not all(completed)))
            if result.interrupted or failed:
                return result.interrupted, finished
        return between.requested, finished


def _follow(suite: PreparedSuite, cluster: Cluster) -> int:
    """Run this node's part of a suite; another node keeps the records."""
    note(f"Node {cluster.node} of {cluster.nodes}: node 0 at {cluster.endpoint} leads, and keeps the records.")
    result = SuiteRun(suite, note).follow()
    if result.interrupted:
        return _status_of(result.interrupted, result.finished)
    return EXIT_FAILED if result.failed else EXIT_PASSED


def _planned(suite: PreparedSuite) -> list[Planned]:
    """Return the launches for a view of progress, each with its seconds in the last run here, or else an estimate."""
    last = last_in(suite.paths.output, suite.options.suite.name)
    last_launches = [last.get(launch.names[0]) for launch in suite.starts]
    by_blocks = [launch.design.takes_turns or bool(launch.design.refusal) for launch in suite.starts]
    seconds = [
        past.seconds if past is not None and past.by_blocks is alike else None
        for alike, past in zip(by_blocks, last_launches, strict=True)
    ]
    estimated = [None] * len(seconds) if all(seconds) else suite.estimates_s()
    return [
        Planned(
            f"{launch.cell.label} alone" if launch.solo else launch.label, launch.solo, took or estimate, took is None
        )
        for launch, took, estimate in zip(suite.starts, seconds, estimated, strict=True)
    ]


def _expected(suite: PreparedSuite, planned: Sequence[Planned]) -> Iterator[str]:
    """Yield sentences on the suite's expected time, if known, and on when users that share processors are ready."""
    if (expected := Progress(planned).remaining_s()) is None:
        return
    seconds, how = expected
    end = datetime.now() + timedelta(seconds=seconds)
    yield f"expected: {duration_words(seconds)}, until {end:%H:%M}, {how}"
    within_s = None if suite.options.within_s is None else suite.options.repetitions * suite.options.within_s
    if within_s is not None and seconds > within_s:
        yield f"That is more than {duration_words(within_s)}: --name chooses fewer jobs."
    if crowd := suite.crowd_words():
        yield crowd


def _is_doubtful(record: Record, strict: str | None) -> bool:
    """Return whether a completed record counts as failed: if it is INVALID and `strict` is given, or has a warning and
    `strict` is `suspect`."""
    severities = {"invalid": {"error"}, "suspect": {"error", "warning"}}.get(strict or "", set())
    return any(finding.severity in severities for finding in record.findings)


def is_slower(records: Sequence[Record]) -> bool:
    """Return whether B of a duet is slower than A, over the launches that count, or by the single one."""
    launches: dict[int, list[Record]] = {}
    for record in records:
        launches.setdefault(record.run_id, []).append(record)
    counted = [
        of_launch[0].duet
        for of_launch in launches.values()
        if all(record.completed and not record.invalid for record in of_launch)
        and len({record.unit for record in of_launch}) == 1
    ]
    ratios = [duet.ratio for duet in counted if duet is not None and duet.ratio is not None]
    if len(launches) == 1:
        return any(ratio.verdict == Verdict.SLOWER for ratio in ratios)
    return bool(ratios) and ratio_over_launches([ratio.estimates for ratio in ratios]).verdict is Verdict.SLOWER


def _print_results(records: Sequence[Record], suite: PreparedSuite, given: LaunchFlags) -> None:
    """Print the records' results, or the reason why this is impossible and the records' place."""
    try:
        _print_tables(records, suite.before, given)
    except BaseException as error:  # polars's panic is no Exception.
        if (short := shortage(error)) is None:
            raise
        output = suite.options.paths.output
        kept = f"{many(len(records), 'record')} {verb(len(records))} in {output}"
        warn(f"There is no table: {short} {kept}: {_report_command(output)} shows them.")


def _print_tables(records: Sequence[Record], before: Collection[Finding], given: LaunchFlags) -> None:
    """Print the tables, after the last launch: the modules that read records take a while to import."""
    try:
        from cotenant.report.duets import duets_view
        from cotenant.report.jobs import jobs_view
        from cotenant.report.renderers import show
        from cotenant.report.suite_end import suite_views
        from cotenant.report.summary import summarise
        from cotenant.results.table import Rows, table_of_records

        summary = summarise(Rows.all(table_of_records(records)))
    except ModuleNotFoundError as error:
        warn(f"There is no table: the package '{error.name}' is missing. The records are written all the same.")
        return
    if given.format == "json":
        tell_view(duets_view(summary.in_duets) if summary.in_duets else jobs_view(summary), given.format)
    else:
        show(suite_views(summary, before, given.verbose))


def _report_command(output: Path) -> str:
    """Return the command that reports on an output directory, which it does not name if it is the default."""
    place = "" if output == output_directory() else f" {shlex.quote(str(output))}"
    return f"{PROGRAM} report{place}"
