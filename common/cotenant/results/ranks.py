"""From what every rank of a tenant has observed to the observations of the tenant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cotenant.results.record import Observed

ByRank = dict[str, list[Observed]]


def observed_by_ranks(told: Mapping[int, Sequence[dict[str, Any]]]) -> tuple[list[Observed], ByRank]:
    """Return a tenant's observations, and those of each rank where there are several.

    `told` holds the fields of every rank's observations, by its number. The lowest rank's clock counts, and the items
    are those of all ranks: as many observations as every rank has made.
    """
    seen = {number: [Observed.told(fields) for fields in rows] for number, rows in sorted(told.items())}
    ranks = list(seen.values())
    if len(ranks) == 1:
        return ranks[0], {}
    rows = zip(*ranks, strict=False)
    summed = [msgspec.structs.replace(row[0], items=sum(one.items or 0 for one in row)) for row in rows]
    return summed, {str(number): rows for number, rows in seen.items()}
