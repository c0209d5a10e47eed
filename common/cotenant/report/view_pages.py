"""Views as pages of their own, each with its charts: a comparison, and how many users fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cotenant.report import numbers
from cotenant.report.capacity import SHOWN, capacity_sentences, capacity_view
from cotenant.report.comparison import CLAIMS, OF_SUITE, SuiteComparison, comparison_view
from cotenant.report.pictures.curves import over_users
from cotenant.report.pictures.rows import Ratio, ratios
from cotenant.report.renderers import Card, Picture, Section, simple_page
from cotenant.stats.capacity import Carried
from cotenant.stats.verdict import Verdict
from cotenant.text import joined, many

NAMED = 6
"""Most sentences on top of a page."""
OF_COMPARISON = (
    "B / A is the geometric mean of B's launches over that of A's, with its 95 % interval; the band around 1 is the "
    "margin, within which a difference counts as none. Filled: FASTER or SLOWER."
)
OF_CAPACITY = "hollow: rounds of the search; filled: launches of so many users; dashed: what each has to have"


# Comparison


def comparison_page(a: str, b: str, lines: SuiteComparison) -> str:
    """Return the page of a comparison of the places A and B."""
    counts = Counter(line.verdict for line in lines.lines)
    jobs = many(len(lines.lines), "job")
    cards = [Card(verdict, str(counts[verdict]), f"of {jobs}") for verdict in Verdict if counts[verdict]]
    compared = [
        Ratio(line.job, result.ratio, result.interval, line.verdict, line.verdict in CLAIMS)
        for line in lines.lines
        if (result := line.comparison) is not None
    ]
    pictures = []
    if compared:
        margin = max(line.comparison.margin for line in lines.lines if line.comparison is not None)
        pictures = [Picture(ratios(compared, margin, "ratios"), "B / A", f"band: margin of {100 * margin:.1f} %")]
    claims = sorted((each for each in compared if each.sure), key=lambda each: each.value)
    answer = [
        f"{each.name} is {each.words} in B: {_with_span(each.value, each.interval)} of its rate in A."
        for each in claims[:NAMED]
    ]
    if not claims:
        answer = [f"No job is faster or slower in B beyond chance; {counts[Verdict.SAME]} of {jobs} are the same."]
    return simple_page(
        f"B against A: {jobs}",
        f"A: {a}; B: {b}",
        [*answer, f"The suite as a whole: {OF_SUITE[lines.suite_slower]}."],
        [OF_COMPARISON, *filter(None, [lines.apart])],
        [Section("", pictures, comparison_view(lines))],
        cards,
    )


def _with_span(ratio: float, interval: tuple[float, float] | None) -> str:
    return f"{numbers.ratio(ratio)} ({numbers.ratio_interval(*interval)})" if interval else numbers.ratio(ratio)


# Capacity


def capacity_page(answers: Sequence[Carried], lines: Sequence[str]) -> str:
    """Return the page on how many users a machine carries; `lines` are to paste and limit it to these."""
    sections = []
    for at, found in enumerate(answers):
        section = Section(joined(", ", found.label, found.share), ())
        if found.searched or found.confirmed:
            unit = SHOWN[found.requirement.kind].unit.strip()
            chart = f"The user that has least, {unit}, over the number of users"
            picture = Picture(over_users(found, f"c{at}"), chart, OF_CAPACITY)
            section = section._replace(pictures=[picture], table=capacity_view([found]))
        sections.append(section)
    answer = [sentence for found in answers for sentence in capacity_sentences(found)]
    labels = ", ".join(dict.fromkeys(found.label for found in answers))
    return simple_page(f"How many users this machine carries: {labels}", "", answer, [], sections, pasted=lines)
