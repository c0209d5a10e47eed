"""Commands called in this process, as a person calls them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from cotenant.cli import main
from cotenant.errors import CotenantError
from cotenant.results.journal import Launched, append
from cotenant.results.record import Record
from cotenant.results.store import write_record
from results.made import hashes

Capture = pytest.CaptureFixture[str]


def call(capsys: Capture, *words: object) -> tuple[int, str, str]:
    """Return a command's exit status, its standard output and its standard error."""
    capsys.readouterr()
    status = main(list(map(str, words)))
    return status, *capsys.readouterr()


def refusal(deed: Callable[..., object], *words: Any, **more: Any) -> str:
    """Return the sentence and the remedy with which a call is refused."""
    with pytest.raises(CotenantError) as refused:
        deed(*words, **more)
    return str(refused.value)


def check_refusals(capsys: Capture, command: str, sentences: Mapping[str, str | Iterable[str]], *more: object) -> None:
    """Assert for each line of words that `command more LINE` ends with 2 and one sentence with the line's texts."""
    for line, texts in sentences.items():
        status, said, errors = call(capsys, *command.split(), *more, *shlex.split(line))
        assert (status, said) == (2, ""), line
        assert errors.startswith("cotenant: "), line
        assert errors.count("\n") == 1, line
        for text in [texts] if isinstance(texts, str) else texts:
            assert text in errors, line


def write(directory: Path, records: Iterable[Record], journal: bool = True) -> Path:
    """Write records under the names that a suite gives them, and into their journal."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = [write_record(directory, one, datetime.fromisoformat(one.start_time)) for one in records]
    return vouched(directory, paths) if journal else directory


def vouched(directory: Path, paths: Iterable[Path]) -> Path:
    """Write these records into the journal of their directory, which is returned."""
    entry = Launched(suite="baselines", uid=0, label="all", time="t", outcomes=("completed",), records=hashes(paths))
    append(directory, entry)
    return directory
