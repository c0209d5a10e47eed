"""What jobs keep in pairs: predicted from their curves and pressures, measured, and the error of the one against the
other. No prediction stands without measured pairs beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product

from cotenant.report import numbers
from cotenant.report.grid import (
    Cell,
    Column,
    Grid,
    Measurement,
    Row,
    RowGroup,
    Words,
    measured_columns,
    place_column,
    row,
    word,
)
from cotenant.report.mixes import SINGLE
from cotenant.report.pairs import PairMatrix, pair_matrices
from cotenant.report.sense import Sensitivity, of_resources
from cotenant.report.summary import Summary
from cotenant.stats.multiprogram import Measure
from cotenant.stats.prediction import Fit, Sensed, Value, fit, predicted
from cotenant.text import listed, many


@dataclass(frozen=True, slots=True)
class PairPrediction:
    """What a victim keeps beside a neighbour; `fitted` pairs chose the rule, so that their errors prove nothing."""

    victim: str
    neighbour: str
    predicted: Value
    measured: Measure | None
    fitted: bool

    @property
    def error(self) -> float | None:
        """Predicted less measured, in shares of the rate alone."""
        return None if self.measured is None else self.predicted.value - self.measured.value


@dataclass(frozen=True, slots=True)
class Predictions:
    """The pairs of one suite on one host under one isolation; `blind` are resources whose probe showed no loss,
    `unknown` the jobs of pairs whose curves are not known of every resource."""

    suite: str
    host: str
    isolation: str
    resources: tuple[str, ...]
    blind: tuple[str, ...]
    unknown: tuple[str, ...]
    fit: Fit
    pairs: tuple[PairPrediction, ...]


def predictions(summary: Summary, curves: Sequence[Sensitivity]) -> list[Predictions]:
    """Return what can be predicted where pairs were measured as well."""
    resources = of_resources(curves)
    of_matrices = []
    for matrix in pair_matrices(summary):
        known = resources.get((matrix.suite, matrix.host, matrix.isolation), {})
        made = _of_matrix(matrix, known)
        if made is not None:
            of_matrices.append(made)
    return of_matrices


def _of_matrix(matrix: PairMatrix, resources: Mapping[str, Sensed]) -> Predictions | None:
    every = [*resources.values()]
    measured = {(victim, beside): measure for victim, of in matrix.kept.items() for beside, measure in of.items()}
    best = fit(every, {pair: measure.value for pair, measure in measured.items()})
    if best is None:
        return None
    jobs = list(dict.fromkeys((*matrix.jobs, *(job for of in every for job in of.jobs))))
    pairs = [
        PairPrediction(*pair, value, measured.get(pair), pair in best.of)
        for pair in product(jobs, jobs)
        if (value := predicted(every, pair, best.rule)) is not None
    ]
    blind = tuple(name for name, of in resources.items() if not of.known)
    seen = tuple(name for name in resources if name not in blind)
    unknown = tuple(job for job in matrix.jobs if any(job not in of.jobs for of in every))
    return Predictions(matrix.suite, matrix.host, matrix.isolation, seen, blind, unknown, best, tuple(pairs))


# The view

LEGEND = (
    "predicted: the job's curve on each resource, read at the level of a neighbour that leaves a probe as much as the "
    "other job does; error: predicted less measured, in points. fit: pairs that chose how resources are combined."
)
FIELDS = (
    *("suite", "host", "isolation", "victim", "neighbour", "predicted", "predicted_low", "predicted_high"),
    *("measured", "measured_low", "measured_high", "launches", "error", "fitted", "rule"),
)
NOTHING = (
    "Nothing can be predicted beside measured pairs: it takes three pairs at least of jobs whose curves are known."
)


def _predicted(item: PairPrediction) -> Measurement:
    return Measurement(item.predicted.value, item.predicted.interval, "")


def _measured(item: PairPrediction) -> Measurement | None:
    measure = item.measured
    return None if measure is None else Measurement(measure.value, measure.interval, str(measure.n), (measure.n,))


def _error(item: PairPrediction) -> Cell:
    error = item.error
    return Cell(numbers.ABSENT if error is None else f"{100 * error:+.1f}", {"error": error})


PLACE: Sequence[Column[Predictions]] = (
    place_column("suite", lambda of: of.suite),
    place_column("host", lambda of: of.host),
    place_column("isolation", lambda of: of.isolation),
)
COLUMNS: tuple[Column[PairPrediction], ...] = (
    Column("job", lambda item: word(item.victim, "victim"), left=True),
    Column("beside", lambda item: word(item.neighbour, "neighbour"), left=True),
    *measured_columns(
        "predicted",
        _predicted,
        ("predicted", "predicted_low", "predicted_high"),
        show=numbers.ratio,
        span=numbers.ratio_interval,
    )[:2],
    *measured_columns(
        "measured",
        _measured,
        ("measured", "measured_low", "measured_high", "launches"),
        show=numbers.ratio,
        span=numbers.ratio_interval,
    ),
    Column("error, points", _error),
    Column("", lambda item: Cell("fit" if item.fitted else "", {"fitted": int(item.fitted)}), left=True),
)


def prediction_grid(every: Sequence[Predictions]) -> Grid:
    """Return a row per direction of each pair, and how far predictions err below."""
    groups = [
        RowGroup(
            [*_rows(each)],
            f"pairs of {each.suite or 'suite'}",
            f"{each.host}, isolation {each.isolation}",
            _notes(each),
        )
        for each in every
    ]
    document = {"schema": "cotenant-prediction-1", "predictions": [asdict(each) for each in every]}
    return Grid((*PLACE, *COLUMNS), groups, notes=[((LEGEND, "dim"),)], fields=FIELDS, document=document)


def _rows(of: Predictions) -> Iterator[Row]:
    place = row(PLACE, of)
    for pair in of.pairs:
        made = row(COLUMNS, pair)
        yield Row({**place.cells, **made.cells}, {**place.record, **made.record, "rule": of.fit.rule})


def _notes(of: Predictions) -> list[Words]:
    lines: list[Words] = [((f"{prediction_sentence(of)}.", "bold"),), ((f"{_rule(of)}.", ""),)]
    if of.unknown:
        lines.append(((f"{listed(of.unknown)}: not predicted, as a curve is missing (--table sense).", "yellow"),))
    if any(pair.measured is not None and pair.measured.n == 1 for pair in of.pairs):
        lines.append(((SINGLE, "dim"),))
    return lines


def _rule(of: Predictions) -> str:
    how = "the largest loss alone" if of.fit.rule == "largest" else "the product of what each leaves"
    of_pairs = f"as {many(len(of.fit.of), 'pair')} prefer, a third"
    blind = f"; {listed(of.blind)} not counted: the probe lost nothing" if of.blind else ""
    return f"Combined over {listed(of.resources) or 'no resource'}: {how}, {of_pairs}{blind}"


def prediction_sentence(of: Predictions) -> str:
    """Return how far predictions err on pairs that did not choose the rule."""
    best = of.fit
    return (
        f"On {many(best.others, 'other pair')} predictions err by {100 * best.error:.1f} points on average, by "
        f"{100 * best.worst:.1f} at most; one number for all pairs would err by {100 * best.constant:.1f}"
    )
