"""Runs first in each Python process of a tenant of `cotenant exec`: hooks the import of torch's optimizers, then runs
the next sitecustomize on the path. Standard library only, Python 3.8 and newer."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys

MYPY = False
if MYPY:  # The import of typing would take time.
    from typing import Any

_HERE = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120 # The import of pathlib would take time.
_PACKAGE = os.path.dirname(os.path.dirname(_HERE))  # noqa: PTH120
_OPTIMIZER, _LOADER = "torch.optim.optimizer", "torch.utils.data.dataloader"


class _Watch:
    """Makes our package importable in the program, and calls back once a module of torch has been imported."""

    def __init__(self) -> None:
        self._awaited = {_OPTIMIZER: _on_optimizer, _LOADER: _on_loader}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name == "cotenant":
            file = f"{_PACKAGE}/__init__.py"
            return importlib.util.spec_from_file_location(name, file, submodule_search_locations=[_PACKAGE])
        call = self._awaited.pop(name, None)
        if call is None:
            return None
        spec: Any = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            _follow(spec.loader, call)
        return spec


def _follow(loader: Any, call: Any) -> None:
    """Make a loader call back after the next module that it executes, and only then: a zip file's executes many."""
    execute = loader.exec_module

    def exec_module(module: Any) -> None:
        loader.exec_module = execute
        execute(module)
        try:
            call(module)
        except Exception as error:
            print(f"cotenant: steps cannot be counted: {error}", file=sys.stderr)

    loader.exec_module = exec_module


_rows: Any = None


def _settings() -> Any:
    from cotenant.exec.settings import Settings

    return Settings.from_environment()


def _on_optimizer(module: Any) -> None:
    global _rows
    from cotenant.exec.optimizer import Optimizers, RowCounter

    settings = _settings()
    settings.note_interpreter()
    if settings.count_line:
        return
    if settings.counts_rows and _rows is None:
        _rows = RowCounter()
    torch, optimizers = sys.modules["torch"], Optimizers(sys.modules["torch"], settings, _rows)

    def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
        # Dynamo traces this function, and would put the count into the graph.
        if torch.compiler.is_compiling():
            return
        optimizers.stepped(optimizer)

    def stepped_before_2_3(optimizer: Any, args: Any, kwargs: Any) -> None:
        optimizers.stepped(optimizer)

    # `is_compiling` exists from torch 2.3 on. The version is compared, as torch is not wholly imported yet.
    version = [int(part) for part in str(torch.__version__).split(".")[:2] if part.isdecimal()]
    module.register_optimizer_step_post_hook(stepped_before_2_3 if version < [2, 3] else stepped)


def _on_loader(module: Any) -> None:
    global _rows
    if not _settings().counts_rows:
        return
    from cotenant.exec.optimizer import RowCounter, count_rows

    _rows = _rows or RowCounter()
    count_rows(module, _rows)


def _run_next() -> None:
    """Run the sitecustomize that would have run without this one."""
    path = [place for place in sys.path if os.path.realpath(place) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec(__name__, path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules[__name__] = module
        spec.loader.exec_module(module)


if "COTENANT_EXEC" in os.environ:
    sys.meta_path.insert(0, _Watch())
_run_next()
