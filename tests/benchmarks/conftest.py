from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from bench.state import one_thread, state_unchanged

__all__ = ["one_thread", "state_unchanged"]

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
Load = Callable[[str], ModuleType]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Return a function that loads a file of benchmarks/ by its path there, which can import its neighbours."""
    monkeypatch.syspath_prepend(BENCHMARKS)

    def loaded(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"benchmarks_{name.replace('/', '_')}", BENCHMARKS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        # Dataclasses look up their module.
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    return loaded
