from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from bench.state import unchanged
from cotenant.bench import alone, auditor, chrono, loop, steps


@pytest.fixture(autouse=True)
def _unchanged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # The steps of these tests are short; most of them are about books on every batch.
    monkeypatch.setattr("cotenant.bench.loop.SHORT_STEP_NS", 0)
    with unchanged(monkeypatch):
        yield


@pytest.fixture
def own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop reads the thread's own clock: what a busy host takes from it lasts no time."""
    for module in (alone, auditor, chrono, loop, steps):
        monkeypatch.setattr(module, "clock_ns", time.thread_time_ns)
