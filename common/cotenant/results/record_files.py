"""Reads files of records: ours, and both formats of the original suite. Unreadable files are named and skipped.

The original's older format is a file for each device, a `[` to which `{...},` was appended, and which was never closed;
its newer format is one object in a file.
"""

from __future__ import annotations

import functools
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from cotenant.errors import CotenantError
from cotenant.files import content_of, open_regular
from cotenant.results.decoded import (
    NAMED,
    Decoded,
    ForeignError,
    Skipped,
    list_of,
    mapping_of,
    number_in,
    suite_and_device,
)
from cotenant.results.export_form import export_form
from cotenant.results.journal import Written
from cotenant.text import many

SUFFIXES = (".json", ".jsonl", ".parquet", ".report")
RESOLVED = (".resolved", ".resolved.json")
"""The suffixes of a resolved suite; the second is an older one, which readers of `*.json` took for a record."""
MOST_BYTES = 1 << 30
"""A larger file is no record; exported rows have their own reader."""
IS_EXPORT = "it is an export, which report, compare and mlbench-report read where it is named itself"


def records_in(places: list[Path]) -> Iterator[Decoded | Skipped]:
    """Yield every record, file by file. Raises CotenantError if a place does not exist."""
    repetitions, written = Repetitions(), Written()
    for path in _files(places):
        if isinstance(path, Skipped):
            yield path
        elif export_form(path):
            yield Skipped(str(path), IS_EXPORT)
        else:
            yield from read_file(path, repetitions, written)
    yield from (Skipped(journal, reason) for journal, reason in written.unread.items())


class Repetitions:
    """Numbers the original's records that name no repetition.

    The original appended a record to a device's file in each repetition (`SUITE_DEVICE.json`), or began new files in a
    new directory for each: the repetitions of a directory follow those of directories that were read before.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[str, Path], int] = {}
        self._next: Counter[str] = Counter()

    def numbered(self, values: Iterable[Any], path: Path) -> Iterator[Any]:
        """Yield the values of a file, each record with the number of its repetition."""
        suite, before = suite_and_device(str(path))[0], Counter[tuple[str, str]]()
        first = self._first.setdefault((suite, path.parent), self._next[suite]) if suite else 0
        for value in values:
            if isinstance(value, dict) and "schema" not in value and number_in(value, str(path)) is None:
                of = str(value.get("name")), str(value.get("vcd"))
                value = value | {"run_id": first + before[of]}
                before[of] += 1
                self._next[suite] = max(self._next[suite], first + before[of])
            yield value


def read_file(path: Path, repetitions: Repetitions, written: Written) -> Iterator[Decoded | Skipped]:
    """Yield the contents of one file, record by record; `written` tells whether its launch wrote this content."""
    lost, content = 0, _content(path)
    edited = written.differs(path, content) if isinstance(content, bytes) else None
    for number, value in enumerate(repetitions.numbered(_values(content), path)):
        try:
            if isinstance(value, str):
                raise ForeignError(value)
            yield Decoded(value, str(path), number, edited)
        except ForeignError as error:
            lost += 1
            if lost <= NAMED:
                yield Skipped(str(path), str(error))
    if lost > NAMED:
        yield Skipped(str(path), f"{lost - NAMED} more parts of it are no records")


def planned_jobs(place: Path) -> set[str]:
    """Return the jobs in the resolved suites, which are beside records, in a directory and below it.

    Files instead of directories, and damaged parts, give none.
    """
    jobs: set[str] = set()
    paths = [path for ending in RESOLVED for path in place.rglob(f"*{ending}")] if place.is_dir() else []
    for path in paths:
        with suppress(OSError, ValueError, RecursionError):
            cells = list_of(json.loads(content_of(path, follow=True)))
            labels = (mapping_of(cell).get("label") for cell in cells)
            jobs.update(label for label in labels if isinstance(label, str))
    return jobs


def _files(places: list[Path]) -> Iterator[Path | Skipped]:
    """Yield the files in these places, each once: places may be within each other, like `out out/*`."""
    seen: set[tuple[str, str]] = set()
    home = functools.cache(os.path.realpath)
    for place in places:
        if not place.exists():
            raise CotenantError(f"{place} does not exist.", "Name a directory with records, or a record.")
        for path in _below(place) if place.is_dir() else (place,):
            if isinstance(path, Skipped):
                yield path
            elif (name := (home(path.parent), path.name)) not in seen:
                seen.add(name)
                yield path


def _below(place: Path) -> Iterator[Path | Skipped]:
    """Yield the possible records below a directory, in order of names, a directory's own files first.

    Links to directories are not followed, as they could lead in a circle; they are named, like unreadable directories.
    """
    refused: list[OSError] = []
    for directory, below, names in os.walk(place, onerror=refused.append):
        below.sort()
        for name in sorted(names):
            path = Path(directory, name)
            if path.suffix not in SUFFIXES or name.endswith(RESOLVED) or name.startswith("."):
                continue
            if path.is_symlink() and not path.exists():
                yield Skipped(str(path), "it is a link to a file that is not there")
            else:
                yield path
        for path in (Path(directory, name) for name in below):
            if path.is_symlink():
                yield Skipped(str(path), "symlink", "name it directly to read it")
    for error in refused:
        yield Skipped(str(error.filename), error.strerror or str(error))


def values_in(path: Path) -> Iterator[Any]:
    """Yield the JSON values of a file, and a sentence if the rest cannot be read."""
    return _values(_content(path))


def _content(path: Path) -> bytes | str:
    """Return the contents of a file, or a sentence on why it cannot be read."""
    try:
        with open_regular(path, follow=True) as file:
            if os.fstat(file.fileno()).st_size > MOST_BYTES:
                return f"it is larger than {MOST_BYTES >> 30} GiB"
            return file.read()
    except OSError as error:
        return error.strerror or str(error)


def _values(content: bytes | str) -> Iterator[Any]:
    """Yield the JSON objects of a file (a closed or unclosed list, or lines), and a sentence if the rest is damaged.

    Records before the damage are kept: a file that is appended to is intact up to its writer's death.
    """
    if isinstance(content, str):
        yield content
        return
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        yield "it is not UTF-8"
        return
    decoder, at, end = json.JSONDecoder(), 0, len(text)
    count = 0
    while True:
        while at < end and text[at] in " \t\r\n,[]":
            at += 1
        if at == end:
            break
        try:
            value, at = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError):
            yield f"it is cut off or damaged after {many(count, 'record')}" if count else "it is not JSON, or cut off"
            return
        except ValueError:  # A number with more digits than Python reads.
            yield "it holds a number that is none"
            return
        count += 1
        yield value if not isinstance(value, str) else [value]
    if not count:
        yield "it is empty"
