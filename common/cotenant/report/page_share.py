"""The page's part on users of one device or slice: throughput and slowdown over their number, and the table below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from cotenant.report import share
from cotenant.report.page_jobs import Picture
from cotenant.report.pictures.worth import MEASURES, signs, worth
from cotenant.report.renderers import html
from cotenant.report.share import SharePoint
from cotenant.results.launches import grouped

OF_PICTURES = ("fairness", "tax")
"""Columns that the page leaves to --table share: with them its table would be wider than a screen."""
TURNS = "dotted: users who take turns without loss; bars: 95 % intervals over launches"


@dataclass(frozen=True, slots=True)
class JobWorth:
    """The pictures of one job on one host, the first of throughput, and which mark is which mode."""

    job: str
    pictures: list[Picture]
    marks: str


@dataclass(frozen=True, slots=True)
class Sharing:
    """The page's part on shared devices and slices."""

    jobs: list[JobWorth]
    table: Markup
    explanation: str


def sharing(points: Sequence[SharePoint]) -> Sharing | None:
    """Return the page's part on these points; None without any. A single point has no picture."""
    if not points:
        return None
    jobs: list[JobWorth] = []
    for (_, host, job, isolation), of_job in grouped(points, share.place).items():
        drawn = [(title, worth(of_job, name, f"worth{len(jobs)}{name}")) for name, title in MEASURES.items()]
        pictures = [Picture(Markup(picture), title, f"{title} of {job}") for title, picture in drawn if picture]
        marks = ", ".join(f"{sign} {mode}" for mode, sign in signs(of_job).items())
        if pictures:
            jobs.append(JobWorth(f"{job} on {host}, isolation {isolation}", pictures, f"{marks}; {TURNS}"))
    return Sharing(jobs, html(share.points_grid(points), OF_PICTURES), share.LEGEND)
