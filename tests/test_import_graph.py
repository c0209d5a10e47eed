"""The imports that docs/architecture.md allows between rooms, read from the source and seen at run time."""

import os
import re
import subprocess
import sys
from pathlib import Path

import architecture
import pytest

SOURCE = architecture.PACKAGE.parent
PACKAGE = architecture.PACKAGE
LAYER = {room: layer for layer, rooms in enumerate(architecture.LAYERS) for room in rooms}
HEAVY = ("torch", "numpy", "scipy", "rich", "polars")
REPORTS = ("report", "compare", "mlbench_report", "export")
"""The commands that read records, for which they need no module of a launch."""


@pytest.fixture(scope="module")
def arrows() -> set[tuple[str, str]]:
    return set(architecture.arrows_between_rooms())


def outside(path: Path) -> set[str]:
    return {module.partition(".")[0] for module in architecture.imported(path)} - {"cotenant"}


def test_the_arrows_are_those_of_the_source(arrows: set[tuple[str, str]]) -> None:
    assert {room for arrow in arrows for room in arrow} == LAYER.keys()
    assert ("launch", "protocol") in arrows
    assert "torch" in set().union(*(outside(path) for path in (PACKAGE / "bench").rglob("*.py")))


def test_arrows_run_downwards_only(arrows: set[tuple[str, str]]) -> None:
    """So records import no rules, slices no findings' rules, benchmarks no launch, and no room the commands."""
    assert [arrow for arrow in arrows if LAYER[arrow[0]] >= LAYER[arrow[1]]] == []


def test_benchmarks_do_not_import_the_planning_of_slices(arrows: set[tuple[str, str]]) -> None:
    assert ("bench", "isolation") not in arrows
    assert {target for source, target in arrows if source == "layers"} == {"bench", "ground"}


def test_no_files_import_each_other_in_a_circle() -> None:
    assert architecture.circles() == []


@pytest.mark.parametrize("command", REPORTS)
def test_a_command_that_reads_records_does_not_know_the_launch(command: str) -> None:
    modules = architecture.imported(PACKAGE / "commands" / f"{command}.py")
    assert {name for name in modules if name.startswith("cotenant.launch")} == set()


def test_the_protocol_needs_the_standard_library_only(arrows: set[tuple[str, str]]) -> None:
    assert {target for source, target in arrows if source == "protocol"} <= {"ground"}
    for path in (PACKAGE / "protocol").rglob("*.py"):
        assert outside(path) <= sys.stdlib_module_names


def test_one_file_imports_polars_and_limits_its_threads() -> None:
    assert [path.name for path in PACKAGE.rglob("*.py") if "polars" in outside(path)] == ["frames.py"]


def test_only_benchmarks_and_their_blocks_import_torch() -> None:
    users = {
        path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py") if {"torch", "torchvision"} & outside(path)
    }
    assert users == {"bench", "layers"}


def test_scipy_is_imported_by_the_functions_that_need_it() -> None:
    """It takes a fifth of a second, and the table of a launch needs none of it."""
    users = [path for path in PACKAGE.rglob("*.py") if "scipy" in outside(path)]
    assert PACKAGE / "stats/comparison.py" in users
    assert [path for path in users if re.search(r"^(from|import) scipy", path.read_text(), re.M)] == []


def loaded_by(code: str, *flags: str) -> set[str]:
    """Return the top-level modules in sys.modules after this code has run."""
    line = [
        sys.executable,
        *flags,
        "-c",
        f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})",
    ]
    ended = subprocess.run(
        line, env=os.environ | {"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=True
    )
    return set(ended.stdout.split())


def test_importing_the_package_imports_nothing_else_of_it() -> None:
    code = "import cotenant\nprint(*(name for name in sys.modules if name.startswith('cotenant.')))"
    assert loaded_by(code, "-S") - sys.stdlib_module_names == {"cotenant", "__main__"}
    assert loaded_by("import cotenant\ncotenant.measure", "-S") <= sys.stdlib_module_names | {"cotenant", "__main__"}


def test_the_runner_starts_light() -> None:
    runner = "cotenant, cotenant.cli, cotenant.commands.run, cotenant.launch.suite"
    loaded = loaded_by(f"import {runner}, cotenant.api.running, cotenant.api.planning")
    assert "cotenant" in loaded
    assert not loaded & set(HEAVY)


def test_reaper_and_tenant_side_need_only_the_standard_library() -> None:
    code = f"sys.path.insert(0, {str(SOURCE)!r})\nimport cotenant.isolation.choose, cotenant.protocol.client"
    code += "\nimport cotenant.isolation.leftovers"
    assert loaded_by(code, "-I", "-S") - sys.stdlib_module_names <= {"cotenant", "__main__"}
