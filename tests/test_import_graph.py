"""Who may import whom (DESIGN.md, 3): read from the source, and seen at run time."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "common"
PACKAGE = SOURCE / "cotenant"
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
PURE = ("suite", "machine", "isolation", "protocol", "datasets", "stats", "results")
HEAVY = ("torch", "numpy", "scipy", "rich", "polars")
# The ground: what every room may use.
COMMON = {"checkout", "errors", "finding", "procfs", "text"}


def imported(path: Path) -> set[str]:
    """Return the modules a file imports, anywhere in it, and what it takes from packages."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            assert node.module is not None
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def rooms_of(room: str) -> set[str]:
    """Return the parts of cotenant that a room imports, itself left out."""
    modules = set().union(*(imported(path) for path in (PACKAGE / room).rglob("*.py")))
    parts = {module.split(".")[1] for module in modules if module.startswith("cotenant.")}
    return {part for part in parts if part in ROOMS or (PACKAGE / f"{part}.py").exists()} - {room} - COMMON


def outside(path: Path) -> set[str]:
    return {module.partition(".")[0] for module in imported(path)} - {"cotenant"}


def test_the_rooms_are_found() -> None:
    assert {*PURE, "launch", "bench", "report", "findings", "commands"} <= set(ROOMS)
    assert "protocol" in rooms_of("launch")
    assert "torch" in set().union(*(outside(path) for path in (PACKAGE / "bench").rglob("*.py")))


@pytest.mark.parametrize("room", PURE)
def test_a_pure_room_knows_nothing_of_launching(room: str) -> None:
    assert not rooms_of(room) & {"launch", "commands", "cli", "bench", "report"}


def test_the_report_knows_results_findings_and_stats_only() -> None:
    assert rooms_of("report") <= {"results", "findings", "stats"}


def test_records_and_slices_know_no_rules() -> None:
    assert "results" in rooms_of("findings")
    assert "isolation" in rooms_of("findings")
    for room in ("results", "isolation", "machine", "stats"):
        assert "findings" not in rooms_of(room)


def test_a_benchmark_knows_the_protocol_and_never_the_launch() -> None:
    assert "protocol" in rooms_of("bench")
    assert not rooms_of("bench") & {"launch", "commands", "cli", "isolation", "report"}


def test_nobody_but_the_command_line_imports_the_commands() -> None:
    assert [room for room in ROOMS if rooms_of(room) & {"commands", "cli"}] == []


def test_the_protocol_needs_the_standard_library_only() -> None:
    assert rooms_of("protocol") == set()
    for path in (PACKAGE / "protocol").rglob("*.py"):
        assert outside(path) <= sys.stdlib_module_names


def test_only_benchmarks_import_torch() -> None:
    users = {
        path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py") if {"torch", "torchvision"} & outside(path)
    }
    assert users == {"bench"}


def loaded_by(code: str, *flags: str) -> set[str]:
    """Return the top-level modules that stand in sys.modules after this code."""
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


@pytest.mark.parametrize("module", ["cotenant.cli", "cotenant.commands.run", "cotenant.launch.suite"])
def test_the_runner_starts_light(module: str) -> None:
    loaded = loaded_by(f"import {module}")
    assert "cotenant" in loaded
    assert not loaded & set(HEAVY)


def test_the_reaper_and_the_tenants_side_need_the_standard_library_only() -> None:
    code = f"sys.path.insert(0, {str(SOURCE)!r})\nimport cotenant.isolation.choose, cotenant.protocol.client"
    code += "\nimport cotenant.isolation.leftovers"
    assert loaded_by(code, "-I", "-S") - sys.stdlib_module_names <= {"cotenant", "__main__"}
