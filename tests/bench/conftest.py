from __future__ import annotations

import time

import pytest

from bench.state import one_thread, state_unchanged
from cotenant.bench import alone, auditor, chrono, loop, steps

__all__ = ["one_thread", "state_unchanged"]


@pytest.fixture(autouse=True)
def _books_on_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of these tests are short; most of them are about books on every batch."""
    monkeypatch.setattr("cotenant.bench.loop.SHORT_STEP_NS", 0)


@pytest.fixture
def own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop reads the thread's own clock: what a busy host takes from it lasts no time."""
    for module in (alone, auditor, chrono, loop, steps):
        monkeypatch.setattr(module, "clock_ns", time.thread_time_ns)
