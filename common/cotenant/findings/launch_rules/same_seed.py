"""Tenants with one seed: they did the very same work, where neighbours do work that is alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cotenant.finding import Finding
from cotenant.text import listed

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(launch: Sequence[Record], earlier: Sequence[Record]) -> dict[int, Finding]:
    places: dict[int, list[int]] = defaultdict(list)
    for place, record in enumerate(launch):
        if isinstance(seed := record.arguments.get("seed"), int):
            places[seed].append(place)
    return {place: _finding(launch, seed, same) for seed, same in places.items() if len(same) > 1 for place in same}


def _finding(launch: Sequence[Record], seed: int, same: Sequence[int]) -> Finding:
    return Finding(
        "same_seed",
        "warning",
        f"Tenants {listed(launch[place].tenant for place in same)} ran with one seed ({seed}): they read the same "
        "data in the same order.",
        "Let the benchmark take --seed: every tenant is given its own.",
    )
