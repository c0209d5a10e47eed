from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.state import unchanged


@pytest.fixture(autouse=True)
def _unchanged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # The steps of these tests are short; most of them are about books on every batch.
    monkeypatch.setattr("cotenant.bench.loop.SHORT_STEP_NS", 0)
    with unchanged(monkeypatch):
        yield
