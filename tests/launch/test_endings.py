"""The reason of a tenant's end: memory, its own word or the runner's, its exit status, its losses, in this order."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cotenant.isolation.backend import Counters, ReadBack
from cotenant.launch.endings import Ending
from cotenant.launch.outcome import ending_of, rank_death
from cotenant.launch.rank import Rank, RankPhase
from cotenant.launch.tenant import Tenant, TenantPhase
from tenants.fakes import specs

KILLED = Counters(oom_kills=1, oom_events=1)
LATE = Ending("timeout", "It was late.")
NAN = {"losses_checked": 9, "losses_non_finite": 2}


class Ended(Tenant):
    """Has an empty log."""

    def log_tail(self, rank: int = 0) -> str:
        return ""


def ended(status: int, record: dict[str, Any] | None = None, joined: bool = True, **state: Any) -> Tenant:
    """Return a tenant of one process that has ended, with this record."""
    made = object.__new__(Ended)
    rank = Rank(cast(Any, None), 0, 1, phase=RankPhase.DONE if record is None else RankPhase.RECORDED, record=record)
    usual = {
        "spec": specs(Path("/none"), "x")[0],
        "ranks": {0: rank} if joined else {},
        "read_back": ReadBack(memory_bytes=1 << 30),
        "after": Counters(),
        "listener": SimpleNamespace(misplaced=""),
        "ending": None,
        "phase": TenantPhase.ENDED,
    }
    for name, value in {**usual, "status": status, **state}.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("tenant", "outcome", "words"),
    [
        (ended(0, {}), "completed", ""),
        (ended(0, NAN), "nan", "2 of 9 losses were not finite."),
        (ended(0), "failed", "It ended before its record was complete, with exit status 0."),
        (ended(0, joined=False), "failed", "It ended without joining the rendezvous, with exit status 0."),
        (ended(3, {}), "failed", "It ended with exit status 3."),
        (ended(-9), "failed", "It was killed by SIGKILL."),
        (ended(0, {}, ending=LATE), "timeout", "It was late."),
        (ended(0, {}, after=KILLED), "out_of_memory", "It needed more than the 1.00 GiB of its slice"),
        (ended(0, {}, after=KILLED, ending=LATE), "out_of_memory", "It needed more than the 1.00 GiB of its slice"),
    ],
)
def test_the_first_reason_that_applies_is_told(tenant: Tenant, outcome: str, words: str) -> None:
    ending = ending_of(tenant, 0)
    assert ending.outcome == outcome
    assert ending.message.startswith(words)


@pytest.mark.parametrize(
    ("status", "record", "words"),
    [
        (0, {}, None),
        (0, None, "Rank 1 of 2 ended with exit status 0 before its record was complete."),
        (3, {}, "Rank 1 of 2 ended with exit status 3."),
        (-9, None, "Rank 1 of 2 was killed by SIGKILL before its record was complete."),
        (None, None, "Rank 1 of 2 ended before its record was complete."),
        # Its launcher ends it, since another rank has died.
        (-15, None, None),
    ],
)
def test_the_end_of_one_of_several_processes_is_a_failure(
    status: int | None, record: dict[str, Any] | None, words: str | None
) -> None:
    rank = Rank(cast(Any, None), 1, 2, phase=RankPhase.GOING, record=record)
    ending = rank_death(ended(0, phase=TenantPhase.RUNNING), rank, status)
    assert ending is None if words is None else ending is not None and ending.message.startswith(words)
    assert rank_death(ended(0, phase=TenantPhase.KILLED), rank, status) is None
    rank.phase = RankPhase.FAILED
    assert rank_death(ended(0, phase=TenantPhase.RUNNING), rank, status) is None
