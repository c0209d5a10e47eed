"""The p95 of single steps in the rounds of a crowd, and the search that each number of users is a launch of its own
for."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cotenant.launch.crowd import CrowdSchedule
from cotenant.launch.crowd_launches import SuiteLaunches, p95_rounds
from cotenant.results.record import Observed, Record
from cotenant.stats.capacity import Requirement
from cotenant.stats.crowd_search import CrowdSearch

MS = 1_000_000


def records(users: int, rounds: int, step_ms: float, timed: bool = True) -> list[Record]:
    """Records of a launch whose steps take so long beside each other, a tenth alone, and longer near borders."""
    schedule = CrowdSchedule(dict.fromkeys(range(users), MS), False, rounds, (users,) * rounds, 1, 10**12)
    made = []
    for user in range(users):
        observations, steps_ns = [], []
        for block in schedule.blocks(random.Random(4)):
            if user in block.awake and block.round:
                for kept, factor in ((False, 9.0), (True, 1.0)):
                    alone = 0.1 if block.kind == "only" else 1.0
                    steps_ns.append([round(step_ms * (1 + user / 10) * factor * alone * MS)] * 20)
                    observations.append(Observed(0, 1, 20.0, 0, block=block.index, kind=block.kind, kept=kept))
        record = SimpleNamespace(
            observations=observations,
            observed={"steps_ns": steps_ns} if timed else {},
            tenant=user,
            tenants=users,
            outcome="completed",
            completed=True,
            invalid=False,
            blocks=None,
        )
        made.append(cast(Record, record))
    return made


def test_each_round_has_the_p95_of_each_users_steps_beside_the_others() -> None:
    rows = p95_rounds(records(3, 4, 20.0))
    assert len(rows) == 4
    assert all(row == pytest.approx({user: -math.log(0.02 * (1 + user / 10)) for user in range(3)}) for row in rows)
    assert p95_rounds(records(2, 4, 20.0, timed=False)) == []


def test_a_search_by_steps_launches_each_number_of_users_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[int] = []

    def launch(self: Any, users: int, crowd: Any, budget_s: float, pressure: str, folder: str) -> list[Record]:
        launched.append(users)
        return records(users, 4, 10.0 * users)

    monkeypatch.setattr(SuiteLaunches, "_launch_crowd", launch)
    launches = object.__new__(SuiteLaunches)
    launches._requirement, launches.label = Requirement("p95", 0.065), "decode"
    search = CrowdSearch(launches._requirement, 8)
    assert launches.crowd(8, search, 60.0).flaw == ""
    # Of five the slowest takes 50 ms x 1.4, of four 40 ms x 1.3.
    assert (search.held, search.failed) == (4, 5)
    assert launched == [1, 2, 4, 8, 6, 5]
    monkeypatch.setattr(SuiteLaunches, "_launch_crowd", lambda self, users, *rest: records(users, 4, 1.0, timed=False))
    assert "--p95 is of jobs that serve" in launches.crowd(2, CrowdSearch(launches._requirement, 2), 60.0).flaw
