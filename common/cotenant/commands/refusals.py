"""What the tasks of a suite would refuse of their arguments, for `--dry`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from cotenant.commands.output import warn
from cotenant.launch.environment import own_python
from cotenant.launch.start import Start
from cotenant.suite.task_source import task_of
from cotenant.text import listed

LIMIT_S = 300
SHOWN_CELLS = 4


def refused(starts: Iterable[Start]) -> list[str]:
    """Return what tasks refuse, a sentence of all cells with one answer; warn of tasks that nobody could ask."""
    launches: dict[Path, dict[str, list[str]]] = {}
    for start in starts:
        for program, spec in zip(start.programs, start.specs, strict=True):
            task = task_of(program.command)
            if task is not None and not start.solo:
                words = list(spec.command[spec.command.index(str(program.command)) + 1 :])
                launches.setdefault(task, {}).setdefault(program.cell.label, words)
    if not launches:
        return []
    questions = [[str(task), [*of_task.values()]] for task, of_task in launches.items()]
    try:
        child = subprocess.run(
            [sys.executable, "-m", "cotenant.bench.refusals"],
            input=json.dumps(questions),
            capture_output=True,
            text=True,
            check=True,
            timeout=LIMIT_S,
            env=os.environ | own_python(),
        )
    except subprocess.SubprocessError as error:
        last = (getattr(error, "stderr", None) or "").splitlines()[-1:]
        warn(f"The tasks' arguments are not checked: {last[0] if last else error}")
        return []
    cells_of: dict[str, list[str]] = {}
    for (task, of_task), answers in zip(launches.items(), json.loads(child.stdout), strict=True):
        if isinstance(answers, str):
            warn(f"{task}: its arguments are not checked: {answers}")
        else:
            for cell, answer in zip(of_task, answers, strict=True):
                cells_of.setdefault(answer, []).append(cell)
    return [f"{listed(cells, SHOWN_CELLS)}: {answer}" for answer, cells in cells_of.items() if answer]
