"""What tasks refuse of their arguments, asked in one process for all of them: to import torch takes seconds.

Standard input holds a JSON list of tasks, each a path and the words of its launches; standard output the answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import sys
from collections.abc import Sequence
from unittest.mock import patch

from cotenant.bench.arguments import parse
from cotenant.bench.contract import Benchmark
from cotenant.errors import CotenantError

Answers = list[str] | str
"""What is refused of each launch's words, empty where nothing is; or why nobody knows."""


def refusals(task: str, launches: Sequence[Sequence[str]]) -> Answers:
    """Return what the benchmark in this file refuses. The file is run as a program, up to its `main()`."""
    answers: list[str] = []
    folder, before = os.path.dirname(task), set(sys.modules)  # noqa: PTH120

    def main(cls: type[Benchmark], argv: object = None) -> None:
        answers.extend(_refusal(cls, words) for words in launches)

    with patch.object(sys, "path", [folder, *sys.path]), patch.object(Benchmark, "main", classmethod(main)):
        try:
            runpy.run_path(task, run_name="__main__")
        except (Exception, SystemExit) as error:
            return f"{type(error).__name__}: {error}"
        finally:
            # Several tasks have a `model.py`.
            for name in sys.modules.keys() - before:
                if str(getattr(sys.modules[name], "__file__", None)).startswith(folder + os.sep):
                    del sys.modules[name]
    return answers or "it calls no main() of a benchmark"


def _refusal(cls: type[Benchmark], words: Sequence[str]) -> str:
    try:
        values = parse(cls, words).values
        # As many processes as it asks for would be started.
        ranks, nodes = values["devices"] or 1, values.get("nodes") or 1
        with patch.dict(os.environ, WORLD_SIZE=str(nodes * ranks), LOCAL_WORLD_SIZE=str(ranks)):
            cls(**values)
    except CotenantError as error:
        return str(error)
    except SystemExit:  # --help
        return ""
    return ""


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        tasks_answers = [refusals(task, launches) for task, launches in json.load(sys.stdin)]
    print(json.dumps(tasks_answers))
