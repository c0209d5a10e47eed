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

LIMIT_S = 300


def refused(starts: Iterable[Start]) -> list[str]:
    """Return a sentence per cell whose arguments its task refuses; warn of tasks that nobody could ask."""
    launches: dict[Path, list[Start]] = {}
    for start in starts:
        task = task_of(start.command)
        if task is not None and not start.solo:
            launches.setdefault(task, []).append(start)
    if not launches:
        return []
    questions = [[str(task), [_words(start) for start in of_task]] for task, of_task in launches.items()]
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
    sentences = []
    for (task, of_task), answers in zip(launches.items(), json.loads(child.stdout), strict=True):
        if isinstance(answers, str):
            warn(f"{task}: its arguments are not checked: {answers}")
        else:
            sentences += [f"{start.label}: {answer}" for start, answer in zip(of_task, answers, strict=True) if answer]
    return sentences


def _words(start: Start) -> list[str]:
    words = start.specs[0].command
    return list(words[words.index(str(start.command)) + 1 :])
