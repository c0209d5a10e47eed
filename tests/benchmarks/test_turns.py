"""The order of turns, on invented records: blocks nearer in time are more alike, and a thaw has its planted cost."""

import random
import re

from benchmarks.conftest import Load

ROUNDS, SECONDS = 40, 0.2


def record(tenant: int, chance: random.Random) -> dict:
    """Return a record of rounds (a block of both tenants, one of each alone) on a machine whose speed wanders; a tenant
    is 5 % slower in its first block after a thaw."""
    seen, wandering, went_on = [], 0.0, False
    turns = [turn for _ in range(ROUNDS) for turn in (None, *chance.sample((0, 1), 2))]
    for block, turn in enumerate(turns):
        wandering += chance.gauss(0, 0.05)
        is_all, is_own = turn is None, turn == tenant
        if is_all or is_own:
            rate = 100 * 2.718**wandering * (1.0 if went_on else 0.95)
            times = {"start_ns": 0, "end_ns": round(SECONDS * 1e9), "items": rate * SECONDS}
            seen.append({"block": block, "kind": "all" if is_all else "only", "kept": True, **times})
        went_on = is_all or is_own
    return {"solo": False, "blocks": {}, "observations": seen}


def test_near_blocks_are_alike_and_a_thaw_costs_what_it_costs(load: Load) -> None:
    chance, module = random.Random(3), load("turns")
    lines = module.order_of_turns([record(tenant, chance) for _ in range(10) for tenant in (0, 1)]).splitlines()
    spreads = [float(line.split("|")[2]) for line in lines if line.startswith("| ") and "apart" not in line]
    assert spreads == sorted(spreads)
    assert spreads[-1] > 2 * spreads[0]
    cost, half = map(float, re.findall(r"(-?[\d.]+) %", lines[-1]))
    assert abs(cost - 5) < 2 * half < 4
