from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from bench.state import unchanged

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
Load = Callable[[str], ModuleType]


@pytest.fixture(autouse=True)
def _unchanged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with unchanged(monkeypatch):
        yield


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Two threads on so little work wait for each other more than they work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Load a file of benchmarks/ by its path there; its neighbours are found as they are by a script."""
    monkeypatch.syspath_prepend(BENCHMARKS)

    def loaded(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"benchmarks_{name.replace('/', '_')}", BENCHMARKS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # Dataclasses look their module up.
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    return loaded
