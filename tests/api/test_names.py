"""What `import cotenant` offers, and the notebook: the examples of both are run."""

from __future__ import annotations

import ast
import doctest
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cotenant
from api.sample import make_sample
from patience import HANG_S
from tenants.suites import ROOT

PAGE, NOTEBOOK = ROOT / "docs/api.md", ROOT / "docs/notebook.ipynb"


def test_types_are_of_the_names_that_are_offered() -> None:
    """A type checker sees exactly the names that the package offers at run time."""
    module = ast.parse((ROOT / "common/cotenant/__init__.py").read_text())
    known = [
        (alias.asname, f"{node.module}".removeprefix("cotenant."))
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is not None
    ]
    assert dict(known) == cotenant._PLACES
    for name in cotenant._PLACES:
        assert f"`{name}`" in PAGE.read_text() or name.endswith("Error")
        assert getattr(cotenant, name).__name__ == name
        assert name in dir(cotenant)
    with pytest.raises(AttributeError, match="has no attribute 'capacities'"):
        _ = cotenant.capacities  # type: ignore[attr-defined]


def test_the_examples_do_what_they_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_sample(tmp_path)
    monkeypatch.chdir(tmp_path)
    found = [
        example
        for name in cotenant._PLACES
        for example in doctest.DocTestFinder().find(getattr(cotenant, name), name, globs={"cotenant": cotenant})
    ]
    assert sum(len(each.examples) for each in found) > 6
    said: list[str] = []
    for each in found:
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(each, out=said.append)
    assert said == []


def executed(folder: Path, *words: str) -> list[dict[str, object]]:
    """Return the code cells of the notebook, executed by a process of its own in a directory."""
    made = folder / NOTEBOOK.name
    made.write_bytes(NOTEBOOK.read_bytes())
    environ = os.environ | {"PYTHONPATH": str(ROOT / "common"), "COTENANT_LOCK": str(folder / "lock")}
    line = [sys.executable, str(ROOT / "scripts/notebook.py"), str(made), *words]
    ended = subprocess.run(line, cwd=folder, env=environ, capture_output=True, text=True, timeout=HANG_S)
    assert ended.returncode == 0, ended.stderr
    return [cell for cell in json.loads(made.read_text())["cells"] if cell["cell_type"] == "code"]


@pytest.mark.slow
def test_the_notebook_is_one_and_its_cells_that_read_run(tmp_path: Path) -> None:
    document = json.loads(NOTEBOOK.read_text())
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in document["cells"]}) == len(document["cells"])
    cells = executed(make_sample(tmp_path), "--without", "launches")
    shown = json.dumps([cell["outputs"] for cell in cells if "launches" not in cell["metadata"].get("tags", ())])
    for text in ("keeps 90 % (90 to 91 %)", "<svg", "user 1: 7605 image/s, keeps 0.90", "SLOWER", "0.895-0.905"):
        assert text in shown


TYPED = """
import cotenant

result = cotenant.load("output")
if result.kept is not None and result.kept.interval is not None:
    low: float = result.kept.interval[0]
names: list[str] = [job.name for job in result.jobs]
rows: int = result.table("mix").to_polars().height
slower: list[bool] = [line.verdict == cotenant.Verdict.SLOWER for line in cotenant.compare("A", result).lines]
memory_bytes: int = cotenant.plan(users=4).slices[0].memory_bytes
with cotenant.measure(item="row") as measured:
    measured.step(64)
"""
WRONG = ('result.table("mixes")', "result.kept.value", "cotenant.capacities", 'cotenant.run("cpu", isolation="v3")')


@pytest.mark.slow
def test_a_type_checker_knows_the_results(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(TYPED + "\n".join(WRONG) + "\n")
    line = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary", str(program)]
    environ = os.environ | {"MYPYPATH": str(ROOT / "common")}
    ended = subprocess.run(line, cwd=tmp_path, env=environ, capture_output=True, text=True)
    first = TYPED.count("\n") + 1
    errors = [said for said in ended.stdout.splitlines() if ": error: " in said]
    assert [int(said.split(":")[1]) for said in errors] == [*range(first, first + len(WRONG))], ended.stdout


@pytest.mark.slow
def test_the_whole_notebook_runs(tmp_path: Path) -> None:
    cells = executed(tmp_path)
    assert all(cell["outputs"] or "def " in "".join(cell["source"]) for cell in cells[:2])
    assert [*tmp_path.glob("output/*.json")]
    assert len([*tmp_path.glob("B/*.json")]) == 10
