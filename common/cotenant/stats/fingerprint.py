"""Fingerprints: what a job keeps beside a neighbour of known pressure at full level, and what it leaves that one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FULL = 100
"""The level, in percent, at which jobs are told apart."""


@dataclass(frozen=True, slots=True)
class Traits:
    """The share that a job keeps beside the neighbour at its full level, and the share that this one keeps beside it,
    both of their rates alone."""

    keeps: float
    leaves: float


@dataclass(frozen=True, slots=True)
class Sensed:
    """The traits of jobs on one resource. `known` is whether any of them shows a loss: else it is not contended."""

    jobs: Mapping[str, Traits]
    known: bool


def kept_beside(of: Sensed, victim: str, neighbour: str) -> float:
    """Return what a victim keeps by its curve: what it loses beside our neighbour at full level, times what that one
    loses beside the other job (Bubble-Up, Mars and others, MICRO 2011). Raises KeyError for a job without traits."""
    lost, pressed = (min(1.0, max(0.0, 1 - share)) for share in (of.jobs[victim].keeps, of.jobs[neighbour].leaves))
    return 1 - lost * pressed
