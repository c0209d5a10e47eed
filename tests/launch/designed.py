"""Designs carried out on paper: each block lasts as long as planned, and is observed as a test says."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, cast

from cotenant.launch.design.passed import Block, Passed, SeenSoFar
from cotenant.launch.design.shared import Room, Rounds, blocks_of
from cotenant.results.record import Observed

MS = 1_000_000
HOUR_NS = 3600 * 1000 * MS
Observe = Callable[[Passed, int], list[Observed]]
"""Returns the observations that a tenant makes in a block."""


def room(steps_ns: Mapping[int, int], seed: int = 0, **more: Any) -> Room:
    return Room(steps_ns, chance=random.Random(seed), **({"left_ns": HOUR_NS} | more))


def row(start_ns: int, end_ns: int, items: float = 1.0) -> Observed:
    return Observed(start_ns, end_ns, items, 0)


def carried_out(rounds: Rounds, observe: Observe = lambda passed, tenant: []) -> tuple[list[Passed], bool]:
    """Return the blocks of these rounds as they pass, and whether they were all that were planned. Each observation is
    of one step; at GO all tenants run."""
    blocks = blocks_of(rounds)
    block, now_ns, passed = next(blocks), 0, list[Passed]()
    seen = SeenSoFar(passed, {tenant: [] for tenant in block.awake}, dict.fromkeys(block.awake, 1))
    while True:
        passed.append(Passed(block, now_ns, now_ns + block.lasting_ns))
        for tenant in block.awake:
            cast(list[Observed], seen.rows[tenant]).extend(observe(passed[-1], tenant))
        now_ns += block.lasting_ns
        try:
            block = blocks.send(seen)
        except StopIteration as ended:
            return passed, ended.value


def blocks_in(rounds: Rounds) -> list[Block]:
    return [one.block for one in carried_out(rounds)[0]]
