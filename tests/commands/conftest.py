"""A place for suites, which must leave nothing behind, and a lock that no other suite of this machine holds."""

from pathlib import Path

import pytest

from report.conftest import unpictured
from tenants.fixtures import loose, v1
from tenants.suites import Suites

__all__ = ["loose", "own_lock", "unpictured", "v1"]


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a lock of the test's own: a run is refused while a suite holds the machine's lock."""
    monkeypatch.setenv("COTENANT_LOCK", str(tmp_path / "lock"))


@pytest.fixture
def here(loose: Suites, monkeypatch: pytest.MonkeyPatch) -> Suites:
    """Give this process the working directory and the environment of the place for suites."""
    monkeypatch.chdir(loose.folder)
    for name, value in loose.environment.items():
        monkeypatch.setenv(name, value)
    return loose
