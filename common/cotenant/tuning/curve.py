"""A model of the rate over the batch size: a Gaussian process on logarithms (Rasmussen and Williams, 2006).

Its kernel is Matern 5/2 over octaves, a slope and a level. What a further launch is worth is its knowledge gradient
(Frazier, Powell and Dayanik, 2009): by how much the best size's expected rate would rise. So a new size and a further
launch of a known one are weighed by one measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

LENGTHS = (1.0, 2.0, 4.0)
"""Octaves over which a curve bends."""
AMPLITUDES = (0.05, 0.15, 0.45)
"""How far a curve departs from a straight line, as a part of the rate."""
LIKELY_LENGTH, LIKELY_AMPLITUDE, DOUBT = 2.0, 0.15, 0.8
"""The most likely ones beforehand, and the standard deviation of their logarithms."""
SLOPE, LEVEL = 0.3, 1.0
"""Standard deviations of the slope per octave, and of the level around the mean."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(25)


@dataclass(frozen=True, slots=True, eq=False)
class SizeCurve:
    """The expected logarithm of the rate at each of the `sizes`, and the covariance of its errors."""

    sizes: tuple[int, ...]
    expected: Numbers
    covariance: Numbers
    spread: float

    def best_of(self, sizes: Sequence[int]) -> int:
        """Return which of these sizes has the highest expected rate; of equal ones the smallest."""
        return max(sorted(sizes), key=lambda size: self.expected[self.sizes.index(size)])

    def worth(self, known: Sequence[int]) -> dict[int, float]:
        """Return what one launch more of each size is worth: how far the best expected logarithm is likely to rise.

        Only `known` sizes, and the one that is launched, can be the best: none is chosen that nobody has launched.
        """
        deviations = np.sqrt(np.diag(self.covariance) + self.spread**2)
        at = [self.sizes.index(size) for size in known]
        before, worth = self.expected[at].max(), {}
        for index, size in enumerate(self.sizes):
            choice = [*dict.fromkeys([*at, index])]
            moves = self.covariance[index, choice] / deviations[index]
            # A column an outcome of the launch: the expectation of each size after it.
            after = self.expected[choice, None] + moves[:, None] * NODES
            worth[size] = float(after.max(axis=0) @ WEIGHTS / WEIGHTS.sum() - before)
        return worth


def curve(logs: Mapping[int, Sequence[float]], sizes: Sequence[int], spread: float) -> SizeCurve:
    """Return the curve through the launches' log rates by batch size, at `sizes`; `spread` is that between launches.

    Length and amplitude are the most probable pair of those above. Raises ValueError where there is no launch.
    """
    if not logs:
        raise ValueError("a curve needs a launch")
    known = np.log2(np.array(list(logs), np.float64))
    means = np.array([np.mean(of) for of in logs.values()])
    noise = np.array([spread**2 / len(of) for of in logs.values()])
    middle, level = known.mean(), means.mean()
    best = (-np.inf, LIKELY_LENGTH, LIKELY_AMPLITUDE)
    for length in LENGTHS:
        for amplitude in AMPLITUDES:
            doubts = (np.log(length / LIKELY_LENGTH) / DOUBT) ** 2 + (np.log(amplitude / LIKELY_AMPLITUDE) / DOUBT) ** 2
            covariance = _kernel(known - middle, known - middle, length, amplitude) + np.diag(noise)
            probability = _log_likelihood(means - level, covariance) - doubts / 2
            best = max(best, (probability, length, amplitude))
    _, length, amplitude = best
    at = np.log2(np.array(sizes, np.float64)) - middle
    inverse = np.linalg.inv(_kernel(known - middle, known - middle, length, amplitude) + np.diag(noise))
    across = _kernel(at, known - middle, length, amplitude)
    expected = level + across @ inverse @ (means - level)
    covariance = _kernel(at, at, length, amplitude) - across @ inverse @ across.T
    np.fill_diagonal(covariance, np.maximum(np.diag(covariance), 0.0))
    return SizeCurve(tuple(sizes), expected, covariance, spread)


def _kernel(a: Numbers, b: Numbers, length: float, amplitude: float) -> Numbers:
    """Return the prior covariance between sizes at octaves `a` and `b`: level, slope, and Matern 5/2."""
    distance = np.sqrt(5) * np.abs(a[:, None] - b[None, :]) / length
    bend = amplitude**2 * (1 + distance + distance**2 / 3) * np.exp(-distance)
    covariance: Numbers = LEVEL**2 + SLOPE**2 * a[:, None] * b[None, :] + bend
    return covariance


def _log_likelihood(values: Numbers, covariance: Numbers) -> float:
    _, log_determinant = np.linalg.slogdet(covariance)
    return float(-0.5 * (values @ np.linalg.solve(covariance, values) + log_determinant))
