from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bench.state import one_thread, state_unchanged, threads
from tasks.loading import main_of
from tenants.fixtures import loose

__all__ = ["loose", "one_thread", "state_unchanged"]


@pytest.fixture(scope="module")
def main(request: pytest.FixtureRequest) -> Any:
    """The module of the task at a test file's PLACE."""
    return main_of(request.module.PLACE)


@pytest.fixture
def two_threads() -> Iterator[None]:
    yield from threads(2)


@pytest.fixture
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    ncf = main_of("recommendation/neural_collaborative_filtering")
    monkeypatch.setattr(ncf, "USERS", 300)
    monkeypatch.setattr(ncf, "ITEMS", 200)
