from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from bench.state import unchanged
from tasks.loading import main_of
from tenants.fixtures import loose

__all__ = ["loose"]


@pytest.fixture(autouse=True)
def _unchanged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with unchanged(monkeypatch):
        yield


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Two threads on so little work wait for each other more than they work."""
    yield from threads(1)


@pytest.fixture
def two_threads() -> Iterator[None]:
    yield from threads(2)


def threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    ncf = main_of("recommendation/neural_collaborative_filtering")
    monkeypatch.setattr(ncf, "USERS", 300)
    monkeypatch.setattr(ncf, "ITEMS", 200)
