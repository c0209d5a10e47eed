"""A place for suites, from which nothing may be left, and the fixtures of launches in this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cotenant.isolation.runs import RunName
from cotenant.isolation.unenforced import Affinity
from cotenant.launch.design import designs
from cotenant.launch.design import shared as of_designs
from cotenant.launch.events import Interruption
from launch.turning import Turning
from tenants.fixtures import loose, shared, v1
from tenants.suites import Suites

__all__ = ["loose", "shared", "v1"]
MS = 1_000_000


@pytest.fixture
def suites(request: pytest.FixtureRequest) -> Suites:
    """Suites of the fixture that the test's parameter names: `v1` or `loose`."""
    named: Suites = request.getfixturevalue(request.param)
    return named


@pytest.fixture
def interruption() -> Iterator[Interruption]:
    with Interruption() as entered:
        yield entered


@pytest.fixture
def turning(tmp_path: Path, interruption: Interruption) -> Iterator[Turning]:
    """Launches by turns, of tenants that are stopped by signals."""
    backend = Affinity()
    backend.open(RunName())
    yield Turning(tmp_path, backend, interruption)
    backend.close()


MOST_MS = {"MEASURED_NS": 50, "AFTER_THAW_NS": 20, "AFTER_BORDER_NS": 10, "BESIDE_AFTER_THAW_NS": 20}


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of a fifth of a second, of which three are enough, and of duets four."""
    for name, most_ms in MOST_MS.items():
        monkeypatch.setattr(of_designs, name, most_ms * MS)
    for name, rounds in (("LEAST_ROUNDS", 3), ("WANTED_ROUNDS", 3), ("MOST_DUET_ROUNDS", 4)):
        monkeypatch.setattr(designs, name, rounds)
