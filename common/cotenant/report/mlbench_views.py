"""The original suite's report as views, and as one page: its four sections, with a dash for every absent number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cotenant.frames import pl
from cotenant.report.matrix import Matrix, matrix_view
from cotenant.report.mlbench import CLASSIC_QUANTILE, CLASSIC_SPREAD, ORIGINAL_LEFT_OUT, Failure, Score
from cotenant.report.numbers import ABSENT, borne, percent, plain
from cotenant.report.renderers import html
from cotenant.report.section import Card, Page, Section
from cotenant.report.view import Cell, Column, RowGroup, View
from cotenant.text import many

RESULT_FIELDS = {
    "job": "the job",
    "n": "records, one a user",
    "target": "the reference device's rate, in items per second",
    "perf_tgt": "the least share of it that passes",
    "sd%_tgt": "the greatest sd% that passes",
    "mean": "the mean of the records' mean rates",
    "perf": "that over the target",
    "perf_pass": "1 if perf is no less than perf_tgt",
    "sd%": "the standard deviation of the records' mean rates, in percent of their mean",
    "sd%_pass": "1 if sd% is no more than sd%_tgt",
}
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

    `works` has the differences of jobs from their targets' works.
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
    older: View | None = None


def report_views(report: Report) -> Iterator[View]:
    """Yield the report's sections."""
    yield View("title", title=report.title, lines=[((report.subtitle, ""),), (("", ""),)])
    yield report.older or results_view(report)
    yield failures_view(report)
    lines = [*_score_lines(report.score, report.price), *of_works(report), *of_original(report)]
    yield View("score", groups=[RowGroup((), "Score", notes=[((line, ""),) for line in lines])])
    if report.matrix:
        yield _devices_view(report)


SHOWN: dict[str, Callable[[Any], str]] = {
    "job": str,
    "n": str,
    "perf_tgt": "{:.2f}".format,
    "sd%_tgt": "{:.1f} %".format,
    "sd%": "{:.1f} %".format,
    "diff": "{:.4f}".format,
}
"""Formats of these columns; means and shares of targets have the digits that n and sd allow, others six."""


def results_view(report: Report) -> View:
    """Return a row per job against its target, with the difference between its work and the target's."""
    results = report.results.select(*RESULT_FIELDS)
    works = pl.Series("other work", [report.works.get(job, "") for job in results["job"]], pl.String)
    other = Column("other work", show=partial(Cell, style="yellow"), left=True, optional=True)
    group = RowGroup(results.with_columns(works), "Results", notes=[((OF_MEANS, ""),)])
    rows = results.cast({pl.Boolean: pl.Int64})
    return View("results", RESULT_FIELDS, rows, [*map(_column, RESULT_FIELDS), other], [group])


def of_works(report: Report) -> list[str]:
    """Return the sentence on jobs with another work than their target's, if there are any."""
    with_target = report.results.drop_nulls("target")["job"]
    differ = [job for job in report.works if job in with_target]
    text = (
        f"{many(len(differ), 'job')} did other work than the target's: there perf compares two works, and so does the "
        "score. --jobs baselines runs the targets' work; --save-target makes targets of other work."
    )
    return [text] if differ else []


def _column(name: str) -> Column:
    if name.endswith("_pass"):
        return Column(name, show=lambda passed: Cell(pass_text(passed), style="green" if passed else "bold red"))
    if name in ("mean", "perf"):
        return Column(name, (name, "sd%", "n"), _borne)
    return Column(name, show=SHOWN.get(name, plain), left=name == "job")


def _borne(mean: float, spread: float | None, count: int) -> str:
    return borne(mean, spread and spread / 100 / math.sqrt(count))


def classic_view(
    lines: pl.DataFrame, total: tuple[float, float, bool] | None, short: Sequence[str], without: Sequence[str]
) -> View:
    """Return the older table with its last lines. Performance is the mean of `diff`."""
    notes = [f"Fewer than 4 repetitions, so no line: {', '.join(short)}"] if short else []
    notes += [f"Measured, but without a target: {', '.join(without)}"] if without else []
    if total is not None:
        quantile, performance, passes = total
        limit = f"(below {100 * CLASSIC_SPREAD:.0f} %: {pass_text(quantile < CLASSIC_SPREAD)})"
        notes += [
            f"Bench Passes              : {passes}",
            f"Deviation Quantile ({100 * CLASSIC_QUANTILE:.0f}%)  : {100 * quantile:+.2f} % {limit}",
            f"Performance               : {100 * performance:+.2f} % (at least 0 %: {pass_text(performance >= 0)})",
        ]
    group = RowGroup(lines, "Results", notes=[((note, ""),) for note in notes])
    return View("results", columns=[*map(_column, lines.columns)], groups=[group])


def failures_view(report: Report) -> View:
    """Return a row per failed record; their share of all records is the heading."""
    names = ("job", "uid", "device", "reason")
    columns = (
        Column("job", left=True),
        Column("uid"),
        Column("device"),
        Column("reason", left=True, words=True),
    )
    failed = len(report.failed)
    share = f"{failed} of {report.total} records failed ({percent(failed / report.total if report.total else 1)})"
    limit = f"at most 1 % may: {pass_text(report.score.failures_pass)}"
    rows = [dict(zip(names, failure, strict=True)) for failure in report.failed]
    return View("failures", columns=columns, groups=[RowGroup(rows, "Failures", f"{share}; {limit}")])


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
    """Return the sentence on the expected jobs that the original's default score leaves out."""
    if report.score.left_out:
        return [f"Without {', '.join(report.score.left_out)}, as the original's default score."]
    more = [job for job in ORIGINAL_LEFT_OUT if job in report.results["job"]]
    return [f"The original's default score leaves out {', '.join(more)}; so does --original-score."] if more else []


def _devices_view(report: Report) -> View:
    facts = "mean (min .. max) of records' mean rates, % of each job's best device"
    names = [f"D{device}" for device in report.devices]
    return matrix_view(report.devices, names, report.matrix, "Relative device performance", facts)


def pass_text(passed: bool) -> str:
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
    views = [results_view(report), failures_view(report), *([_devices_view(report)] if report.matrix else [])]
    missing = [f"Without {', '.join(score.missing)} there is no score of the suite."] if score.missing else []
    sections = [Section("", table=html(view)) for view in views]
    if report.skipped:
        sections.append(Section("Not read", points=report.skipped))
    sentences = [*missing, *of_works(report), *of_original(report), OF_COLUMNS]
    return Page(report.title, report.subtitle, (), cards, sections, sentences=sentences).html()
