"""The page's parts on tenants beside each other: different jobs, with bars for each mix, and users of one device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from cotenant.report import share
from cotenant.report.beside import outside_pairs
from cotenant.report.beside_views import OF_MIXES, mix_grid, pairs_grid
from cotenant.report.page_jobs import Picture
from cotenant.report.pictures.mixes import progress_bars
from cotenant.report.pictures.worth import MEASURES, signs, worth
from cotenant.report.renderers import html
from cotenant.report.share import SharePoint
from cotenant.report.summary import Summary
from cotenant.results.launches import grouped

CAPTION = (
    "line: what a tenant is entitled to; bars over it: 95 % intervals, dotted those of a single launch's observations"
)
OF_PICTURES = ("fairness", "tax")
"""Columns that the page leaves to --table share: with them its table would be wider than a screen."""
TURNS = "dotted: users who take turns without loss; bars: 95 % intervals over launches"


@dataclass(frozen=True, slots=True)
class MixPart:
    """A mix on the page: its table, and its bars; None where no progress is known."""

    table: Markup
    picture: Picture | None


@dataclass(frozen=True, slots=True)
class BesideEachOther:
    """All mixes, and the matrix of pairs as a table; empty where there is none."""

    mixes: list[MixPart]
    explanation: str
    pairs: Markup
    of_pairs: str


def beside_each_other(summary: Summary) -> BesideEachOther | None:
    """Return the page's part on different jobs; None without any."""
    blocks, pairs = outside_pairs(summary), pairs_grid(summary)
    grid = mix_grid(blocks)
    if not blocks and not pairs.groups:
        return None
    mixes = []
    for index, (group, block) in enumerate(zip(grid.groups, blocks, strict=True)):
        drawn = progress_bars(block, f"mix{index}")
        title = f"{block.mix}: each tenant's rate over what it has alone"
        picture = None if drawn is None else Picture(Markup(drawn), title, CAPTION)
        mixes.append(MixPart(html(replace(grid, groups=[group])), picture))
    of_pairs = " ".join(text for note in pairs.notes for text, _ in note)
    return BesideEachOther(mixes, OF_MIXES, html(pairs) if pairs.groups else Markup(), of_pairs)


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
    for (_, host, job, isolation), of_job in grouped(points, lambda point: point.place).items():
        drawn = [(title, worth(of_job, name, f"worth{len(jobs)}{name}")) for name, title in MEASURES.items()]
        pictures = [Picture(Markup(picture), title, f"{title} of {job}") for title, picture in drawn if picture]
        marks = ", ".join(f"{sign} {mode}" for mode, sign in signs(of_job).items())
        if pictures:
            jobs.append(JobWorth(f"{job} on {host}, isolation {isolation}", pictures, f"{marks}; {TURNS}"))
    return Sharing(jobs, html(share.points_grid(points), OF_PICTURES), share.LEGEND)
