"""Finds arguments that the tasks of a suite would refuse, for `--dry` and for arguments after --."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cotenant.commands.answer_cache import AnswerCache
from cotenant.commands.output import warn
from cotenant.launch.environment import own_python
from cotenant.launch.prepared import PreparedSuite
from cotenant.launch.start import Start
from cotenant.suite.task_source import task_of
from cotenant.text import listed

LIMIT_S = 300
SHOWN_CELLS = 4


class Question(NamedTuple):
    """A question to a task: whether it refuses any of these words."""

    task: Path
    words: tuple[str, ...]


def refused(suite: PreparedSuite) -> list[str]:
    """Return the refusals of a suite's tasks, a sentence for all cells with the same answer.

    It warns of tasks that gave no answer. Answers from before, for the same sources on the same host, are used again.
    """
    cells = _questions(suite.starts)
    if not cells:
        return []
    cache = AnswerCache(suite.machine)
    keys = {question: cache.key(*question) for question in cells.values()}
    answers = {question: answer for question, key in keys.items() if (answer := cache.get(key)) is not None}
    if unknown := [question for question in keys if question not in answers]:
        told, lasting = _ask(unknown)
        answers |= told
        cache.add({keys[question]: told[question] for question in lasting})
    cells_of: dict[str, list[str]] = {}
    for cell, question in cells.items():
        cells_of.setdefault(answers.get(question, ""), []).append(cell)
    return [f"{listed(cells, SHOWN_CELLS)}: {answer}" for answer, cells in cells_of.items() if answer]


def _questions(starts: Iterable[Start]) -> dict[str, Question]:
    """Return each cell's question, for its first tenant: the others' words differ only in the seed."""
    questions: dict[str, Question] = {}
    for start in starts:
        for program, spec in zip(start.programs, start.specs, strict=True):
            label, task = program.cell.label, task_of(program.command)
            if task is not None and not start.solo and label not in questions:
                words = spec.command[spec.command.index(str(program.command)) + 1 :]
                questions[label] = Question(task, tuple(words))
    return questions


def _ask(questions: Iterable[Question]) -> tuple[Mapping[Question, str], list[Question]]:
    """Ask all tasks in one child process, which imports torch. Return the answers, and the questions to cache."""
    of_task: dict[Path, list[Question]] = {}
    for question in questions:
        of_task.setdefault(question.task, []).append(question)
    asked = [[str(task), [each.words for each in of_one]] for task, of_one in of_task.items()]
    told: dict[Question, str] = {}
    lasting: list[Question] = []
    for (task, of_one), answer in zip(of_task.items(), _child(asked), strict=False):
        if answer["unknown"]:
            warn(f"{task}: its arguments are not checked: {answer['unknown']}")
            continue
        told |= zip(of_one, answer["refused"], strict=True)
        lasting += of_one if answer["lasts"] else []
    return told, lasting


def _child(asked: list[Any]) -> list[dict[str, Any]]:
    """Return the answers of a process with torch; without answers warn, and return none."""
    try:
        child = subprocess.run(
            [sys.executable, "-P", "-m", "cotenant.bench.refusals"],
            input=json.dumps(asked),
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
    answers: list[dict[str, Any]] = json.loads(child.stdout)
    return answers
