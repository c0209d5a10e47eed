"""Reads from records the pressure of a launch beside a neighbour of known pressure: `meters.pressure`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cotenant.results.build import Statement
from cotenant.results.decoded import Fields, mapping_of, part_of
from cotenant.results.record import Observed
from cotenant.stats.sensitivity import LevelBlock, Timed, blocks_of
from cotenant.suite.pressure import PREFIX, PROBE


@dataclass(frozen=True, slots=True)
class NeighbourPressure:
    """The neighbour's `resource`, the `unit` that it counts, and the blocks of its levels; it has none itself."""

    resource: str
    unit: str
    blocks: list[LevelBlock]


def pressures(statements: Sequence[Statement], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return `meters` of each tenant of a launch, whose cells have these labels: empty without one such neighbour."""
    levels = [part_of(mapping_of(statement.part.get("observed")).get("levels"), list[int]) for statement in statements]
    neighbours = [number for number, of_tenant in enumerate(levels) if of_tenant and len(set(of_tenant)) > 1]
    if len(neighbours) != 1:
        return [{} for _ in statements]
    (number,) = neighbours
    neighbour, of_blocks = statements[number], levels[number] or []
    resource, unit = labels[number].removeprefix(PREFIX), neighbour.checked.item
    return [
        {
            "pressure": asdict(
                NeighbourPressure(
                    resource,
                    unit,
                    []
                    if statement is neighbour
                    else blocks_of(of_blocks, _timed(neighbour.observations), _timed(statement.kept_observations)),
                )
            )
        }
        for statement in statements
    ]


def pressure_in(fields: Fields) -> NeighbourPressure | None:
    """Return the pressure in a record's fields; None where they have none, or an impossible one."""
    return part_of(mapping_of(fields.get("meters")).get("pressure"), NeighbourPressure)


def _timed(observations: Sequence[Observed]) -> list[Timed]:
    return [(made.start_ns, made.end_ns, made.items) for made in observations if made.items is not None]


def is_probe(job: str) -> bool:
    """Whether a job is the probe of a resource, by which others are measured."""
    return job.startswith(PROBE)
