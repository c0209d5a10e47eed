"""The shares that jobs keep of their rates beside neighbours of known pressure: a curve per job and resource."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain

from cotenant.report import numbers
from cotenant.report.grid import Cell, Column, Grid, RowGroup, number, place_columns, row, text_column
from cotenant.report.kept import OF_N, kept_columns, kept_fields
from cotenant.report.summary import JobSummary, Summary
from cotenant.results.launches import Work, distinguishing_values, grouped
from cotenant.stats.pressure import Curve, Point
from cotenant.suite.pressure import level_of
from cotenant.text import listed

OF_LEVEL = ("benchmark", "mix", "neighbours")
"""Words of a work that name the neighbour, and so its level."""


@dataclass(frozen=True, slots=True)
class CurveConditions:
    """The common properties of the launches of one curve."""

    suite: str
    host: str
    job: str
    isolation: str
    resource: str
    unit: str
    work: str


@dataclass(frozen=True, slots=True)
class PressureCurve:
    """A job's curve under these conditions; None where no level has a kept share.

    `doubts` are the rules of its records' warnings. `differs` says in what its work differs from that of the job's
    other curves.
    """

    conditions: CurveConditions
    curve: Curve | None
    doubts: tuple[str, ...]
    differs: str = ""

    @property
    def points(self) -> tuple[Point, ...]:
        """The points of its curve."""
        return () if self.curve is None else self.curve.points


def pressure_curves(summary: Summary) -> list[PressureCurve]:
    """Return the curves of jobs' kept shares beside neighbours of known pressure; each level is a pair's."""
    made: list[PressureCurve] = []
    curves: dict[CurveConditions, list[tuple[int, JobSummary, JobSummary]]] = {}
    for pair in grouped(summary.pressed, lambda job: (job.suite, job.host, job.isolation, job.mix)).values():
        neighbours = [(known, job) for job in pair if (known := level_of(job.cell)) is not None]
        for victim in pair if neighbours else ():
            if level_of(victim.cell) is None:
                (resource, level), neighbour = max(
                    reversed(neighbours), key=lambda of: len(_starts(of[1]) & _starts(victim))
                )
                work = next(iter(victim.members.columns("work").to_series()), "")
                conditions = CurveConditions(
                    victim.suite, victim.host, victim.cell, victim.isolation, resource, neighbour.unit, work
                )
                curves.setdefault(conditions, []).append((level, victim, neighbour))
    for conditions, pairs in curves.items():
        in_time = sorted((victim for _, victim, _ in pairs if victim.rates), key=lambda victim: max(_starts(victim)))
        works: list[Work] = list(dict.fromkeys(map(_work_of, in_time))) or [()]
        for work in works:
            own = [of for of in pairs if (_work_of(of[1]) if of[1].rates else works[-1]) == work]
            made.append(_curve_of(conditions, own, distinguishing_values(work, works)))
    return made


def _curve_of(
    conditions: CurveConditions, pairs: Sequence[tuple[int, JobSummary, JobSummary]], differs: str
) -> PressureCurve:
    """Return the curve of these levels, each with the job and its neighbour."""
    points = [
        Point(level, next(iter(neighbour.tenants.values())).rate, kept)
        for level, victim, neighbour in sorted(pairs, key=lambda pair: pair[0])
        for kept in victim.shares
        if neighbour.tenants
    ]
    doubts = sorted({*chain.from_iterable(victim.doubts for _, victim, _ in pairs)})
    return PressureCurve(conditions, Curve(tuple(points)) if points else None, tuple(doubts), differs)


def _work_of(victim: JobSummary) -> Work:
    """Return the work of a job, which is equal beside neighbours of all levels if nothing else differs."""
    return tuple(pair for pair in victim.work or () if pair[0] not in OF_LEVEL)


def _starts(job: JobSummary) -> set[str]:
    """Return the starts of the launches of a job that count."""
    return {launch.start_time for launch in job.rates}


# The view

FIELDS = (
    *("suite", "host", "job", "isolation", "resource", "level", "achieved", "unit"),
    *kept_fields("kept"),
)
LEGEND = (
    "kept: the rate beside the neighbour over the rate while it is held still; achieved: what the neighbour got, in "
    "its unit a second. Up to the knee all is kept."
)
SCALES = ((1.0, ""), (1e3, "thousand "), (1e6, "million "), (1e9, "billion "))
LEAST = 0.1
"""A slope is stated for a number of units of pressure that costs at least this many percent."""
Item = tuple[PressureCurve, Point]


def _first(item: Item, text: str, name: str) -> Cell:
    """Return a cell whose text stands at the first level only; programs read it at all levels."""
    return Cell(text if item[1] is item[0].points[0] else "", {name: text})


COLUMNS: tuple[Column[Item], ...] = (
    *place_columns(lambda item: item[0].conditions, "suite", "host"),
    Column("job", lambda item: _first(item, item[0].conditions.job, "job"), left=True),
    Column("slices", lambda item: _first(item, item[0].conditions.isolation, "isolation"), left=True),
    Column("pressure", lambda item: _first(item, item[0].conditions.resource, "resource"), left=True),
    Column("level", lambda item: number(item[1].level, "{} %".format, "level")),
    Column("achieved", lambda item: number(item[1].achieved, numbers.rate, "achieved")),
    text_column("unit/s", lambda item: item[0].conditions.unit, "unit"),
    *kept_columns("kept", lambda item: item[1].kept, "kept"),
)


def pressure_grid(curves: Sequence[PressureCurve]) -> Grid:
    """Return a row per level of each curve, and below each its slope and knee."""
    groups = [
        RowGroup(
            [row(COLUMNS, (each, point)) for each in group for point in each.points],
            suite,
            host,
            [((words_of(each), ""),) for each in group],
        )
        for (suite, host), group in grouped(curves, lambda each: (each.conditions.suite, each.conditions.host)).items()
    ]
    hinges = [each.curve.hinge if each.curve and each.curve.loses else None for each in curves]
    document = {
        "schema": "cotenant-pressure-1",
        "curves": [asdict(of) | {"hinge": hinge and asdict(hinge)} for of, hinge in zip(curves, hinges, strict=True)],
    }
    return Grid(COLUMNS, groups, notes=[((f"{LEGEND} {OF_N}", "dim"),)], fields=FIELDS, document=document)


def words_of(job: PressureCurve) -> str:
    """Return a curve in a sentence: the pressure from which the job loses, how much, and the levels not reached."""
    conditions, curve = job.conditions, job.curve
    suspect = f"; suspect: {listed(job.doubts)}" if job.doubts else ""
    differs = f"; {job.differs}" if job.differs else ""
    where = f"{conditions.job} beside {conditions.resource} ({conditions.isolation}{differs}{suspect})"
    if curve is None:
        return f"{where}: nothing is known of it at any level. Make observations shorter: -- --number 1."
    loss = _loss(curve, conditions.unit) if curve.loses else _no_loss(curve, conditions.unit)
    unreached = ""
    if curve.unreached:
        most = numbers.rate(max(point.achieved for point in curve.points))
        levels = _levels(curve.unreached)
        unreached = f" Not reached: {levels}; the neighbour got no more than {most} {conditions.unit}/s."
    return f"{where}: {loss}.{unreached}"


def _levels(levels: Iterable[int]) -> str:
    return listed([f"{level} %" for level in levels])


def _loss(curve: Curve, unit: str) -> str:
    scale, letter = next(each for each in SCALES if 100 * curve.hinge.slope * each[0] >= LEAST or each == SCALES[-1])
    lost = f"it loses {100 * scale * curve.hinge.slope:.3g} % of its rate with each {letter}{unit}/s"
    knee = curve.hinge.knee
    return f"beyond {numbers.rate(knee)} {unit}/s {lost}" if knee else f"{lost}, from the first on"


def _no_loss(curve: Curve, unit: str) -> str:
    """Return the sentence on a curve whose highest level shows no loss, though lower ones may."""
    last = curve.points[-1]
    most = f"{numbers.rate(last.achieved)} {unit}/s"
    if curve.losing:
        return f"a loss is shown at {_levels(curve.losing)}; none at {last.level} % ({most}): more launches settle it"
    why = "there is no interval yet" if last.kept.interval is None else "no interval lies below 1"
    return f"no loss is shown up to {most} ({why})"
