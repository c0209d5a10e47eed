from __future__ import annotations

from pathlib import Path

import pytest

from cotenant.launch.needs import missing_packages
from tenants.suites import ROOT

MAIN = """
import json, no_such_package.part
from no_such_other import thing
from beside import value
from . import relative
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import no_such_types
try:
    import no_such_option
except ImportError:
    pass
try:
    import no_such_choice
except (ValueError, ModuleNotFoundError):
    pass
try:
    import no_such_need
finally:
    pass
def build():
    import no_such_late
"""


def program(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder / "run.sh"


def test_what_is_imported_and_not_there(tmp_path: Path) -> None:
    command = program(tmp_path, main=MAIN, beside="import no_such_deep, main", unused="import no_such_unused")
    expected = ("no_such_deep", "no_such_late", "no_such_need", "no_such_other", "no_such_package")
    assert missing_packages(command) == expected
    assert missing_packages(tmp_path / "main.py") == expected
    assert missing_packages(tmp_path / "unused.py") == ("no_such_unused",)


@pytest.mark.parametrize("marked", [True, False])
def test_a_package_beside_it_is_not_missing_and_its_modules_are_looked_into(tmp_path: Path, marked: bool) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    if marked:
        (folder / "__init__.py").touch()
    program(folder, layers="import no_such_deep", unused="import no_such_unused")
    assert missing_packages(program(tmp_path, main="from own.layers import Layer")) == ("no_such_deep",)


def test_any_other_program_is_not_looked_into(tmp_path: Path) -> None:
    assert missing_packages(program(tmp_path, other="import no_such_package")) == ()
    assert missing_packages(program(tmp_path, main="import (")) == ()


def test_a_benchmark_needs_what_the_harness_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotenant.launch.needs._installed", lambda name: False)
    assert {"torch", "msgspec"} <= set(missing_packages(program(tmp_path, main="from cotenant.bench import Benchmark")))
    cart = ROOT / "tasks/reinforcement/cart_pole/pytorch/run.sh"
    assert {"torch", "gymnasium"} <= set(missing_packages(cart))
    assert "torchvision" not in missing_packages(cart)
