from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from tasks.loading import TASKS

SOURCES = sorted(TASKS.rglob("*.py"))
NOT_A_TASKS_BUSINESS = re.compile(
    r"\.item\(\)|\bprint\(|synchronize|perf_counter|monotonic|\btime\.|import time|from time\b"
)


def named(path: Path) -> str:
    return str(path.relative_to(TASKS))


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_no_task_reads_prints_waits_or_looks_at_a_clock(path: Path) -> None:
    found = [line for line in path.read_text().splitlines() if NOT_A_TASKS_BUSINESS.search(line)]
    assert found == []


@pytest.mark.parametrize(
    "line", ["x.item()", "print(1)", "torch.cuda.synchronize()", "time.time()", "from time import x"]
)
def test_the_search_finds(line: str) -> None:
    assert NOT_A_TASKS_BUSINESS.search(line)


TO_THE_HOST = frozenset(("item", "cpu", "tolist", "numpy", "to_list"))
NUMBERS = frozenset(("float", "int", "bool"))
# Games are played on the host: their actions have to be read there, and what they answer is a host's number.
PLAYED_ON_THE_HOST = {
    "reinforcement/atari/pytorch/main.py": {"cpu"},
    "reinforcement/cart_pole/pytorch/main.py": {"int", "float"},
}


def host_reads(source: str) -> set[str]:
    """Return the names of calls that wait for the device, in every `step` and in what it calls of its own module."""
    functions = {one.name: one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.FunctionDef)}
    found, reached, ahead = set[str](), set[str](), ["step"]
    while ahead:
        name = ahead.pop()
        if name in reached or name not in functions:
            continue
        reached.add(name)
        for call in (node for node in ast.walk(functions[name]) if isinstance(node, ast.Call)):
            called = call.func
            if isinstance(called, ast.Attribute):
                found |= {called.attr} & TO_THE_HOST
                ahead.append(called.attr)
            elif isinstance(called, ast.Name):
                found |= {called.id} & NUMBERS
                ahead.append(called.id)
    return found


@pytest.mark.parametrize("path", [path for path in SOURCES if path.name == "main.py"], ids=named)
def test_no_step_waits_for_its_device(path: Path) -> None:
    assert host_reads(path.read_text()) == PLAYED_ON_THE_HOST.get(named(path), set())


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("loss.cpu()", {"cpu"}),
        ("self.seen.append(loss.tolist())", {"tolist"}),
        ("float(loss)", {"float"}),
        ("self.helped(loss)", {"item"}),
        ("helped(loss)", {"item"}),
        ("bool(loss > 3)", {"bool"}),
        ("loss.detach().numpy()", {"numpy"}),
        ("loss.float()", set()),
        ("loss.to(run.device, int)", set()),
    ],
)
def test_the_search_of_steps_finds(body: str, found: set[str]) -> None:
    source = f"class B:\n  def step(self, run, batch):\n    {body}\n  def helped(self, x):\n    x.item()\n"
    assert host_reads(source) == found
    assert host_reads(source.replace("step", "batches")) == set()


CONVOLVES = re.compile(r"\bnn\.Conv|\bclassifier\(")


@pytest.mark.parametrize("folder", sorted({path.parent for path in SOURCES}), ids=named)
def test_what_convolves_lets_its_convolutions_be_chosen(folder: Path) -> None:
    """Batches are full and pictures of one size, so that every step is as the first."""
    sources = "".join(path.read_text() for path in folder.glob("*.py"))
    assert ("same_shapes = True" in sources) == bool(CONVOLVES.search(sources))
    assert "torch.backends" not in sources


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_no_file_hides_a_standard_module(path: Path) -> None:
    assert path.stem not in sys.stdlib_module_names
    assert len(path.read_text().splitlines()) <= 400


def test_every_task_has_a_command_in_its_docstring() -> None:
    for path in SOURCES:
        if path.name == "main.py":
            assert "\npython main.py" in path.read_text().split('"""')[1]
