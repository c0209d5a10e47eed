"""Reads the curves of older records: of one launch whose neighbour changed its level, `meters.pressure`."""

from __future__ import annotations

from dataclasses import dataclass

from cotenant.results.decoded import Fields, mapping_of, part_of
from cotenant.stats.sensitivity import LevelBlock


@dataclass(frozen=True, slots=True)
class NeighbourPressure:
    """The neighbour's `resource`, the `unit` that it counts, and the blocks of its levels; it has none itself."""

    resource: str
    unit: str
    blocks: list[LevelBlock]


def pressure_in(fields: Fields) -> NeighbourPressure | None:
    """Return the pressure in a record's fields; None where they have none, or an impossible one."""
    return part_of(mapping_of(fields.get("meters")).get("pressure"), NeighbourPressure)
