"""Predicts the shares that jobs keep in pairs from the pairs that were measured: kept = mean + victim + neighbour.

Both effects are held small by a penalty (ridge regression, Hoerl and Kennard, 1970). Candidates differ in the penalty,
in one rank more (a victim's sensitivity times a neighbour's pressure) and in whether curves give the
expectation beforehand. Cross-validation over launches chooses among them, and once more, around it, says how far the
choice errs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
"""A matrix (J, J): the share that the victim of a row keeps beside the neighbour of a column; NaN where unknown."""
LEAST_LAUNCHES = 3
"""With fewer pairs nothing can be chosen without one of them and tried on it."""
PENALTIES = (0.3, 1.0, 3.0)
"""In pairs: an effect known from so many is half believed."""
RANK_PART = 3
"""One rank more is tried where one of so many pairs is measured."""
FOLDS = 24
"""Among more launches several are left out together."""
SWEEPS = 6
FULL = 100
"""The level of pressure, in percent, at which jobs are told apart."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The candidate that errs least, and how far predictions of measured pairs err without their own launch, by the
    candidate that is chosen without it, in shares of the rate alone.

    `penalty` of each effect, one `rank` more or none, `curves` as the expectation or not; `error` is the mean
    distance, `worst` the largest, `constant` the mean one of one number for all pairs.
    """

    penalty: float
    rank: int
    curves: bool
    error: float
    worst: float
    constant: float


Traits = Mapping[str, tuple[float, float]]
"""Two shares of rates alone by job, on one resource: the job's beside the neighbour at full level, and the neighbour's
beside the job."""


def by_curves(resources: Sequence[Traits], jobs: Sequence[str]) -> Numbers | None:
    """Return the shares that jobs are expected to keep by their curves alone. None where there is no resource, or one
    was not measured of a job.

    Of each resource a victim keeps 1 - its loss beside our neighbour at full level x the loss of our neighbour beside
    the other job (Bubble-Up: Mars et al., MICRO 2011).
    """
    if not resources or any(job not in of for of in resources for job in jobs):
        return None
    shares = np.array([[of[job] for job in jobs] for of in resources])
    lost, pressed = np.moveaxis(np.clip(1 - shares, 0.0, 1.0), -1, 0)
    expected: Numbers = np.prod(1 - lost[:, :, None] * pressed[:, None, :], axis=0)
    return expected


def predict(kept: Numbers, expected: Numbers | None = None) -> tuple[Numbers, Fit] | None:
    """Return the predicted shares of all jobs in pairs (J, J), from those that are measured, and how far that errs.

    Of a measured pair it is the model of the other launches; both directions of a launch belong together. `expected`:
    the shares by curves. None where fewer than LEAST_LAUNCHES were launched.
    """
    known = ~np.isnan(kept)
    cells = np.arange(kept.size).reshape(kept.shape)
    launches = np.minimum(cells, cells.T)
    different, order = np.unique(launches[known], return_inverse=True)
    if len(different) < LEAST_LAUNCHES:
        return None
    fold = np.full(kept.shape, -1)
    fold[known] = order % FOLDS
    inside = fold == np.arange(min(len(different), FOLDS))[:, None, None]
    # Weights (F, F, J, J) without two folds; on the diagonal without one.
    weights = known & ~(inside[:, None] | inside[None])
    candidates = [
        (penalty, rank, curves)
        for curves in ((False,) if expected is None else (False, True))
        for rank in ((0, 1) if RANK_PART * known.sum() >= known.size else (0,))
        for penalty in PENALTIES
    ]
    inner, outer, without = [], [], []
    for candidate in candidates:
        made = _fitted(kept, weights, *candidate, expected)
        away = np.nansum(np.abs(made - kept) * inside[None], axis=(2, 3))
        outer.append(np.trace(away))
        inner.append(away.sum(axis=1) - np.diag(away))
        without.append(np.einsum("ffij,fij->ij", made, inside))
    chosen = np.argmin(inner, axis=0)
    left_out = np.take_along_axis(np.array(without), chosen[fold][None], axis=0)[0]
    means = np.array([kept[known & ~of].mean() for of in inside])
    candidate = candidates[int(np.argmin(outer))]
    whole = _fitted(kept, known[None], *candidate, expected)[0]
    errors = np.abs(left_out - kept)[known]
    constant = np.abs(means[fold] - kept)[known].mean()
    return np.where(known, left_out, whole), Fit(*candidate, float(errors.mean()), float(errors.max()), float(constant))


def _fitted(
    kept: Numbers, weights: npt.NDArray[np.bool_], penalty: float, rank: int, curves: bool, expected: Numbers | None
) -> Numbers:
    """Return the predictions (..., J, J) of all pairs from those with a weight (..., J, J)."""
    prior = expected if curves and expected is not None else np.zeros_like(kept)
    used, of, size = weights.astype(float), np.where(weights, kept - prior, 0.0), len(kept)
    rows, columns, one = used.sum(axis=-1, keepdims=True), used.sum(axis=-2, keepdims=True), np.eye(size)
    normal = np.block(
        [
            [rows.sum(axis=-2, keepdims=True), rows.swapaxes(-1, -2), columns],
            [rows, (rows + penalty) * one, used],
            [columns.swapaxes(-1, -2), used.swapaxes(-1, -2), (columns + penalty) * one],
        ]
    )
    sums = np.concatenate([of.sum(axis=(-1, -2))[..., None], of.sum(axis=-1), of.sum(axis=-2)], axis=-1)
    mean, victims, neighbours = np.split(np.linalg.solve(normal, sums[..., None]), [1, size + 1], axis=-2)
    made: Numbers = mean + victims + neighbours.swapaxes(-1, -2)
    if rank:
        made = made + _rank_one(np.where(weights, of - made, 0.0), used, penalty)
    return np.maximum(made + prior, 0.0)


def _rank_one(left: Numbers, used: Numbers, penalty: float) -> Numbers:
    """Return the product of a number of each victim and one of each neighbour that is nearest to the rest, `left`, by
    alternating ridge regressions from the first singular vectors on."""
    scale = np.sqrt((left**2).sum(axis=(-1, -2), keepdims=True) / used.sum(axis=(-1, -2), keepdims=True))
    left = left / np.maximum(scale, np.finfo(float).tiny)
    _, sizes, turned = np.linalg.svd(left)
    of_neighbours = turned[..., 0, :] * np.sqrt(sizes[..., :1])
    for _ in range(SWEEPS):
        squares = np.einsum("...ij,...j->...i", used, of_neighbours**2)
        of_victims = np.einsum("...ij,...j->...i", left, of_neighbours) / (squares + penalty)
        squares = np.einsum("...ij,...i->...j", used, of_victims**2)
        of_neighbours = np.einsum("...ij,...i->...j", left, of_victims) / (squares + penalty)
    made: Numbers = scale * of_victims[..., :, None] * of_neighbours[..., None, :]
    return made
