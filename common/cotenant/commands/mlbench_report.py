"""`mlbench-report`: the original suite's report, of its records and of ours."""

from __future__ import annotations

import argparse
import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from cotenant.checkout import CHECKOUT
from cotenant.commands.flags import Parser, expected_jobs
from cotenant.commands.output import warn
from cotenant.errors import EXIT_PASSED, CotenantError
from cotenant.report import mlbench
from cotenant.report import mlbench_text as text
from cotenant.report.matrix import COLUMNS, matrix
from cotenant.report.mlbench_html import Page, mlbench_html
from cotenant.report.renderers import may_leave
from cotenant.results.decoded import skipped_sentences
from cotenant.results.newest import newest_in, newest_work
from cotenant.results.read import read_records
from cotenant.results.store import write_named
from cotenant.results.targets import Target, targets_named
from cotenant.text import printable

WIDTH = 160


def main(argv: Sequence[str]) -> int:
    """Report on records. Returns 0, or raises CotenantError for wrong input."""
    parser = Parser(
        prog="mlbench-report",
        allow_abbrev=False,
        description="Results against targets, failures, one score, and how devices compare.",
    )
    add = parser.add_argument
    where = "where records are, searched recursively; or an export"
    add("--reports", type=Path, required=True, metavar="DIR", help=where)
    add("--name", metavar="SUITE", help="only records of this suite (its job file's stem)")
    add("--jobs", metavar="FILE", help="the job file whose jobs are expected (default: those that have a target)")
    add("--gpu-model", default="V100", metavar="MODEL", help="V100, MI50, RTX, or a CSV file of targets (default V100)")
    add("--html", type=Path, metavar="FILE", help="write a page as well")
    add("--csv", type=Path, metavar="FILE", help="write the results per job as well")
    add("--title", metavar="TEXT", help="the page's title")
    add("--price", type=float, metavar="P", help="price of the machine, for RPP = price / score")
    add("--classic", action="store_true", help="the older table: trimmed means, sd, sd%%, diff")
    given = parser.parse_words(argv)
    if given.price is not None and not 0 < given.price < math.inf:
        raise CotenantError("--price has to be a positive number.")
    targets = targets_named(given.gpu_model, CHECKOUT / "targets")
    records = read_records([given.reports])
    notes = skipped_sentences(records.skipped)
    _say(notes)
    newest, twice = newest_in(_of_suite(records.frame, given.name))
    counted, older = newest_work(newest)
    left_out = [*twice, *older, *mlbench.beside_devices(counted)]
    _say(left_out)
    jobs = None if given.jobs is None else list(expected_jobs(given.jobs, targets, "mlbench-report"))
    page = _page(given, newest, counted, targets, jobs, [*notes, *left_out])
    if given.html is not None:
        write_named(given.html, mlbench_html(page).encode(errors="replace"), "--html names another file.")
    if given.csv is not None:
        write_named(given.csv, _csv(page).encode(errors="replace"), "--csv names another file.")
    with may_leave():
        _print(page, counted, targets, given.classic)
    return EXIT_PASSED


def _say(notes: Sequence[str]) -> None:
    for note in notes:
        warn(note, "mlbench-report")


def _of_suite(frame: pl.DataFrame, name: str | None) -> pl.DataFrame:
    """Return the rows of all tenants together: a tenant alone is a rate of its own kind, and none of the job's."""
    together = frame.filter(~pl.col("solo"))
    chosen = together if name is None else together.filter(pl.col("suite").is_in([name, ""]))
    if chosen.is_empty():
        suites = sorted(suite for suite in frame["suite"].unique() if suite)
        known = f"There are records of: {', '.join(suites)}." if suites else "Is it the directory of --outdir?"
        raise CotenantError(f"There are no records{f' of {name}' if name else ''} there.", known)
    return chosen


def _page(
    given: argparse.Namespace,
    newest: pl.DataFrame,
    counted: pl.DataFrame,
    targets: dict[str, Target],
    jobs: list[str] | None,
    notes: list[str],
) -> Page:
    lines = mlbench.results(counted, targets, jobs)
    if not lines:
        raise CotenantError("None of the expected jobs has a target.", "--gpu-model names a file that has them.")
    # Of all records: a failure is one whatever work it was, and so is what did not fail.
    failed = mlbench.failures(newest)
    passed = mlbench.failures_pass(len(failed), newest.height)
    devices, of_devices = matrix(counted.select(*COLUMNS, job="name"))
    hosts, gpus = (sorted(filter(None, newest[name].unique())) for name in ("hostname", "gpu"))
    where = ", ".join(hosts) or "an unnamed host"
    subtitle = f"{newest.height} records, {newest['run_id'].n_unique()} repetitions, on {where}: {', '.join(gpus)}"
    return Page(
        title=given.title or f"{given.name or newest['suite'][0] or 'suite'} against {given.gpu_model}",
        subtitle=subtitle.removesuffix(": "),
        results=lines,
        failed=failed,
        total=newest.height,
        score=mlbench.score(lines, passed),
        price=given.price,
        devices=devices,
        matrix=of_devices,
        skipped=notes,
    )


def _print(page: Page, counted: pl.DataFrame, targets: dict[str, Target], classic: bool) -> None:
    from rich.console import Console

    from cotenant.report.whole import print_whole

    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)

    def say(*lines: str) -> None:
        console.print(*lines, sep="\n", emoji=False, markup=False, highlight=False)

    say(*map(printable, (page.title, page.subtitle)), "")
    if classic:
        expected = {line.job: targets[line.job] for line in page.results}
        lines, short = mlbench.classic(counted, expected)
        print_whole(text.classic_table(lines), console)
        complete = not page.score.missing and not short and page.score.failures_pass
        for line in text.classic_lines(mlbench.classic_total(lines, complete), short):
            say(line)
    else:
        print_whole(text.results_table(page.results), console)
    sections = (
        ("Failures", text.failure_lines(page.failed, page.total, page.score.failures_pass)),
        ("Score", text.score_lines(page.score, page.price)),
    )
    for title, section in sections:
        say("", title, *section)
    if page.matrix:
        console.print("")
        for table in text.matrix_tables(page.devices, page.matrix, console.width):
            print_whole(table, console)


def _csv(page: Page) -> str:
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(text.RESULT_COLUMNS)
    for line in page.results:
        spread = None if line.spread is None else 100 * line.spread
        numbers = [line.mean, line.perf, int(line.perf_pass), spread, int(line.spread_pass)]
        target = [line.target.rate, line.target.least_share, 100 * line.target.most_spread]
        writer.writerow([line.job, line.n, *target, *("" if one is None else one for one in numbers)])
    return table.getvalue()
