"""Sections on neighbours: different jobs beside each other, users of one device, known pressure, equal users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from markupsafe import Markup
from matplotlib.ticker import EngFormatter

from cotenant.report import pressure, share
from cotenant.report.beside import OF_MIXES, mix_view
from cotenant.report.interference import interference_view
from cotenant.report.kept import kept_fields, kept_of
from cotenant.report.kept_rows import VALUE
from cotenant.report.pairs import outside_pairs, pairs_view
from cotenant.report.pictures.canvas import ACCENT, INK, MOST, PAPER, SOFT, shares_axis, whole_percent
from cotenant.report.pictures.curves import DASHED, CurveStyle, PlottedCurve, Scale, curves_picture, kept_curve
from cotenant.report.pictures.rows import ChartRow, mark_of, rows_picture
from cotenant.report.pressure import PressureCurve, curve_text
from cotenant.report.renderers import html
from cotenant.report.section import Details, Picture, Section
from cotenant.report.sections.contents import PageContents, notes_of
from cotenant.report.summary import Summary
from cotenant.report.view import Row
from cotenant.results.launches import grouped
from cotenant.stats.kept import Kept

OF_BARS = (
    "line: each user's entitlement; at the bars' ends: 95 % intervals, dotted if of a single launch's observations"
)


def mixes(contents: PageContents) -> Section | None:
    """Return each mix's table, with its bars if progress is known."""
    view = mix_view(outside_pairs(contents.summary))
    if not view.groups:
        return None
    details = [
        Details(pictures=[picture] if picture else [], table=html(replace(view, groups=[group])))
        for group, picture in zip(view.groups, mix_pictures(contents.summary), strict=True)
    ]
    title = "Different jobs beside each other"
    return Section(title, [OF_MIXES], details=details, anchor="beside", short="Beside each other")


def mix_pictures(summary: Summary) -> Iterator[Picture | None]:
    """Yield a picture of each mix, with a bar per user; None for a mix without known progress."""
    for index, block in enumerate(outside_pairs(summary)):
        shares = [(user, kept) for user in block.users if (kept := kept_of(user, VALUE)) is not None]
        if not shares:
            yield None
            continue
        rows = [
            ChartRow(f"{user['tenant']} {user['job']}", whole_percent(kept.value), [mark_of(kept)], bar=kept.value)
            for user, kept in shares
        ]
        most = max(1.05, *(min(MOST, end) for row in rows for end in row.marks[0].ends))
        entitled = sorted({user["entitlement"] for user, _ in shares})
        drawn = rows_picture(rows, f"mix{index}", (0.0, most + 0.02), height=0.26, at=entitled)
        yield Picture(drawn, f"{block.mix}: each user's rate over what it has alone", OF_BARS)


def pairs(contents: PageContents) -> Section | None:
    """Return the matrix of pairs."""
    view = pairs_view(contents.summary)
    if not view.groups:
        return None
    return Section("Jobs in pairs", notes_of(view), table=html(view), anchor="pairs", short="Pairs")


# Users of one device, or slice

TURNS = "dotted: users that take turns without loss; bars: 95 % intervals over launches"
MEASURES = {"stp": "STP", "antt": "ANTT", "worst_slowdown": "worst slowdown"}
SIGNS = "●■◆▲○□◇△"
MODE_STYLES = [
    CurveStyle(dashes=dashes, mark=mark, fill=fill)
    for fill, dashes in ((ACCENT, "-"), (PAPER, DASHED))
    for mark in "osD^"
]
"""The style of each mode, in the order of SIGNS, which differ in print, too; further modes share the last."""


def sharing(contents: PageContents) -> Section | None:
    """Return each job's pictures over the number of users, throughput first, and one table of all jobs."""
    if not contents.shared:
        return None
    details: list[Details] = []
    for (_, host, job, isolation), points in grouped(contents.shared, share.point_place).items():
        rows = [point for point in points if point["stp"] is not None]
        if len(rows) > 1:
            named = dict.fromkeys(point["mode"] for point in points)
            modes = {mode: min(at, len(SIGNS) - 1) for at, mode in enumerate(named)}
            pictures = [_worth(rows, modes, name, job, f"worth{len(details)}{name}") for name in MEASURES]
            marks = ", ".join(f"{SIGNS[at]} {mode}" for mode, at in modes.items())
            title = f"{job} on {host}, isolation {isolation}"
            details.append(Details(title, [f"{marks}; {TURNS}."], pictures, small=True))
    # With these columns the table would be wider than a screen.
    table = html(share.share_view(contents.shared), ["fairness", "tax"])
    title = "Several users on one device or slice"
    return Section(title, [share.LEGEND], table=table, details=details, anchor="share", short="On one device")


def _worth(points: Sequence[Row], modes: Mapping[str, int], measure: str, job: str, name: str) -> Picture:
    """Return one of MEASURES over the number of users, a curve for each mode in its style."""
    users = sorted({point["sharers"] for point in points})
    turns = {point["sharers"]: point["devices" if measure == "stp" else "sharers"] for point in points}
    curves = [PlottedCurve(users, [turns[k] for k in users], style=CurveStyle(SOFT, (0, (1, 1.6)), width=0.9))]
    for mode, of_mode in grouped(points, lambda point: point["mode"]).items():
        kept = [value for point in of_mode if (value := kept_of(point, kept_fields(measure))) is not None]
        curves.append(kept_curve([point["sharers"] for point in of_mode], kept, MODE_STYLES[modes[mode]]))
    scales = Scale("users of one device or slice (K)", doubling=users), Scale(ends=(0, None))
    drawn = curves_picture(curves, name, *scales, size=(2.8, 2.0))
    title = MEASURES[measure]
    return Picture(drawn, title, heard=f"{title} of {job} over the number of users, as in the table")


# Known pressure

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
REST = Kept(1.0, (1.0, 1.0), 1)
SLICED, NAIVE = CurveStyle(mark="o"), CurveStyle(INK, DASHED, "s", PAPER)


def under_pressure(contents: PageContents) -> Section | None:
    """Return launches beside neighbours of known pressure: each job's curves, all on one axis of shares."""
    shown = [curve for curve in pressure.pressure_curves(contents.summary) if curve.curve is not None]
    if not shown:
        return None
    kept = [point.kept for curve in shown for point in curve.points]
    ends = shares_axis((end for value in kept for end in mark_of(value).ends), inner=(0.5, 1.05), least=0.0)
    several = len({curve.host for curve in shown}) > 1
    by_job = grouped(shown, lambda curve: (curve.suite, curve.host, curve.job))
    details = []
    for number, ((_, host, job), of_job) in enumerate(by_job.items()):
        pictures = [
            Picture(
                _over_pressure(curves, ends, f"pressure{number}-{at}"),
                MEANT.get(resource, resource),
                heard="; ".join(map(curve_text, curves)),
            )
            for at, (resource, curves) in enumerate(grouped(of_job, lambda curve: curve.resource).items())
        ]
        details.append(
            Details(f"{job} on {host}" if several else job, [*map(curve_text, of_job)], pictures, small=True)
        )
    sentences = [f"{pressure.LEGEND} {OF_CURVES}"]
    title = "Beside neighbours of known pressure"
    return Section(title, sentences, details=details, anchor="pressure", short="Under pressure")


def _over_pressure(curves: Sequence[PressureCurve], ends: tuple[float, float], name: str) -> Markup:
    """Return one job's curves on one resource, one for each isolation.

    A curve without slices is dashed and hollow, with only the edges of its band, so that curves differ without colours.
    """
    drawn = []
    for curve in curves:
        naive = curve.isolation == "none"
        # Beside a resting neighbour the share is 1 by definition; at other levels a missing interval leaves a gap.
        x, kept = [0.0, *(point.achieved for point in curve.points)], [REST, *(point.kept for point in curve.points)]
        drawn.append(kept_curve(x, kept, NAIVE if naive else SLICED, spread="edges" if naive else "band"))
    most = max((point.achieved for curve in curves for point in curve.points), default=1)
    show = EngFormatter(sep="").format_eng if most >= 1000 else "{:g}".format
    across = Scale(f"{curves[0].unit}/s of the neighbour", (-0.03 * most, 1.04 * most), 4, show)
    return curves_picture(drawn, name, across, Scale("", ends, 4, whole_percent), size=(2.6, 1.75), level=1)


# Equal users

OF_KEPT = "filled: in slices; open: without slices; bars: 95 % intervals; at 1 neighbours cost nothing"


def interference(contents: PageContents) -> Section | None:
    """Return a table and a picture for each suite and host; None if no job was measured in two of the three ways."""
    view = interference_view(contents.summary)
    if not view.groups:
        return None
    details = []
    for index, group in enumerate(view.groups):
        picture = _kept([*group.each()], f"k{index}")
        details.append(Details(pictures=[picture] if picture else [], table=html(replace(view, groups=[group]))))
    return Section("Interference", notes_of(view), details=details, anchor="interference", short="Interference")


def _kept(lines: Sequence[Row], name: str) -> Picture | None:
    """Return a row per job, with a line at 1; None for fewer than two jobs, for which the table is enough.

    None, too, if no job ran without slices: the chart on top of the page has the shares kept in slices.
    """
    nodes = [line for line in lines if line.get("user") == "all"]
    both = {line["job"]: [kept_of(line, kept_fields(name)) for name in ("kept", "unsliced_kept")] for line in nodes}
    of_jobs = {job: shares for job, shares in both.items() if any(shares)}
    if len(of_jobs) < 2 or not any(unsliced for _, unsliced in of_jobs.values()):
        return None
    rows = [
        ChartRow(job, marks=[mark_of(kept, sure) for kept, sure in zip(shares, (True, False), strict=True) if kept])
        for job, shares in of_jobs.items()
    ]
    most = max(1.0, *(end for row in rows for mark in row.marks for end in mark.ends))
    drawn = rows_picture(rows, name, (0.0, 1.04 * most), height=0.26, at=[1])
    heard = "Rate together over rate alone, per job, as in the table"
    return Picture(drawn, "Kept of the rate alone", OF_KEPT, heard)
