"""The order of turns, of invented records: what is nearer in time is more alike, and a thaw costs what was planted."""

import random
import re

from benchmarks.conftest import Load

ROUNDS, SECONDS = 40, 0.2


def record(tenant: int, chance: random.Random) -> dict:
    """Blocks in turns, a machine that wanders, and 5 % less for who was thawed."""
    seen, wandering, went_on = [], 0.0, False
    for block in range(4 * ROUNDS):
        wandering += chance.gauss(0, 0.03)
        is_all = block % 2 == 0
        is_own = block % 4 == 1 + 2 * tenant
        if is_all or is_own:
            rate = 100 * 2.718**wandering * (0.95 if is_all and not went_on else 1.0)
            times = {"start_ns": 0, "end_ns": round(SECONDS * 1e9), "items": rate * SECONDS}
            seen.append({"block": block, "kind": "all" if is_all else "only", "kept": True, **times})
        went_on = is_own
    return {"solo": False, "blocks": {}, "observations": seen}


def test_near_blocks_are_alike_and_a_thaw_costs_what_it_costs(load: Load) -> None:
    chance, module = random.Random(3), load("turns")
    lines = module.order_of_turns([record(tenant, chance) for _ in range(10) for tenant in (0, 1)]).splitlines()
    spreads = [float(line.split("|")[2]) for line in lines if line.startswith("| ") and "apart" not in line]
    assert spreads == sorted(spreads)
    assert spreads[-1] > 2 * spreads[0]
    cost, half = map(float, re.findall(r"(-?[\d.]+) %", lines[-1]))
    assert abs(cost - 5) < 2 * half < 4
