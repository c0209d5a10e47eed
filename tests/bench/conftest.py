from __future__ import annotations

import time

import pytest

from bench.state import one_thread, state_unchanged
from cotenant.bench import alone, auditor, chrono, loop, steps

__all__ = ["one_thread", "state_unchanged"]


@pytest.fixture(autouse=True)
def _books_on_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count every batch: steps in tests are short, and the loop counts only one batch in ten of short steps."""
    monkeypatch.setattr("cotenant.bench.loop.SHORT_STEP_NS", 0)


@pytest.fixture
def own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the loop read the clock of its thread, which stands still while a busy host keeps it waiting."""
    for module in (alone, auditor, chrono, loop, steps):
        monkeypatch.setattr(module, "clock_ns", time.thread_time_ns)
