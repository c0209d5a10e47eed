from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.state import unchanged


@pytest.fixture(autouse=True)
def _unchanged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with unchanged(monkeypatch):
        yield
