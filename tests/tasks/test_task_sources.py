from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tasks.loading import TASKS

SOURCES = sorted(TASKS.rglob("*.py"))
SCRIPTS = sorted(TASKS.rglob("run*.sh"))
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


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_no_file_hides_a_standard_module(path: Path) -> None:
    assert path.stem not in sys.stdlib_module_names
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", SCRIPTS, ids=named)
def test_scripts_become_the_benchmark(path: Path) -> None:
    assert os.access(path, os.X_OK)
    first, *_, last = path.read_text().splitlines()
    assert first == "#!/usr/bin/env bash"
    assert last.startswith("exec ")
    assert (path.parent / "main.py").exists()


def test_every_task_has_a_command_in_its_docstring() -> None:
    for path in SOURCES:
        if path.name == "main.py":
            assert "\npython main.py" in path.read_text().split('"""')[1]
