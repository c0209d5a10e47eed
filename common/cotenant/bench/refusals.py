"""Asks tasks which of their arguments they refuse, in one process for all of them: to import torch takes seconds.

Standard input holds a JSON list of tasks, each a path and the words of its launches; standard output the answers.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import runpy
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cotenant.bench.arguments import parse
from cotenant.bench.contract import Benchmark
from cotenant.checkout import SOURCE_ROOT
from cotenant.errors import CotenantError

OF_THIS_HOST = ("/proc/", "/sys/", "/dev/")
LOOKS = ("os.listdir", "os.scandir", "subprocess.Popen", "socket.connect")
"""Events of sys.audit beside those of files: other things that a constructor may look at."""


@dataclass(slots=True)
class Refusals:
    """A task's answers about its launches: the words `refused` of each, "" where none; or why the answer is `unknown`.

    It `lasts` as long as the task's own files and the installed packages: the task looked at nothing else.
    """

    refused: list[str] = field(default_factory=list)
    unknown: str = ""
    lasts: bool = True


class Lookout:
    """Notices whether a task looks at more than its own folder, our package and the installed ones."""

    def __init__(self) -> None:
        installed = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
        # argparse looks there for the language of its sentences.
        known = {str(SOURCE_ROOT / "cotenant"), str(Path(sys.base_prefix, "share/locale")), *installed}
        self._places = (*(f"{place}{os.sep}" for place in known), *OF_THIS_HOST)
        self._folder = ""
        self._asking = False
        self.elsewhere = False
        sys.addaudithook(self._heard)

    @contextlib.contextmanager
    def over(self, folder: str) -> Iterator[None]:
        """Watch the task in this folder, and forget its imports that are not installed."""
        self._folder, self.elsewhere = folder, False
        before = set(sys.modules)
        try:
            yield
        finally:
            self._folder = ""
            # Several tasks have a `model.py`, and a module that lies elsewhere is noticed only as it is imported.
            for name in sys.modules.keys() - before:
                if (file := getattr(sys.modules[name], "__file__", None)) and not file.startswith(self._places):
                    del sys.modules[name]

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Watch a constructor: whether it asks for the state of a file, too, of which the interpreter says nothing."""
        before = os.stat

        def stat(file: Any, *given: Any, **named: Any) -> os.stat_result:
            self._looked_at(file)
            return before(file, *given, **named)

        self._asking = True
        try:
            with patch.object(os, "stat", stat):
                yield
        finally:
            self._asking = False

    def _heard(self, event: str, given: tuple[Any, ...]) -> None:
        if not self._folder:
            return
        if event == "open":
            self._looked_at(given[0])
        elif event == "import":
            self._looked_at(given[1])
        elif self._asking and event in LOOKS:
            self.elsewhere = True

    def _looked_at(self, file: object) -> None:
        if not isinstance(file, str | bytes | os.PathLike):
            return
        path = os.path.abspath(os.fsdecode(file))  # noqa: PTH100 # not resolved: that would look at files
        beside = path.removeprefix(f"{self._folder}{os.sep}").removeprefix(f"__pycache__{os.sep}")
        ours = path != beside and os.sep not in beside and beside.endswith((".py", ".pyc"))
        if not ours and not path.startswith(self._places) and path not in sys.path:
            self.elsewhere = True


def refusals(task: str, launches: Sequence[Sequence[str]], lookout: Lookout) -> Refusals:
    """Return the words that the benchmark in this file refuses. The file is run as a program, up to its `main()`."""
    answer = Refusals()
    folder = str(Path(task).parent)

    def main(cls: type[Benchmark], argv: object = None) -> None:
        with lookout.asking():
            answer.refused.extend(_refusal(cls, words) for words in launches)

    paths = patch.object(sys, "path", [folder, *sys.path])
    with paths, patch("cotenant.bench.main", main), patch("cotenant.bench.session.main", main):
        try:
            with lookout.over(folder):
                runpy.run_path(task, run_name="__main__")
        except (Exception, SystemExit) as error:
            return Refusals(unknown=f"{type(error).__name__}: {error}")
    if not answer.refused:
        return Refusals(unknown="it calls no main() of a benchmark")
    answer.lasts = not lookout.elsewhere
    return answer


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


def main() -> None:
    """Answer the questions on standard input."""
    gc.disable()  # Imported modules stay: to look for garbage in it takes a fifth of the time.
    tempfile.gettempdir()  # It tries the place with a file, once.
    lookout = Lookout()
    with contextlib.redirect_stdout(sys.stderr):
        answers = [refusals(task, launches, lookout) for task, launches in json.load(sys.stdin)]
    print(json.dumps([asdict(answer) for answer in answers]))


if __name__ == "__main__":
    main()
