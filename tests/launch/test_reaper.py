"""The reaper beside a living runner: how it is known, and how it goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cotenant.isolation.backend import RunName
from cotenant.launch.reaper import Reaper
from cotenant.protocol.messages import REAPER_VARIABLE
from isolation.shim import is_dead


@pytest.fixture
def reaper(tmp_path: Path) -> Iterator[Reaper]:
    made = Reaper(str(RunName()), {}, (), tmp_path, frozenset())
    made.ensure()
    yield made
    made.farewell()
    assert all(map(is_dead, made.pids))


def test_a_later_start_knows_whose_reaper_it_is(reaper: Reaper) -> None:
    (pid,) = reaper.pids
    assert f"{REAPER_VARIABLE}={RunName()}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
