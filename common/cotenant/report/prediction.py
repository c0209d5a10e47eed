"""Predicts the rates that jobs keep in pairs from the other pairs, and states the error against measured pairs.

Predictions are shown only beside measured pairs, and only if they err less than one number for all pairs would.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product

import numpy as np

from cotenant.report import numbers
from cotenant.report.beside import pair_matrices
from cotenant.report.grid import Column, Grid, RowGroup, Words, number, place_columns, row, text_column
from cotenant.report.kept import kept_columns, kept_fields
from cotenant.report.sense import Sensitivity, of_resources
from cotenant.report.summary import Summary
from cotenant.stats.kept import Kept
from cotenant.stats.prediction import Fit, by_curves, predict
from cotenant.text import listed


@dataclass(frozen=True, slots=True)
class PairPrediction:
    """The share that a victim keeps beside a neighbour; a measured pair is predicted without its own launch."""

    victim: str
    neighbour: str
    predicted: float
    measured: Kept | None

    @property
    def error(self) -> float | None:
        """Predicted less measured, in shares of the rate alone."""
        return None if self.measured is None else self.predicted - self.measured.value


@dataclass(frozen=True, slots=True)
class Predictions:
    """The pairs of one suite on one host under one isolation; none if one number for all pairs errs no more.

    `resources` are those whose curves predict.
    """

    suite: str
    host: str
    isolation: str
    fit: Fit
    resources: tuple[str, ...]
    pairs: tuple[PairPrediction, ...]


def predictions(summary: Summary, curves: Sequence[Sensitivity]) -> list[Predictions]:
    """Return the predictions where three pairs at least were measured."""
    made, of_places = [], of_resources(curves)
    for matrix in pair_matrices(summary):
        place = (matrix.suite, matrix.host, matrix.isolation)
        resources = of_places.get(place, {})
        pairs = [*product(matrix.jobs, matrix.jobs)]
        measured = [share and share.kept for share in map(matrix.shares.get, pairs)]
        kept = np.reshape([math.nan if each is None else each.value for each in measured], (len(matrix.jobs), -1))
        if (found := predict(kept, by_curves([*resources.values()], matrix.jobs))) is not None:
            values, fit = found
            shown = map(PairPrediction, *zip(*pairs, strict=True), values.ravel().tolist(), measured)
            seen = tuple(resources) if fit.curves else ()
            made.append(Predictions(*place, fit, seen, tuple(shown) if fit.error < fit.constant else ()))
    return made


# The view

LEGEND = (
    "predicted: what all pairs keep, what this job keeps of it and what this neighbour leaves of it, known from the "
    "other launches; error: predicted less measured, in points."
)
FIELDS = (
    *("suite", "host", "isolation", "victim", "neighbour", "predicted"),
    *(*kept_fields("measured"), "error"),
)
NOTHING = "Nothing can be predicted: it takes three measured pairs at least."


Item = tuple[Predictions, PairPrediction]
COLUMNS: Sequence[Column[Item]] = (
    *place_columns(lambda item: item[0], "suite", "host", "isolation"),
    text_column("job", lambda item: item[1].victim, "victim"),
    text_column("beside", lambda item: item[1].neighbour, "neighbour"),
    Column("predicted", lambda item: number(item[1].predicted, numbers.ratio, "predicted")),
    *kept_columns("measured", lambda item: item[1].measured, "measured"),
    Column("error, points", lambda item: number(item[1].error, lambda error: f"{100 * error:+.1f}", "error")),
)


def prediction_grid(every: Sequence[Predictions]) -> Grid:
    """Return a row per direction of each pair, and below them the predictions' errors."""
    groups = [
        RowGroup(
            [row(COLUMNS, (each, pair)) for pair in each.pairs],
            f"pairs of {each.suite or 'suite'}",
            f"{each.host}, isolation {each.isolation}",
            _notes(each),
        )
        for each in every
    ]
    document = {"schema": "cotenant-prediction-2", "predictions": [asdict(each) for each in every]}
    return Grid(COLUMNS, groups, notes=[((LEGEND, "dim"),)], fields=FIELDS, document=document)


def _notes(of: Predictions) -> list[Words]:
    """Return the predictions' error on launches left out of them, or that there is nothing to predict."""
    error, constant = (f"{100 * each:.1f}" for each in (of.fit.error, of.fit.constant))
    if not of.pairs:
        said = (
            f"There is nothing to predict: what these jobs keep would be missed by {error} points on average, and by "
            f"{constant} with one number for all pairs."
        )
        return [((said, "bold"),)]
    said = (
        f"On launches left out predictions err by {error} points on average, by {100 * of.fit.worst:.1f} at most; "
        f"one number for all pairs errs by {constant}."
    )
    beforehand = f"Before any pair is known, curves on {listed(of.resources)} tell what it keeps."
    return [((said, "bold"),), *([((beforehand, ""),)] if of.resources else [])]
