"""The shares of their rates that jobs keep beside neighbours of known pressure: a curve per job and resource."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cotenant.frames import pl
from cotenant.report import numbers
from cotenant.report.kept import OF_N, kept_columns, kept_fields, kept_meanings, kept_of, kept_values
from cotenant.report.kept_rows import FIELDS, PRESSURE, VALUE
from cotenant.report.kept_table import kept_table
from cotenant.report.summary import Summary
from cotenant.report.view import Column, Row, RowGroup, View, place_columns
from cotenant.results.launches import grouped
from cotenant.stats.pressure import Curve, Point
from cotenant.text import listed

CONDITIONS = ("suite", "host", "job", "isolation", "resource", "achieved_unit", "difference", "work")
"""The columns of the long table that are equal in the rows of one curve."""


@dataclass(frozen=True, slots=True)
class PressureCurve:
    """A job under pressure on one resource; `curve` is None if no level has a kept share.

    `unit` is the neighbour's, `difference` names the difference in work from the job's other curves, `doubts` are the
    rules of its records' warnings.
    """

    suite: str
    host: str
    job: str
    isolation: str
    resource: str
    unit: str
    difference: str
    curve: Curve | None
    doubts: tuple[str, ...]

    @property
    def points(self) -> tuple[Point, ...]:
        """The points of its curve."""
        return () if self.curve is None else self.curve.points


@lru_cache(maxsize=1)
def pressure_curves(summary: Summary) -> Sequence[PressureCurve]:
    """Return the curves of jobs' kept shares beside neighbours of known pressure."""
    rows = kept_table(summary).filter(pl.col("company") == PRESSURE)
    curves = []
    for conditions, levels in rows.group_by(CONDITIONS, maintain_order=True):
        points = [
            Point(row["level"], row["achieved"], kept)
            for row in levels.iter_rows(named=True)
            if (kept := kept_of(row, VALUE)) is not None and row["achieved"] is not None
        ]
        doubts = sorted({*levels["doubts"].explode(), *levels["alone_doubts"].explode()} - {None})
        suite, host, job, isolation, resource, unit, difference, _ = map(str, conditions)
        curve = Curve(tuple(points)) if points else None
        curves.append(PressureCurve(suite, host, job, isolation, resource, unit, difference, curve, tuple(doubts)))
    return curves


# The view

PRESSURE_FIELDS = {
    **{name: FIELDS[name] for name in ("suite", "host", "job", "isolation", "resource", "level", "achieved")},
    "unit": FIELDS["achieved_unit"],
    **kept_meanings("kept", "the rate beside the neighbour over the rate while it is held still"),
}
CURVE_FIELDS = {
    **{name: PRESSURE_FIELDS[name] for name in ("suite", "host", "job", "isolation", "resource", "unit")},
    "difference": FIELDS["difference"],
    "doubts": "the rules of warnings on its launches, by commas",
    "knee": "the items per second of the neighbour up to which all is kept; null if no loss is shown",
    "slope": "the share that is lost with each item per second beyond; null if no loss is shown",
}
LEGEND = (
    "kept: the rate beside the neighbour over the rate while it is held still; achieved: what the neighbour got, in "
    "its unit a second. Up to the knee all is kept."
)
SCALES = ((1.0, ""), (1e3, "thousand "), (1e6, "million "), (1e9, "billion "))
LEAST = 0.1
"""A slope is given for as many units of pressure as cost at least this many percent."""


def _first(text: str, is_first: bool) -> str:
    """Return a text at the first level only; programs read it at all levels."""
    return text if is_first else ""


COLUMNS = (
    *place_columns("suite", "host"),
    Column("job", ("job", "is_first"), _first, left=True),
    Column("slices", ("isolation", "is_first"), _first, left=True),
    Column("pressure", ("resource", "is_first"), _first, left=True),
    Column("level", show="{} %".format),
    Column("achieved", show=numbers.rate),
    Column("unit/s", "unit", left=True),
    *kept_columns("kept", kept_fields("kept")),
)


def pressure_view(curves: Sequence[PressureCurve]) -> View:
    """Return a row per level of each curve, and below each curve its slope and knee."""
    by_host = grouped(curves, lambda curve: (curve.suite, curve.host))
    groups = [
        RowGroup(
            [row for curve in here for row in _levels_of(curve)],
            *place,
            [((curve_text(curve), ""),) for curve in here],
        )
        for place, here in by_host.items()
    ]
    rows = [row for curve in curves for row in _levels_of(curve)]
    lines = [((f"{LEGEND} {OF_N}", "dim"),)]
    said = [curve_text(curve) for curve in curves]
    parts = [View("curves", CURVE_FIELDS, [_curve(curve) for curve in curves])]
    return View("pressure", PRESSURE_FIELDS, rows, COLUMNS, groups, lines=lines, sentences=said, parts=parts)


def _place(curve: PressureCurve) -> dict[str, str]:
    return {name: getattr(curve, name) for name in ("suite", "host", "job", "isolation", "resource", "unit")}


def _levels_of(curve: PressureCurve) -> list[Row]:
    return [
        {**_place(curve), "is_first": point is curve.points[0], "level": point.level, "achieved": point.achieved}
        | kept_values(point.kept, kept_fields("kept"))
        for point in curve.points
    ]


def _curve(curve: PressureCurve) -> Row:
    hinge = curve.curve.hinge if curve.curve is not None and curve.curve.loses else None
    found = {"difference": curve.difference, "doubts": ",".join(curve.doubts)}
    return {**_place(curve), **found, "knee": hinge and hinge.knee, "slope": hinge and hinge.slope}


def curve_text(series: PressureCurve) -> str:
    """Return a curve in a sentence: the pressure from which the job loses, how much, and the levels not reached."""
    curve, suspect = series.curve, f"; suspect: {listed(series.doubts)}" if series.doubts else ""
    difference = f"; {series.difference}" if series.difference else ""
    where = f"{series.job} beside {series.resource} ({series.isolation}{difference}{suspect})"
    if curve is None:
        return f"{where}: nothing is known of it at any level. Make observations shorter: -- --number 1."
    loss = _loss(curve, series.unit) if curve.loses else _no_loss(curve, series.unit)
    unreached = ""
    if curve.unreached:
        most = numbers.rate(max(point.achieved for point in curve.points))
        levels = _levels(curve.unreached)
        unreached = f" Not reached: {levels}; the neighbour got no more than {most} {series.unit}/s."
    return f"{where}: {loss}.{unreached}"


def _levels(levels: Iterable[int]) -> str:
    return listed([f"{level} %" for level in levels])


def _loss(curve: Curve, unit: str) -> str:
    scale, letter = next(pair for pair in SCALES if 100 * curve.hinge.slope * pair[0] >= LEAST or pair == SCALES[-1])
    lost = f"it loses {100 * scale * curve.hinge.slope:.3g} % of its rate with each {letter}{unit}/s"
    knee = curve.hinge.knee
    return f"beyond {numbers.rate(knee)} {unit}/s {lost}" if knee else f"{lost}, from the first on"


def _no_loss(curve: Curve, unit: str) -> str:
    """Return the sentence on a curve without a loss at its highest level, though lower levels may have one."""
    last = curve.points[-1]
    most = f"{numbers.rate(last.achieved)} {unit}/s"
    if curve.losing:
        return f"a loss is shown at {_levels(curve.losing)}; none at {last.level} % ({most}): more launches settle it"
    why = "there is no interval yet" if last.kept.interval is None else "no interval lies below 1"
    return f"no loss is shown up to {most} ({why})"
