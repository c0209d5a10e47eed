"""Reads `meters.pressure` of older records, of launches in which a neighbour changed its level."""

from __future__ import annotations

from dataclasses import dataclass

from cotenant.results.decoded import Decoded, part_of
from cotenant.stats.sensitivity import LevelBlock


@dataclass(frozen=True, slots=True)
class NeighbourPressure:
    """The neighbour's `resource`, the `unit` that it counts, and the `blocks` of its levels."""

    resource: str
    unit: str
    blocks: list[LevelBlock]


def pressure_in(record: Decoded) -> NeighbourPressure | None:
    """Return the pressure in a record; None if it is missing or impossible."""
    return part_of(record.at("meters", "pressure"), NeighbourPressure)
