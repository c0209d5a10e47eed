"""A place for suites, from which nothing may be left, and a lock that no other suite of this machine holds."""

from pathlib import Path

import pytest

from cotenant.commands import answer_cache
from tenants.fixtures import loose, v1
from tenants.suites import Suites

__all__ = ["loose", "own_cache", "own_lock", "v1"]


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in this process is refused before all else while another suite runs."""
    monkeypatch.setenv("COTENANT_LOCK", str(tmp_path / "lock"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What benchmarks answered in other tests is not known, and nothing is kept for the person who tests."""
    monkeypatch.setattr(answer_cache, "cache_place", lambda: tmp_path / "cache")


@pytest.fixture
def here(loose: Suites, monkeypatch: pytest.MonkeyPatch) -> Suites:
    """The place for suites as this process' own."""
    monkeypatch.chdir(loose.folder)
    for name, value in loose.environment.items():
        monkeypatch.setenv(name, value)
    return loose
