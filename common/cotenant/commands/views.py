"""The views of records that `report` prints and writes."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Sequence
from pathlib import Path

from cotenant.api.loading import load
from cotenant.api.result import Result
from cotenant.api.tables import MAKERS, ResultTable
from cotenant.checkout import PROGRAM, TARGETS
from cotenant.commands.output import tell, tell_view, warn, write_page
from cotenant.commands.records import expected_jobs, spooled
from cotenant.errors import EXIT_PASSED, CotenantError
from cotenant.report import mlbench, scaling, tables
from cotenant.report.foreign import foreign_lines
from cotenant.report.published import published_curves
from cotenant.report.renderers import FILES
from cotenant.report.share import share_points
from cotenant.report.summary import JobSummary, Summary, scores
from cotenant.results.columns import OF_EQUALS
from cotenant.results.newest import newest_work
from cotenant.results.store import prepare_directory, write_whole
from cotenant.results.targets import REFERENCE, read_systems, save_targets, targets_named
from cotenant.text import many

LIMITS = "V100"
"""New targets take the least shares and greatest spreads of this device, unless --targets names another."""


def report(given: argparse.Namespace) -> int:
    """Print and write the views that these flags ask for. Returns 0, or raises CotenantError for wrong input."""
    # Records stay until the end: garbage collection over a million of them would take a fifth of the time.
    gc.disable()
    result = load(*spooled(given.places), suite=given.suite, name=given.job, tell=warn)
    summary = result.summary
    # These forms of output do not hold the notes.
    if given.table is not None or given.format not in ("text", "json") or given.save_target is not None:
        warn(*summary.notes)
    if given.save_target is not None:
        _save(summary, given.save_target, given.targets)
    if given.html is not None or given.figures is not None:
        _write_page(result, given)
    if given.table == "scaling":
        _say_scaling(summary.jobs, given.format, given.foreign)
    elif given.table in MAKERS:
        _say(result.table(given.table), given.format)
    elif given.table == "speed-up":
        by_precision = _chosen(_tables(summary.jobs, given.systems), given.systems)
        warn(*tables.other_works(by_precision))
        tell_view(tables.speed_up_view(by_precision), given.format)
    elif given.table is not None:
        _say_table(summary.jobs, given)
    elif given.format != "text" or given.save_target is None:
        if given.format == "text" and summary.in_duets:
            _say(result.table("duet"), given.format)
        if given.format == "text" and len(summary.hosts) > 1:
            _say(result.table("hosts"), given.format)
        if summary.jobs or not summary.in_duets or given.format != "text":
            _say(result.table(), given.format)
    return EXIT_PASSED


def _say(table: ResultTable, form: str) -> None:
    warn(*table.notes)
    tell_view(table.view, form)


def _save(summary: Summary, name: str, limits: str | None) -> None:
    if name.upper() in REFERENCE:
        raise CotenantError(f"{name} is a target of the reference suite.", "Save under another name, or as FILE.csv.")
    path = Path(name) if name.endswith(".csv") else TARGETS / f"{name.lower()}.csv"
    if not name.endswith(".csv") and not name.replace("-", "").replace("_", "").isalnum():
        raise CotenantError(f"'{name}' is no name for a device model.", "Use letters, digits, - and _, or FILE.csv.")
    targets = targets_named(limits or LIMITS, TARGETS)
    counted, older = newest_work(summary.records.frame.filter(OF_EQUALS))
    warn(*older, *mlbench.beside_devices(counted))
    measured = mlbench.measured_targets(counted, targets)
    if not measured:
        raise CotenantError("No record has a rate to save.", f"The failures stand in `{PROGRAM} report`.")
    save_targets(path, measured)
    warn(f"{len(measured)} targets in {path}.")


def _write_page(result: Result, given: argparse.Namespace) -> None:
    from cotenant.report import figures  # matplotlib takes a second to import
    from cotenant.report.page import headline, page
    from cotenant.report.sections.contents import Against, PageContents

    summary, skipped, against = result.summary, result.skipped, None
    if given.targets is not None:
        targets = targets_named(given.targets, TARGETS)
        weights = dict.fromkeys(targets, 1.0) if given.jobs is None else expected_jobs(given.jobs, targets)
        newest = summary.records.frame.filter(OF_EQUALS)  # as mlbench-report counts failures
        older = mlbench.scored(newest, newest_work(newest)[0], targets, list(weights) if given.jobs else None)
        of_hosts = scores(summary, targets, list(weights), weights)
        against = Against(given.targets, targets, of_hosts, older[-1] if older else None)
    try:
        curves = scaling.curves(summary.jobs)
        skipped = (*skipped, *scaling.doubtful(curves))
    except CotenantError as error:
        curves, skipped = {}, (*skipped, f"No scaling curves: {error}")
    title = given.title or headline(summary, given.targets)
    with figures.collected() as charts:
        content = page(title, PageContents(summary, curves, against, skipped, share_points(result.records)))
    if given.html is not None:
        write_page(given.html, content)
    if given.figures is not None:
        prepare_directory(given.figures, "--figures names another directory.")
        figures.write_charts(charts, figures.job_names(summary.jobs), given.figures)
        warn(f"{many(len(charts), 'chart')} as SVG and PDF in {given.figures}.")


def _say_scaling(jobs: Sequence[JobSummary], form: str, foreign: Sequence[Path]) -> None:
    curves = scaling.curves(jobs)
    warn(*scaling.few(curves), *scaling.doubtful(curves))
    for path in foreign:
        curves |= published_curves(path)
    if form == "text" and curves:
        tell(scaling.as_text(curves))
        return
    if form == "md":
        scaling.check_single(curves)
    tell_view(scaling.scaling_view(curves), form)


def _add_foreign(by_precision: tables.Tables, paths: Sequence[Path], kind: tables.Kind) -> None:
    """Put published lines below ours. Raises CotenantError if their precision is not known."""
    if len(by_precision) > 1:
        raise CotenantError(
            f"A file does not say its precision, and there are tables of {', '.join(by_precision)}.",
            "--precision says beside which of them it stands.",
        )
    ((precision, lines),) = by_precision.items()
    more = [line for path in paths for line in foreign_lines(path, kind, lines)]
    named = [line.name for line in (*lines, *more)]
    if twice := next((name for name in named if named.count(name) > 1), None):
        raise CotenantError(f"'{twice}' stands twice in the table.", "Give each file once, and files of other names.")
    by_precision[precision] = [*lines, *more]


ROWS = {"single": lambda members: members <= 1, "multiple": lambda members: members > 1}
"""The rows that words of --systems choose, by their number of devices, or of ranks or copies without devices."""


def _tables(jobs: Sequence[JobSummary], given: Sequence[str]) -> tables.Tables:
    """Return the tables, with systems described by the last file among `given`, else by ours."""
    files = [word for word in given if word not in ROWS]
    return tables.tables(jobs, read_systems(Path(files[-1]) if files else TARGETS / "systems.json"))


def _chosen(by_precision: tables.Tables, given: Sequence[str]) -> tables.Tables:
    """Return the rows that the words among `given` choose, or all without any. Raises CotenantError if none is left."""
    words = [word for word in given if word in ROWS] or list(ROWS)
    chosen = {
        precision: rows
        for precision, lines in by_precision.items()
        if (rows := [line for line in lines if any(ROWS[word](line.system.devices or line.members) for word in words)])
    }
    if by_precision and not chosen:
        raise CotenantError("No row is left to show.", "--systems single and multiple choose rows by their devices.")
    return chosen


def _say_table(jobs: Sequence[JobSummary], given: argparse.Namespace) -> None:
    by_precision = _tables(jobs, given.systems)
    if not by_precision:
        raise CotenantError("No record has a rate to compare.", f"The failures stand in `{PROGRAM} report`.")
    if given.precision is not None:
        if given.precision not in by_precision:
            raise CotenantError(f"There are no records of {given.precision}.", f"There are {', '.join(by_precision)}.")
        by_precision = {given.precision: by_precision[given.precision]}
    if given.foreign:
        _add_foreign(by_precision, given.foreign, given.table)
    by_precision = _chosen(by_precision, given.systems)
    shown = [line for lines in by_precision.values() for line in lines]
    if given.per == "price" and not any(line.system.price for line in shown):
        raise CotenantError(
            "No system has a price in its description.", "Give it one in a file, and name that by --systems."
        )
    form = "json" if given.format == "json" else "csv"
    texts = {
        name: FILES[form](tables.systems_view(lines, given.table, given.per, given.reference))
        for name, lines in by_precision.items()
    }
    warn(*dict.fromkeys(tables.forms(shown)))
    if given.table == "throughput":
        warn(*dict.fromkeys(tables.sources_of_watt(shown)))
    if given.outdir is not None:
        prepare_directory(given.outdir)
        for name, text in texts.items():
            write_whole(given.outdir / f"{given.table}-{name}.{form}", text.encode())
    elif len(texts) > 1:
        raise CotenantError(
            f"There are tables of {', '.join(texts)}.", "--precision prints one, --outdir writes a file for each."
        )
    else:
        for text in texts.values():
            tell(text)
