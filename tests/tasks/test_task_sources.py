from __future__ import annotations

import ast
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from tasks.loading import ROOT, TASKS, started

LAYERS = ROOT / "common/cotenant/layers"
SOURCES = sorted([*TASKS.rglob("*.py"), *LAYERS.glob("*.py")])
NOT_A_TASKS_BUSINESS = re.compile(
    r"\.item\(\)|\bprint\(|synchronize|perf_counter|monotonic|\btime\.|import time|from time\b"
)


def named(path: Path) -> str:
    return str(path.relative_to(TASKS if path.is_relative_to(TASKS) else LAYERS))


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_no_task_reads_prints_waits_or_looks_at_a_clock(path: Path) -> None:
    found = [line for line in path.read_text().splitlines() if NOT_A_TASKS_BUSINESS.search(line)]
    assert found == []


TO_THE_HOST = frozenset(("item", "cpu", "tolist", "numpy", "to_list"))
NUMBERS = frozenset(("float", "int", "bool"))
# Games are played on the host: it has to read the actions, and gets observations and rewards as its own numbers.
PLAYED_ON_THE_HOST = {
    "reinforcement/atari/pytorch/main.py": {"cpu"},
    "reinforcement/cart_pole/pytorch/main.py": {"int", "float"},
}


def host_reads(source: str) -> set[str]:
    """Return the names of calls that wait for the device, in every `step` and the functions of its module it calls."""
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


@pytest.mark.parametrize("path", [path for path in SOURCES if path.name in ("main.py", "language.py")], ids=named)
def test_no_step_waits_for_its_device(path: Path) -> None:
    assert host_reads(path.read_text()) == PLAYED_ON_THE_HOST.get(named(path), set())


CONVOLVES = re.compile(r"\bnn\.Conv|\bclassifier\(")


@pytest.mark.parametrize("folder", sorted({path.parent for path in SOURCES}), ids=named)
def test_what_convolves_lets_its_convolutions_be_chosen(folder: Path) -> None:
    """Batches are full and pictures of one size, so that the choice for the first step suits every step."""
    sources = "".join(path.read_text() for path in folder.glob("*.py"))
    assert ("same_shapes = True" in sources) == bool(CONVOLVES.search(sources))
    assert "torch.backends" not in sources


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_no_task_file_hides_a_standard_module(path: Path) -> None:
    assert path.stem not in sys.stdlib_module_names
    assert len(path.read_text().splitlines()) <= 400
    assert path.name != "main.py" or "\npython main.py" in path.read_text().split('"""')[1]


# ---- a task's script starts a process per device, or the benchmark alone

DCGAN = TASKS / "generative_adversarial_networks/dcgan/pytorch"
OWNS = {"DEVICE_TOTAL": "4", "COTENANT_GROUP": "all"}
ALONE = 0
NGPU: list[tuple[str, dict[str, str], int]] = [
    ("--ngpu 4", OWNS, 4),
    ("--ngpu=2 'a b'", OWNS, 2),
    ("--ngpu 9", OWNS, 4),
    ("--ngpu 2 --ngpu 3", OWNS, 3),
    ("--ngpu 2", {}, 2),
    ("--ngpu 1", OWNS, ALONE),
    ("--ngpu many", OWNS, ALONE),
    ("--lr 4", OWNS, ALONE),
    ("--ngpu 4", OWNS | {"COTENANT_GROUP": "student"}, ALONE),
    ("--ngpu 4", OWNS | {"DEVICE_TOTAL": "1"}, ALONE),
]


def test_dcgan_starts_a_process_per_device_on_its_own_machine(tmp_path: Path) -> None:
    for words, variables, processes in NGPU:
        (total, *line), heard = started(tmp_path, DCGAN / "run.sh", *shlex.split(words), **variables)
        launcher = ["-m", "cotenant.bench.ranks"]
        assert line[:2] == launcher if processes else line[0] != "-m", words
        assert total == str(processes) or not processes, words
        program, *rest = line[2:] if processes else line
        assert Path(program).samefile(DCGAN / "main.py"), words
        assert rest == shlex.split(words), words
        assert ("those are used" in heard) == (words == "--ngpu 9"), words


def test_jobs_of_the_group_all_have_a_process_per_device() -> None:
    starter = (DCGAN / "run_distributed.sh").read_text()
    assert starter.splitlines()[1].startswith("exec python -m cotenant.bench.ranks ")
    scripts = [*TASKS.rglob("run_distributed.sh"), TASKS / "image_classification/scaling/pytorch/run.sh"]
    assert len(scripts) == 20
    assert {path.read_text() for path in scripts} == {starter}


def test_scripts_can_be_executed_and_become_the_benchmark() -> None:
    for path in TASKS.rglob("run*.sh"):
        assert os.access(path, os.X_OK), path
        first, *_, last = path.read_text().splitlines()
        assert first == "#!/usr/bin/env bash", path
        assert last.startswith("exec "), path
        assert (path.parent / "main.py").exists(), path
    assert all(os.access(path, os.X_OK) for path in TASKS.rglob("download_dataset.sh"))
    words = TASKS / "natural_language_processing/word_language_model/pytorch/run_fp16.sh"
    assert words.read_text().endswith('/main.py" --fp16 "$@"\n')
