"""`mlbench-report`: the original suite's report, of its records and of ours."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from cotenant.api.records import no_record, of_suite, read_places
from cotenant.checkout import TARGETS, output_directory
from cotenant.commands.flags import Parser, given_path
from cotenant.commands.other_work import other_arguments
from cotenant.commands.output import warn, write_page
from cotenant.commands.records import expected_jobs, spooled
from cotenant.errors import EXIT_PASSED, CotenantError
from cotenant.frames import pl
from cotenant.report import mlbench
from cotenant.report.matrix import COLUMNS, matrix
from cotenant.report.mlbench_views import Report, classic_view, report_page, report_views, results_view
from cotenant.report.renderers import as_csv, show
from cotenant.report.view import View
from cotenant.results.columns import OF_EQUALS
from cotenant.results.newest import newest_in, newest_work
from cotenant.results.store import write_named
from cotenant.results.table import AT, Rows
from cotenant.results.targets import REFERENCE, Target, targets_named
from cotenant.text import many


def main(argv: Sequence[str]) -> int:
    """Report on records. Returns 0, or raises CotenantError for wrong input."""
    given = parser().parse_words(argv)
    if given.price is not None and not 0 < given.price < math.inf:
        raise CotenantError("--price has to be a positive number.")
    report = _report(given)
    if given.html is not None:
        write_page(given.html, report_page(report))
    if given.csv is not None:
        table = as_csv(results_view(report))
        write_named(given.csv, table.encode(errors="replace"), "--csv names another file.")
    show(report_views(report))
    return EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `mlbench-report`."""
    parser = Parser(
        "mlbench-report",
        "Results against targets, failures, one score, and how devices compare.",
        hint="--reports names where records are; --help lists all flags.",
    )
    add = parser.add_argument
    where = "where records are, searched recursively; or an export (default: the workspace's output)"
    add("--reports", type=given_path, default=output_directory(), metavar="DIR", help=where)
    add("--name", metavar="SUITE", help="only records of this suite (its job file's stem)")
    expected = "the job file whose jobs are expected, or its suite's name (default: jobs that have a target)"
    add("--jobs", metavar="FILE", help=expected)
    add(
        "--gputotal", type=int, metavar="N", help="number of devices of the machine: names records of fewer, or of more"
    )
    add("--gpu-model", default="V100", metavar="MODEL", help="V100, MI50, RTX, or a CSV file of targets (default V100)")
    add("--html", type=Path, metavar="FILE", help="write a page as well")
    add("--csv", type=Path, metavar="FILE", help="write the results per job as well")
    add("--title", metavar="TEXT", help="the page's title")
    add("--price", type=float, metavar="P", help="price of the machine, for RPP = price / score")
    add("--classic", action="store_true", help="the older table: trimmed means, sd, sd%%, diff")
    left_out = f"leave {', '.join(mlbench.ORIGINAL_LEFT_OUT)} out of the score, as the original does by default"
    add("--original-score", action="store_true", help=left_out)
    return parser


def _report(given: argparse.Namespace) -> Report:
    """Read the records, and warn of records that do not count. Raises CotenantError if none is left to score."""
    targets = targets_named(given.gpu_model, TARGETS)
    records, skipped = read_places(spooled([given.reports]), warn)
    together = of_suite(records.frame.with_row_index(AT).filter(OF_EQUALS), given.name)
    if together.is_empty():
        raise no_record([given.reports], "record of users together")
    newest, twice = newest_in(together)
    counted, older = newest_work(newest)
    notes = [*twice, *older, *mlbench.beside_devices(counted), *mlbench.other_devices(newest, given.gputotal)]
    notes += mlbench.unaudited_jobs(counted)
    works = {}
    if given.gpu_model.upper() in REFERENCE:
        works = other_arguments(Rows(records.table, counted.group_by("name").agg(pl.col(AT).first())[AT].to_list()))
    jobs = None if given.jobs is None else list(expected_jobs(given.jobs, targets))
    left_out = mlbench.ORIGINAL_LEFT_OUT if given.original_score else ()
    if (scored := mlbench.scored(newest, counted, targets, jobs, left_out)) is None:
        raise CotenantError("None of the expected jobs has a target.", "--gpu-model names a file that has them.")
    lines, failed, total, score = scored
    warn(*notes)
    devices, of_devices = matrix(counted.select(*COLUMNS, job="name"))
    hosts, gpus = (sorted(filter(None, newest[name].unique())) for name in ("hostname", "gpu"))
    where = ", ".join(hosts) or "an unnamed host"
    size = f"{many(newest.height, 'record')}, {many(newest['run_id'].n_unique(), 'repetition')}"
    subtitle = f"{size}, on {where}: {', '.join(gpus)}"
    return Report(
        title=given.title or f"{given.name or newest['suite'][0] or 'suite'} against {given.gpu_model}",
        subtitle=subtitle.removesuffix(": "),
        results=lines,
        failed=failed,
        total=total,
        score=score,
        price=given.price,
        devices=devices,
        matrix=of_devices,
        skipped=[*skipped, *notes],
        works=works,
        older=_older(counted, lines, targets, score) if given.classic else None,
    )


def _older(counted: pl.DataFrame, results: pl.DataFrame, targets: dict[str, Target], score: mlbench.Score) -> View:
    without = [job for job in results["job"] if job not in targets]
    lines, short = mlbench.classic(counted, {job: targets[job] for job in results["job"] if job in targets})
    complete = not score.missing and not short and score.failures_pass
    return classic_view(lines, mlbench.classic_total(lines, complete), short, without)
