"""Fleets with planted faults: the bounds that the verdicts promise (docs/fleet.md)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import pytest


def test_a_small_fleet_is_judged_rightly(
    load: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["fleets.py", "--nodes", "300", "--faults", "5", "--healthy", "4"])
    assert load("fleets").main() == 0
    assert "precision 1.000, recall 1.000" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_ten_thousand_nodes_are_judged_rightly(
    load: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(sys, "argv", ["fleets.py", "--seed", str(seed)])
    assert load("fleets").main() == 0
