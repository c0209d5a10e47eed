"""Sensitivity: the shares that jobs keep of their rates beside neighbours of known pressure, with slope and knee."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import msgspec

from cotenant.report import numbers
from cotenant.report.grid import (
    Cell,
    Column,
    Grid,
    Row,
    RowGroup,
    Words,
    number,
    place_columns,
    row,
    word,
)
from cotenant.results.decoded import Decoded, text_of
from cotenant.results.launches import grouped
from cotenant.results.pressure import is_probe, pressure_in
from cotenant.results.record import Record, plain
from cotenant.stats.fingerprint import FULL, Sensed, Taken, taken
from cotenant.stats.sensitivity import ROUNDS, Curve, LevelBlock, Point, Round, curve, rounds_of, samples_of
from cotenant.text import listed

OF_ONE_RATE = frozenset(("drift", "outliers"))
"""Findings that a rate is not the same throughout: beside several levels it should not be."""


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

    @property
    def place(self) -> tuple[str, str, str]:
        """Suite, host and isolation: curves of one place are held against each other."""
        return self.suite, self.host, self.isolation


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """A job's curve under these conditions; none where no observation lay beside level 0.

    `samples` are those of the curve; `taken` is what the job takes of the resource, None where no probe was launched.
    `doubts` are the rules of its records' warnings, but for those that hold a rate to be one.
    """

    conditions: CurveConditions
    curve: Curve | None
    samples: tuple[Round, ...]
    taken: Taken | None
    doubts: tuple[str, ...]

    @property
    def is_probe(self) -> bool:
        """Whether it is the curve of a probe, by which others are measured."""
        return is_probe(self.conditions.job)

    @property
    def highest(self) -> Point | None:
        """The point of the highest level; None where there is none above 0."""
        last = self.curve.points[-1] if self.curve is not None else None
        return last if last is not None and last.level else None


def sensitivities(records: Iterable[Decoded]) -> list[Sensitivity]:
    """Return the curves of these records, each of one tenant of a launch beside a neighbour of known pressure."""
    launches: list[tuple[CurveConditions, list[LevelBlock], set[str]]] = []
    for record in records:
        pressure = pressure_in(record.fields)
        if pressure is not None and pressure.blocks:
            place = (
                record.suite,
                text_of(record.at("hostname")),
                record.cell,
                text_of(record.at("isolation", "backend")),
            )
            conditions = CurveConditions(*place, pressure.resource, pressure.unit, record.unique_id)
            warnings = {finding.rule for finding in record.findings if finding.severity == "warning"}
            launches.append((conditions, pressure.blocks, warnings - OF_ONE_RATE))
    curves = []
    for key, group in grouped(launches, lambda launch: launch[0]).items():
        blocks = [blocks for _, blocks, _ in group]
        doubts = sorted(set().union(*(of[2] for of in group)))
        curves.append(Sensitivity(key, curve(blocks), tuple(samples_of(rounds_of(blocks))), None, tuple(doubts)))
    return _with_taken(curves)


def of_resources(curves: Iterable[Sensitivity]) -> dict[tuple[str, str, str], dict[str, Sensed]]:
    """Return what was measured of each resource that a probe was launched on, by suite, host and isolation."""
    by_place: dict[tuple[str, str, str], dict[str, Sensed]] = {}
    known = [each for each in curves if each.curve is not None]
    for place, group in grouped(known, lambda each: each.conditions.place).items():
        for resource, of in grouped(group, lambda each: each.conditions.resource).items():
            whole = [(each, _at_full(each)) for each in of]
            jobs = {each.conditions.job: samples for each, samples in whole if samples and not each.is_probe}
            for probe, samples in whole:
                if probe.is_probe and samples and probe.curve is not None:
                    sensed = Sensed(probe.conditions.unit, jobs, samples, probe.curve.loses)
                    by_place.setdefault(place, {})[resource] = sensed
    return by_place


def _at_full(of: Sensitivity) -> list[Round]:
    """Return the samples in which the neighbour was at its highest level."""
    return [sample for sample in of.samples if FULL in sample.achieved]


def _with_taken(curves: Sequence[Sensitivity]) -> list[Sensitivity]:
    """Return the curves with their jobs' use. Of a job that did two works each curve has samples of its own."""
    resources = of_resources(curves)
    done = []
    for each in curves:
        job, own = each.conditions.job, _at_full(each)
        of = resources.get(each.conditions.place, {}).get(each.conditions.resource)
        if of is not None and own and not each.is_probe:
            done.append(replace(each, taken=taken(replace(of, jobs={job: own}), job)))
        else:
            done.append(each)
    return done


def sensitivities_of(records: Iterable[Record]) -> list[Sensitivity]:
    """Return the curves of records that were just made."""
    return sensitivities(Decoded(msgspec.to_builtins(plain(record))) for record in records)


# The view

FIELDS = (
    *("suite", "host", "job", "isolation", "resource", "level", "achieved", "unit"),
    *("kept", "kept_low", "kept_high", "n", "samples", "launches"),
    *("leaves", "leaves_low", "leaves_high", "like_level", "like_achieved"),
)
LEGEND = (
    "kept: the rate beside the neighbour over that beside its level 0, in the same round of levels; achieved: what the "
    "neighbour got, in its unit a second. Up to the knee all is kept."
)
OF_ROUNDS = "n counts rounds of a single launch, or of two: such an interval knows nothing of other launches."
SCALES = ((1.0, ""), (1e3, "thousand "), (1e6, "million "), (1e9, "billion "))
LEAST = 0.1
"""A slope is of so many units that it is this many percent, or more."""
Item = tuple[Sensitivity, Curve, Point]


def _first(item: Item, text: str, name: str) -> Cell:
    """Return a cell that people see at the first level only."""
    return Cell(text if item[2].level == 0 else "", {name: text})


def _achieved(item: Item) -> Cell:
    achieved = item[2].achieved
    return Cell(numbers.rate(achieved) if achieved else "0", {"achieved": achieved})


def _interval(item: Item) -> Cell:
    """At level 0 there is nothing to be unsure of."""
    point = item[2]
    low, high = point.interval or (None, None)
    text = numbers.span(point.interval, numbers.ratio_interval) if point.level else ""
    return Cell(text, {"kept_low": low, "kept_high": high})


def _n(item: Item) -> Cell:
    return Cell(str(item[2].n), {"n": item[2].n, "samples": item[1].samples, "launches": item[1].launches})


COLUMNS: tuple[Column[Item], ...] = (
    *place_columns(lambda item: item[0].conditions, "suite", "host"),
    Column("job", lambda item: _first(item, item[0].conditions.job, "job"), left=True),
    Column("slices", lambda item: _first(item, item[0].conditions.isolation, "isolation"), left=True),
    Column("pressure", lambda item: _first(item, item[0].conditions.resource, "resource"), left=True),
    Column("level", lambda item: Cell(f"{item[2].level} %", {"level": item[2].level})),
    Column("achieved", _achieved),
    Column("unit/s", lambda item: word(item[0].conditions.unit, "unit"), left=True),
    Column("kept", lambda item: number(item[2].kept, numbers.ratio, "kept")),
    Column("95 % interval", _interval),
    Column("n", _n),
)


def sense_grid(curves: Iterable[Sensitivity]) -> Grid:
    """Return a row per level of each curve, and below each its slope and knee."""
    every = list(curves)
    groups = [RowGroup([*rows], suite, host, [*notes]) for suite, host, rows, notes in _groups(every)]
    known = [each.curve for each in every if each.curve is not None]
    legend = LEGEND if all(each.samples != ROUNDS for each in known) else f"{LEGEND} {OF_ROUNDS}"
    document = {
        "schema": "cotenant-sensitivity-1",
        "curves": [_document(each) for each in every],
    }
    return Grid(COLUMNS, groups, notes=[((legend, "dim"),)], fields=FIELDS, document=document)


def _document(of: Sensitivity) -> dict[str, Any]:
    """Return a curve for programs; its samples stand in the records."""
    fields = {field: getattr(of, field) for field in ("conditions", "curve", "taken")}
    known = {field: None if value is None else asdict(value) for field, value in fields.items()}
    return known | {"doubts": of.doubts, "hinge": asdict(of.curve.hinge) if of.curve and of.curve.loses else None}


def _groups(curves: list[Sensitivity]) -> Iterator[tuple[str, str, list[Row], list[Words]]]:
    for (suite, host), group in grouped(curves, lambda each: (each.conditions.suite, each.conditions.host)).items():
        rows = [
            _with_leaves(row(COLUMNS, (each, each.curve, point)), each)
            for each in group
            if each.curve
            for point in each.curve.points
        ]
        yield suite, host, rows, [((words_of(each), ""),) for each in group]


def _with_leaves(of: Row, sensitivity: Sensitivity) -> Row:
    """Return a row with the share that the job leaves a probe, for programs."""
    if (known := sensitivity.taken) is None:
        return of
    low, high = known.interval or (None, None)
    more = {"leaves": known.kept, "leaves_low": low, "leaves_high": high}
    return Row(of.cells, {**of.record, **more, "like_level": known.level, "like_achieved": known.amount})


def words_of(sensitivity: Sensitivity) -> str:
    """Return a curve in a sentence: from which pressure on the job loses, and how much."""
    return f"{_loss(sensitivity)}{_unreached(sensitivity)}"


def _unreached(sensitivity: Sensitivity) -> str:
    """Return which levels the neighbour did not reach; "" where it reached all."""
    if sensitivity.curve is None or not (levels := sensitivity.curve.unreached):
        return ""
    most = max(point.achieved for point in sensitivity.curve.points)
    names = listed([f"{level} %" for level in levels])
    return (
        f" Not reached: {names}; the neighbour got no more than {numbers.rate(most)} {sensitivity.conditions.unit}/s."
    )


def _loss(sensitivity: Sensitivity) -> str:
    of, curve = sensitivity.conditions, sensitivity.curve
    suspect = f"; suspect: {listed(sensitivity.doubts)}" if sensitivity.doubts else ""
    who = f"{of.job} beside {of.resource} ({of.isolation}{suspect})"
    if curve is None:
        return f"{who}: no observation lay within a block of level 0. Make them shorter: -- --number 1."
    if (last := sensitivity.highest) is None:
        return f"{who}: observations lay within blocks of level 0 alone. Make them shorter: -- --number 1."
    if not curve.loses:
        return f"{who}: {_no_loss(curve, last, of.unit)}."
    scale, letter = next(each for each in SCALES if 100 * curve.hinge.slope * each[0] >= LEAST or each == SCALES[-1])
    lost = f"it loses {100 * scale * curve.hinge.slope:.3g} % of its rate with each {letter}{of.unit}/s"
    knee = curve.hinge.knee
    return f"{who}: beyond {numbers.rate(knee)} {of.unit}/s {lost}." if knee else f"{who}: {lost}, from the first on."


def _no_loss(curve: Curve, last: Point, unit: str) -> str:
    """Return what is known of a curve whose highest level shows no loss; lower ones may."""
    most = f"{numbers.rate(last.achieved)} {unit}/s"
    if curve.losing:
        lower = listed([f"{level} %" for level in curve.losing])
        return f"a loss is shown at {lower}; none at {last.level} % ({most}): more launches settle it"
    why = "no interval, of fewer than three rounds" if last.interval is None else "no interval lies below 1"
    return f"no loss is shown up to {most} ({why})"
