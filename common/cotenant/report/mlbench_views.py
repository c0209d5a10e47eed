"""The original suite's report as grids, and as one page: its four sections, every absent number as a dash."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cotenant.frames import pl
from cotenant.report.grid import Cell, Column, Grid, RowGroup, number, table, text_column, word
from cotenant.report.matrix import Matrix, matrix_grid
from cotenant.report.mlbench import CLASSIC_QUANTILE, CLASSIC_SPREAD, ORIGINAL_LEFT_OUT, Failure, Score
from cotenant.report.numbers import ABSENT, borne, percent, plain
from cotenant.report.renderers import html
from cotenant.report.section import Card, Page, Section
from cotenant.text import many

RESULT_FIELDS = ("job", "n", "target", "perf_tgt", "sd%_tgt", "mean", "perf", "perf_pass", "sd%", "sd%_pass")
OF_MEANS = "Rates are the original's: the mean over observations; `cotenant report` has their median."
OF_COLUMNS = (
    "Of each job: mean and sd of n records' mean rates (one record a user), held against a reference device's target. "
    "PM counts the jobs that are fast enough, ST those that are steady enough, PG says how fast all are together; jobs "
    "measured by their efficiency (scaling) are no part of PG. Means show the digits that n and sd bear and one more, "
    "of n = 1 three; all digits are in the records and the CSV."
)


@dataclass(frozen=True, slots=True)
class Report:
    """The contents of the report; `older` is the older table that replaces the results, if there is one.

    `works` names, for jobs whose work is not their target's, the difference.
    """

    title: str
    subtitle: str
    results: pl.DataFrame
    failed: Sequence[Failure]
    total: int
    score: Score
    price: float | None
    devices: Sequence[str]
    matrix: Matrix
    skipped: Sequence[str]
    works: Mapping[str, str]
    older: Grid | None = None


def report_grids(report: Report) -> Iterator[Grid]:
    """Yield the report's sections."""
    yield Grid((), (), report.title, [((report.subtitle, ""),), (("", ""),)])
    yield report.older or results_grid(report)
    yield failures_grid(report)
    lines = [*_score_lines(report.score, report.price), *of_works(report), *of_original(report)]
    yield Grid((), [RowGroup((), "Score", notes=[((line, ""),) for line in lines])])
    if report.matrix:
        yield _devices_grid(report)


SHOWN: dict[str, Callable[[Any], str]] = {
    "job": str,
    "n": str,
    "perf_tgt": "{:.2f}".format,
    "sd%_tgt": "{:.1f} %".format,
    "sd%": "{:.1f} %".format,
    "diff": "{:.4f}".format,
}
"""Formats of these columns; means and shares of targets have the digits that n and sd allow, others six."""


def results_grid(report: Report) -> Grid:
    """Return a row per job against its target, with the difference between its work and the target's."""
    more: Column[Mapping[str, Any]] = Column(
        "other work", lambda line: word(report.works.get(line["job"], ""), style="yellow"), left=True, optional=True
    )
    return replace(_grid(report.results.select(RESULT_FIELDS), [OF_MEANS], [more]), fields=RESULT_FIELDS)


def of_works(report: Report) -> list[str]:
    """Return the sentence on jobs whose work is not their target's, if there are any."""
    with_target = report.results.drop_nulls("target")["job"]
    differ = [job for job in report.works if job in with_target]
    text = (
        f"{many(len(differ), 'job')} did other work than the target's: there perf compares two works, and so does the "
        "score. --jobs baselines runs the targets' work; --save-target makes targets of other work."
    )
    return [text] if differ else []


def _grid(lines: pl.DataFrame, notes: Sequence[str] = (), more: Sequence[Column[Any]] = ()) -> Grid:
    columns = [*(Column(name, partial(_cell, name), left=name == "job") for name in lines.columns), *more]
    return table(columns, lines.iter_rows(named=True), "Results", notes=[((note, ""),) for note in notes])


def _cell(name: str, line: Mapping[str, Any]) -> Cell:
    value = line[name]
    if isinstance(value, bool):
        return Cell(verdict(value), {name: int(value)}, "green" if value else "bold red")
    if name in ("mean", "perf"):
        spread, count = line["sd%"], line["n"]
        return number(value, lambda mean: borne(mean, spread and spread / 100 / math.sqrt(count)), name)
    return number(value, SHOWN.get(name, plain), name)


def classic_grid(
    lines: pl.DataFrame, total: tuple[float, float, bool] | None, short: Sequence[str], without: Sequence[str]
) -> Grid:
    """Return the older table with its last lines. Performance is the mean of `diff`."""
    notes = [f"Fewer than 4 repetitions, so no line: {', '.join(short)}"] if short else []
    notes += [f"Measured, but without a target: {', '.join(without)}"] if without else []
    if total is not None:
        quantile, performance, passes = total
        limit = f"(below {100 * CLASSIC_SPREAD:.0f} %: {verdict(quantile < CLASSIC_SPREAD)})"
        notes += [
            f"Bench Passes              : {passes}",
            f"Deviation Quantile ({100 * CLASSIC_QUANTILE:.0f}%)  : {100 * quantile:+.2f} % {limit}",
            f"Performance               : {100 * performance:+.2f} % (at least 0 %: {verdict(performance >= 0)})",
        ]
    return _grid(lines, notes)


def failures_grid(report: Report) -> Grid:
    """Return a row per failed record; their share of all records is the heading."""
    columns: Sequence[Column[Failure]] = (
        text_column("job", lambda failure: failure[0]),
        Column("uid", lambda failure: word(str(failure[1]))),
        Column("device", lambda failure: word(failure[2])),
        text_column("reason", lambda failure: failure[3], words=True),
    )
    failed = len(report.failed)
    share = f"{failed} of {report.total} records failed ({percent(failed / report.total if report.total else 1)})"
    limit = f"at most 1 % may: {verdict(report.score.failures_pass)}"
    return table(columns, report.failed, "Failures", f"{share}; {limit}")


def _score_lines(score: Score, price: float | None) -> Iterator[str]:
    yield f"BF {int(score.failures_pass)}   PM {score.pm:.4f}   ST {score.st:.4f}   PG {plain(score.pg)}"
    if score.missing:
        yield f"Score {ABSENT}: without {', '.join(score.missing)} it is none of the suite"
        if score.present_only is not None:
            yield f"Of the other jobs alone: {score.present_only:.4f}"
    else:
        yield f"Score = BF (2 PM + ST + 5 PG) = {plain(score.value)}"
    if price is not None:
        yield f"RPP = price / score = {plain(score.price_per_score(price))}"


def of_original(report: Report) -> list[str]:
    """Return the sentence on the jobs that the original's default score leaves out, where it was expected."""
    if report.score.left_out:
        return [f"Without {', '.join(report.score.left_out)}, as the original's default score."]
    more = [job for job in ORIGINAL_LEFT_OUT if job in report.results["job"]]
    return [f"The original's default score leaves out {', '.join(more)}; so does --original-score."] if more else []


def _devices_grid(report: Report) -> Grid:
    facts = "mean (min .. max) of records' mean rates, % of each job's best device"
    names = [f"D{device}" for device in report.devices]
    return matrix_grid(report.devices, names, report.matrix, "Relative device performance", facts)


def verdict(passed: bool) -> str:
    return "yes" if passed else "NO"


def _three(value: float | None) -> str:
    return ABSENT if value is None else borne(value, None)


def report_page(report: Report) -> str:
    """Return the report as one HTML file, offline and printable."""
    score = report.score
    cards = [
        Card("Score", _three(score.value), "BF (2 PM + ST + 5 PG); at the targets themselves 8", lead=True),
        Card(
            "BF",
            str(int(score.failures_pass)),
            "1: at most one record in a hundred failed; 0: more, and the score is 0",
        ),
        Card(
            "PM",
            f"{score.pm:.2f}",
            f"{round(score.pm * score.jobs)} of {score.jobs} jobs reach perf_tgt of their target",
        ),
        Card("ST", f"{score.st:.2f}", f"{round(score.st * score.jobs)} of {score.jobs} jobs vary by sd%_tgt at most"),
        Card("PG", _three(score.pg), "geometric mean over jobs of perf = mean / target"),
    ]
    if report.price is not None:
        cards.append(Card("RPP", _three(score.price_per_score(report.price)), f"price {report.price:,.6g} / score"))
    grids = [results_grid(report), failures_grid(report), *([_devices_grid(report)] if report.matrix else [])]
    missing = [f"Without {', '.join(score.missing)} there is no score of the suite."] if score.missing else []
    sections = [Section("", table=html(grid)) for grid in grids]
    if report.skipped:
        sections.append(Section("Not read", points=report.skipped))
    sentences = [*missing, *of_works(report), *of_original(report), OF_COLUMNS]
    return Page(report.title, report.subtitle, (), cards, sections, sentences=sentences).html()
