"""The views of records that `report` prints and writes."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from cotenant.checkout import PROGRAM, TARGETS
from cotenant.choices import TRANSCRIPT
from cotenant.commands.output import tell, tell_grid, warn
from cotenant.commands.records import chosen_names, expected_jobs, of_class, of_suite, read
from cotenant.errors import EXIT_PASSED, CotenantError
from cotenant.report import mlbench, scaling, tables
from cotenant.report.beside import mix_blocks
from cotenant.report.beside_views import mix_grid, pairs_grid
from cotenant.report.duets import duets_grid
from cotenant.report.fingerprints import fingerprints_grid
from cotenant.report.foreign import foreign_lines
from cotenant.report.grid import Grid
from cotenant.report.interference import apart, interference_grid
from cotenant.report.jobs import jobs_grid
from cotenant.report.prediction import NOTHING, prediction_grid, predictions
from cotenant.report.published import published_curves
from cotenant.report.renderers import as_csv
from cotenant.report.sense import sense_grid, sensitivities
from cotenant.report.share import share_grid, share_points
from cotenant.report.summary import JobSummary, Summary, scores, summarise
from cotenant.results.columns import JOB
from cotenant.results.newest import newest_work
from cotenant.results.store import prepare_directory, write_named, write_whole
from cotenant.results.table import AT, Rows
from cotenant.results.targets import REFERENCE, read_systems, save_targets, targets_named
from cotenant.text import many

DUET = f"{PROGRAM} --duet vae -- --batch-size 64 --- --batch-size 128 is one."
LIMITS = "V100"
"""New targets take the least shares and the most spreads of this device, where --targets names no other."""
OF_EXPORTS = "observations, timelines, samples of meters and what findings say stand in the records only."
BESIDE = f"{PROGRAM} --mix convnet,wlm launches jobs beside each other, --pairs each pair of several."
SHARING = f"{PROGRAM} --users 4 --share mps does, and --slices 2 on processors; each K has a directory of its own."


def report(given: argparse.Namespace) -> int:
    """Print and write the views that these flags ask for. Returns 0, or raises CotenantError for wrong input."""
    # Records stay until the end: to look for garbage in a million records takes a fifth of the time.
    gc.disable()
    records, skipped = _read(given)
    summary = summarise(records)
    if any(next(place.glob(f"*{TRANSCRIPT}"), None) for place in given.places):
        from cotenant.report.challenges import challenge_lines  # of a room that may be left out

        summary = replace(summary, notes=(*challenge_lines(summary, given.places), *summary.notes))
    # Where the output itself does not have them.
    if given.table is not None or given.format not in ("text", "json") or given.save_target is not None:
        for line in summary.notes:
            warn(line)
    if given.save_target is not None:
        _save(summary, given.save_target, given.targets)
    if given.html is not None or given.figures is not None:
        _write_page(summary, records, skipped, given)
    if given.table == "scaling":
        _say_scaling(summary.jobs, given.format, given.foreign)
    elif given.table == "interference":
        _say_interference(summary, given.format)
    elif given.table == "mix":
        _tell_measured(mix_grid(mix_blocks(summary)), given.format, "No launch was of different jobs.", BESIDE)
    elif given.table == "pairs":
        nothing = "No two pairs of jobs have rates together and alone."
        _tell_measured(pairs_grid(summary), given.format, nothing, BESIDE)
    elif given.table == "share":
        nothing = "No tenants there shared a device or a slice."
        _tell_measured(share_grid(records), given.format, nothing, SHARING)
    elif given.table == "duet":
        _tell_measured(duets_grid(summary.in_duets), given.format, "No launch there was a duet.", DUET)
    elif given.table == "sense":
        _say_sense(summary, given.format)
    elif given.table == "predict":
        _say_prediction(summary, given.format)
    elif given.table == "speed-up":
        _say_speed_up(_chosen(_tables(summary.jobs, given.systems), given.systems), given.format)
    elif given.table is not None:
        _say_table(summary.jobs, given)
    elif given.format != "text" or given.save_target is None:
        if given.format == "text" and summary.in_duets:
            tell_grid(duets_grid(summary.in_duets), given.format)
        if summary.jobs or not summary.in_duets or given.format != "text":
            tell_grid(jobs_grid(summary), given.format)
    return EXIT_PASSED


def _read(given: argparse.Namespace) -> tuple[Rows, list[str]]:
    """Return the chosen records, and a sentence for each file that has none. Raises CotenantError for no record."""
    records, skipped = read(given.places)
    if records.exports:
        skipped.append(f"{', '.join(records.exports)}: {OF_EXPORTS}")
        warn(skipped[-1])
    chosen = of_class(of_suite(records.frame.with_row_index(AT), given.suite), given.run_class)
    if given.job:
        names = chosen.select(JOB).to_series().unique(maintain_order=True).to_list()
        if suites := set(given.job).intersection(chosen["suite"]).difference(names):
            raise CotenantError(f"{min(suites)} is a suite there, and no job.", f"--suite {min(suites)} chooses it.")
        chosen = chosen.filter(JOB.is_in(chosen_names(names, given.job, "There is no job '{}' there.")))
    if chosen.height == len(records.table):
        return Rows.all(records.table), skipped
    return Rows(records.table, chosen[AT].to_list()), skipped


def _save(summary: Summary, name: str, limits: str | None) -> None:
    if name.upper() in REFERENCE:
        raise CotenantError(f"{name} is a target of the reference suite.", "Save under another name, or as FILE.csv.")
    path = Path(name) if name.endswith(".csv") else TARGETS / f"{name.lower()}.csv"
    if not name.endswith(".csv") and not name.replace("-", "").replace("_", "").isalnum():
        raise CotenantError(f"'{name}' is no name for a device model.", "Use letters, digits, - and _, or FILE.csv.")
    known = targets_named(limits or LIMITS, TARGETS)
    counted, older = newest_work(summary.records.frame.filter(pl.col("mix") == ""))
    for line in (*older, *mlbench.beside_devices(counted)):
        warn(line)
    measured = mlbench.measured_targets(counted, known)
    if not measured:
        raise CotenantError("No record has a rate to save.", f"The failures stand in `{PROGRAM} report`.")
    save_targets(path, measured)
    warn(f"{len(measured)} targets in {path}.")


def _write_page(summary: Summary, records: Rows, skipped: Sequence[str], given: argparse.Namespace) -> None:
    from cotenant.report import figures  # matplotlib takes a second to import
    from cotenant.report.page import Against, headline, page

    against = None
    if given.targets is not None:
        targets = targets_named(given.targets, TARGETS)
        weights = dict.fromkeys(targets, 1.0) if given.jobs is None else expected_jobs(given.jobs, targets)
        newest = summary.records.frame
        older = mlbench.scored(newest, newest_work(newest)[0], targets, list(weights) if given.jobs else None)
        of_hosts = scores(summary, targets, list(weights), weights)
        against = Against(given.targets, targets, of_hosts, older[-1] if older else None)
    try:
        curves = scaling.curves(summary.jobs)
        skipped = [*skipped, *scaling.doubtful(curves)]
    except CotenantError as error:
        curves, skipped = {}, [*skipped, f"No scaling curves: {error}"]
    title = given.title or headline(summary, given.targets)
    with figures.collected() as charts:
        content = page(title, summary, curves, against, skipped, share_points(records)).encode(errors="replace")
    if given.html is not None:
        write_named(given.html, content, "--html names another file.")
        warn(f"{given.html} is written.")
    if given.figures is not None:
        prepare_directory(given.figures, "--figures names another directory.")
        written = figures.write_charts(charts, figures.job_names(summary.jobs), given.figures)
        tabulars = figures.tabulars(summary)
        for name, text in tabulars.items():
            write_whole(given.figures / f"{name}.tex", text.encode(errors="replace"))
        warn(f"{many(written, 'chart')} as SVG and PDF and {many(len(tabulars), 'table')} in {given.figures}.")


def _say_scaling(jobs: Sequence[JobSummary], form: str, foreign: Sequence[Path]) -> None:
    curves = scaling.curves(jobs)
    for line in (*scaling.few(curves), *scaling.doubtful(curves)):
        warn(line)
    for path in foreign:
        curves |= published_curves(path)
    if form == "text" and curves:
        tell(scaling.as_text(curves))
        return
    grid = scaling.scaling_grid(curves) if form == "csv" and curves else scaling.of_one_series_grid(curves)
    tell_grid(grid, form)


def _say_interference(summary: Summary, form: str) -> None:
    grid = interference_grid(summary)
    for line in apart(summary) if grid.groups else ():
        warn(line)
    nothing = "No job was measured in two ways: alone in its slice, together in slices, together without."
    remedy = f"{PROGRAM} measures each tenant alone as well (--baseline); --isolation none runs all without slices."
    _tell_measured(grid, form, nothing, remedy)


def _tell_measured(grid: Grid, form: str, nothing: str, remedy: str) -> None:
    """Print a grid. Raises CotenantError, with the command that measures it, for an empty one."""
    if not grid.groups:
        raise CotenantError(nothing, remedy)
    tell_grid(grid, form)


def _say_prediction(summary: Summary, form: str) -> None:
    predicted = predictions(summary, sensitivities(summary))
    if not predicted:
        raise CotenantError(NOTHING, f"{PROGRAM} --sense a,b --pairs a,b launches both, into one directory.")
    tell_grid(prediction_grid(predicted), form)


def _say_sense(summary: Summary, form: str) -> None:
    curves = sensitivities(summary)
    if not curves:
        raise CotenantError(
            "No job was measured beside a neighbour of known pressure.",
            f"{PROGRAM} --sense JOB does, or --name JOB --pressure dram; of exported rows no curve can be drawn.",
        )
    tell_grid(sense_grid(curves), form)
    if form in ("text", "md") and (prints := fingerprints_grid(curves)).groups:
        tell_grid(prints, form)


def _say_speed_up(by_precision: tables.Tables, form: str) -> None:
    for line in tables.other_works(by_precision):
        warn(line)
    tell_grid(tables.speed_up_grid(by_precision), form)


def _add_foreign(by_precision: tables.Tables, paths: Sequence[Path], kind: tables.Kind) -> None:
    """Put published lines below ours. Raises CotenantError where nobody knows of which precision they are."""
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
"""Which rows the words of --systems choose, by their devices, and by their ranks or copies where there is none."""


def _tables(jobs: Sequence[JobSummary], given: Sequence[str]) -> tables.Tables:
    """Return the tables, by the descriptions of the last file among `given`, else by ours."""
    files = [word for word in given if word not in ROWS]
    return tables.tables(jobs, read_systems(Path(files[-1]) if files else TARGETS / "systems.json"))


def _chosen(by_precision: tables.Tables, given: Sequence[str]) -> tables.Tables:
    """Return the rows that the words among `given` choose, all without any. Raises CotenantError where none is left."""
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
    texts = {
        name: as_csv(tables.table_grid(lines, given.table, given.per, given.reference))
        for name, lines in by_precision.items()
    }
    for line in dict.fromkeys(tables.forms(shown)):
        warn(line)
    if given.table == "throughput":
        for line in dict.fromkeys(tables.sources_of_watt(shown)):
            warn(line)
    if given.outdir is not None:
        prepare_directory(given.outdir)
        for name, text in texts.items():
            write_whole(given.outdir / f"{given.table}-{name}.csv", text.encode())
    elif len(texts) > 1:
        raise CotenantError(
            f"There are tables of {', '.join(texts)}.", "--precision prints one, --outdir writes a file for each."
        )
    else:
        for text in texts.values():
            tell(text)
