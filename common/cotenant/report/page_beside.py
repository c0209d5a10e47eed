"""The page's parts on neighbours: different jobs beside each other, users of one device, and known pressure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from cotenant.report import pressure, share
from cotenant.report.beside import OF_MIXES, mix_view
from cotenant.report.pairs import outside_pairs, pairs_view
from cotenant.report.pictures.curves import MEASURES, over_pressure, shares_of, signs, worth
from cotenant.report.pictures.rows import progress_bars
from cotenant.report.pressure import PressureCurve, words_of
from cotenant.report.renderers import Picture, Section
from cotenant.report.summary import Summary
from cotenant.report.view import Row
from cotenant.results.launches import grouped

OF_BARS = (
    "line: what a user is entitled to; bars over it: 95 % intervals, dotted those of a single launch's observations"
)
TURNS = "dotted: users that take turns without loss; bars: 95 % intervals over launches"
OF_CURVES = (
    "Filled: in slices; hollow and dashed: without; band: 95 % intervals, of the rounds of a launch, or of launches "
    "where there are three."
)
MEANT = {
    "cpu": "cpu: processor time",
    "llc": "llc: last-level cache",
    "dram": "dram: memory bandwidth",
    "disk": "disk: reads of a disk",
    "sm": "sm: a device's multiprocessors",
    "hbm": "hbm: bandwidth of a device's memory",
}


def beside_each_other(summary: Summary) -> dict[str, Any] | None:
    """Return the page's part on different jobs: each mix's table, its bars where progress is known, and the matrix of
    pairs. None without any."""
    grid, pairs = mix_view(outside_pairs(summary)), pairs_view(summary)
    if not grid.groups and not pairs.groups:
        return None
    tables = [replace(grid, groups=[group]) for group in grid.groups]
    return {"mixes": list(zip(tables, mix_pictures(summary), strict=True)), "explanation": OF_MIXES, "pairs": pairs}


def mix_pictures(summary: Summary) -> Iterator[Picture | None]:
    """Yield the bars of each mix, None where no progress is known."""
    for index, block in enumerate(outside_pairs(summary)):
        drawn = progress_bars(block, f"mix{index}")
        title = f"{block.mix}: each user's rate over what it has alone"
        yield None if drawn is None else Picture(drawn, title, OF_BARS)


def sharing(points: Sequence[Row]) -> dict[str, Any] | None:
    """Return the page's part on shared devices and slices: each job's pictures, throughput first, and the mark of each
    mode. None without any point; a single one has no picture."""
    if not points:
        return None
    jobs: list[Section] = []
    for (_, host, job, isolation), of_job in grouped(points, share.place_of).items():
        pictures = [
            Picture(picture, title, f"{title} of {job}")
            for name, title in MEASURES.items()
            if (picture := worth(of_job, name, f"worth{len(jobs)}{name}"))
        ]
        marks = ", ".join(f"{sign} {mode}" for mode, sign in signs(of_job).items())
        if pictures:
            jobs.append(Section(f"{job} on {host}, isolation {isolation}", pictures, words=[f"{marks}; {TURNS}."]))
    return {"jobs": jobs, "table": share.share_view(points), "explanation": share.LEGEND}


def under_pressure(summary: Summary) -> dict[str, Any] | None:
    """Return the page's part on launches beside neighbours of known pressure: curves as small multiples.
    None without a curve."""
    shown = [each for each in pressure.pressure_curves(summary) if each.curve is not None]
    return {"jobs": list(_jobs(shown)), "explanation": f"{pressure.LEGEND} {OF_CURVES}"} if shown else None


def _jobs(shown: Sequence[PressureCurve]) -> Iterator[Section]:
    """Yield the jobs' curves on one axis of shares, with a picture for each resource."""
    ends, several = shares_of(shown), len({each.host for each in shown}) > 1
    by_job = grouped(shown, lambda each: (each.suite, each.host, each.job))
    for number, ((_, host, job), of_job) in enumerate(by_job.items()):
        by_resource = grouped(of_job, lambda each: each.resource)
        pictures = [
            Picture(
                over_pressure(of, ends, f"pressure{number}-{at}"),
                MEANT.get(resource, resource),
                "; ".join(map(words_of, of)),
            )
            for at, (resource, of) in enumerate(by_resource.items())
        ]
        yield Section(f"{job} on {host}" if several else job, pictures, words=list(map(words_of, of_job)))
