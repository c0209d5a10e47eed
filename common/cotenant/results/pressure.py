"""Reads `meters.pressure` of older records, of launches in which a neighbour changed its level."""

from __future__ import annotations

from dataclasses import dataclass

from cotenant.results.decoded import Fields, mapping_of, part_of
from cotenant.stats.sensitivity import LevelBlock


@dataclass(frozen=True, slots=True)
class NeighbourPressure:
    """The neighbour's `resource`, the `unit` that it counts, and the `blocks` of its levels."""

    resource: str
    unit: str
    blocks: list[LevelBlock]


def pressure_in(fields: Fields) -> NeighbourPressure | None:
    """Return the pressure in a record's fields; None if it is missing or impossible."""
    return part_of(mapping_of(fields.get("meters")).get("pressure"), NeighbourPressure)
