"""The answer to how many users a machine carries, with its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cotenant.stats.capacity import CrowdEstimate, Requirement, Standing

NOISE, NOBODY = "noise", "nobody"
"""Why there is no answer: noise leaves it open, or not even one user meets its requirement."""


@dataclass(frozen=True, slots=True)
class AloneUse:
    """A user alone: its rate, its use of the machine, and the processors of all slices together.

    A value that nobody counts is None.
    """

    rate: float
    unit: str
    busy: float | None
    """Processors that it keeps busy."""
    processors: int
    peak_bytes: int | None
    processes: int | None
    device_bytes: int | None


@dataclass(frozen=True, slots=True)
class CrowdUse:
    """How a launch ended: a `flaw` in a sentence where its numbers are none, whether memory did not suffice, and how
    many processors all its users kept busy together, where that is counted."""

    flaw: str = ""
    out_of_memory: bool = False
    busy: float | None = None


@dataclass(frozen=True, slots=True)
class BesidePressure:
    """The other users, as one has a neighbour of ours in its place that takes all it can of a resource."""

    resource: str
    estimate: CrowdEstimate
    standing: Standing


Binding = Literal["memory", "processors", ""]


@dataclass(frozen=True, slots=True)
class Carried:
    """How many users a machine carries, each with a requirement; `users` is 0 of none.

    `settled` if launches of their own have confirmed it, and that one `step` more is too many; else `why` not, and
    `missing_s` is about how long it would take, None where nobody knows.
    """

    label: str
    requirement: Requirement
    users: int = 0
    step: int = 1
    settled: bool = False
    why: str = ""
    missing_s: float | None = None
    alone: AloneUse | None = None
    memory_users: int | None = None
    """The most users that memory holds; None where no slice holds memory, or nobody counts it."""
    memory_bytes: int | None = None
    """The memory of each of them in its slice."""
    by_memory: bool = False
    """Whether memory alone does not hold more of them."""
    searched: tuple[CrowdEstimate, ...] = ()
    """An estimate for each number of users, by rounds of the search."""
    confirmed: Mapping[int, CrowdEstimate] = field(default_factory=dict)
    """An estimate for each number of users, by launches of its own."""
    pressures: tuple[BesidePressure, ...] = ()
    untried: str = ""
    """Why no neighbour of ours was tried; empty where one was."""
    binding: Binding = ""
    """The resource of which there is no more; empty where nobody knows."""
    busy: float | None = None
    """Processors that they kept busy together."""
    share: str = ""
    """How users share a device, where somebody says so."""
    seconds: float = 0.0
