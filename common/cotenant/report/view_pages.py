"""Views as pages of their own, each with its charts: a comparison, and how many users fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup

from cotenant.report import numbers
from cotenant.report.capacity import SHOWN, capacity_sentences, capacity_view
from cotenant.report.comparison import CLAIMS, OF_SUITE, JobComparison, SuiteComparison, comparison_view
from cotenant.report.pictures.canvas import DESK, PAPER, PHONE, WIDTH, shares_axis
from cotenant.report.pictures.curves import CurveStyle, PlottedCurve, Scale, curves_picture
from cotenant.report.pictures.rows import ChartRow, Mark, rows_picture
from cotenant.report.renderers import html
from cotenant.report.section import Card, Page, Picture, Section
from cotenant.stats.capacity import Carried
from cotenant.stats.verdict import Verdict
from cotenant.text import joined, many

NAMED = 6
"""Most jobs with a sentence at the top of a page."""
OF_COMPARISON = (
    "B / A is the geometric mean of B's launches over that of A's, with its 95 % interval; the band around 1 is the "
    "margin, within which a difference counts as none. Filled: FASTER or SLOWER."
)
OF_CAPACITY = "hollow: rounds of the search; filled: launches of so many users; line: what each has to have"
MOST_RATIO = 2.5
"""Ratios above this, or below its inverse, are drawn at the end of the axis."""


# Comparison


def comparison_page(a: str, b: str, lines: SuiteComparison) -> str:
    """Return the page of a comparison of the places A and B."""
    counts = Counter(line.verdict for line in lines.lines)
    jobs = many(len(lines.lines), "job")
    claims = sorted((line for line in lines.lines if line.verdict in CLAIMS), key=_ratio_of)
    answer = [f"{line.job} is {line.verdict} in B: {_with_span(line)} of its rate in A." for line in claims[:NAMED]]
    if not claims:
        answer = [f"No job is faster or slower in B beyond chance; {counts[Verdict.SAME]} of {jobs} are the same."]
    picture, table = _ratios(lines), html(comparison_view(lines))
    sentences = [OF_COMPARISON, *filter(None, [lines.apart])]
    return Page(
        title=f"B against A: {jobs}",
        subtitle=f"A: {a}; B: {b}",
        answer=[*answer, f"The suite as a whole: {OF_SUITE[lines.suite_slower]}."],
        cards=[Card(verdict, str(counts[verdict]), f"of {jobs}") for verdict in Verdict if counts[verdict]],
        sections=[Section("Jobs", sentences, [picture] if picture else [], table, filtered=True)],
    ).html()


def _ratio_of(line: JobComparison) -> float:
    return 1.0 if line.comparison is None else line.comparison.ratio


def _ratios(lines: SuiteComparison) -> Picture | None:
    """Return a row per compared job; the band is the margin around 1."""
    compared = [(line, result) for line in lines.lines if (result := line.comparison) is not None]
    if not compared:
        return None
    margin = max(result.margin for _, result in compared)
    rows = [
        ChartRow(line.job, line.verdict, [Mark(result.ratio, result.interval, sure=line.verdict in CLAIMS)])
        for line, result in compared
    ]
    around = (min(0.95, 1 - 2 * margin), max(1.05, 1 + 2 * margin))
    ends = shares_axis((end for row in rows for end in row.marks[0].ends), around, 1 / MOST_RATIO, MOST_RATIO)
    band = (1 - margin, 1 + margin) if margin else None
    wide, narrow = (
        rows_picture(rows, f"ratios{width:.0f}", ends, "{:g}".format, height=0.19, width=width, at=[1], band=band)
        for width in (DESK, PHONE)
    )
    return Picture(wide, "B / A", f"band: margin of {100 * margin:.1f} %", "B / A: as in the table", narrow)


def _with_span(line: JobComparison) -> str:
    if line.comparison is None:
        return numbers.ABSENT
    shown, interval = numbers.ratio(line.comparison.ratio), line.comparison.interval
    return f"{shown} ({numbers.ratio_interval(*interval)})" if interval else shown


# Capacity


def capacity_page(answers: Sequence[Carried], lines: Sequence[str]) -> str:
    """Return the page on the number of users that a machine carries; `lines` to paste limit it to these users."""
    sections = []
    for at, found in enumerate(answers):
        section = Section(joined(", ", found.label, found.share))
        if found.searched or found.confirmed:
            unit = SHOWN[found.requirement.kind].unit.strip()
            chart = f"The user that has least, {unit}, over the number of users"
            picture = Picture(_over_users(found, f"c{at}"), chart, OF_CAPACITY, heard=f"{chart}: as in the table")
            section = section._replace(pictures=[picture], table=html(capacity_view([found])))
        sections.append(section)
    if lines:
        sections.append(Section("What keeps it so: lines to paste", code=lines))
    labels = ", ".join(dict.fromkeys(found.label for found in answers))
    answer = [sentence for found in answers for sentence in capacity_sentences(found)]
    return Page(f"How many users this machine carries: {labels}", "", answer, (), sections).html()


APART = 0.12
"""Half the distance between a launch's and a search round's points at the same number of users."""


def _over_users(found: Carried, name: str) -> Markup:
    """Return the least values over numbers of users, filled if from launches, and a line at the required value."""
    shown, required = SHOWN[found.requirement.kind], found.requirement
    curves, users, values = [], list[int](), [shown.scale * required.least]
    for estimates, offset, style in (
        (found.searched, -APART, CurveStyle(dashes="", mark="o", fill=PAPER)),
        (found.confirmed.values(), APART, CurveStyle(dashes="", mark="o")),
    ):
        points = [
            [shown.scale * required.shown(log) for log in (estimate.worst, *(estimate.interval or ()))]
            for estimate in estimates
        ]
        spans = [(min(ends), max(ends)) if ends else None for _, *ends in points]
        x = [estimate.users + offset for estimate in estimates]
        curves.append(PlottedCurve(x, [value for value, *_ in points], spans, style))
        users += [estimate.users for estimate in estimates]
        values += [value for point in points for value in point]
    room = 0.06 * (max(values) - min(values)) or 0.1 * values[0]
    across = Scale("users at once", (min(users) - 0.5, max(users) + 0.5), 10, whole=True)
    up = Scale(shown.unit.strip(), (max(0.0, min(values) - room), max(values) + room), show="{:g}".format)
    return curves_picture(curves, name, across, up, size=(WIDTH, 2.1), level=values[0])
