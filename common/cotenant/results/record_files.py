"""Reads files of records. Contents that are no record, or a malformed one, are skipped and named with the reason."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from cotenant.decoding import decoded
from cotenant.errors import CotenantError
from cotenant.files import content_of, open_regular
from cotenant.results.as_read import ReadRecord, edited_finding
from cotenant.results.decoded import list_of, mapping_of, text_of
from cotenant.results.export_form import export_form
from cotenant.results.journal import Written
from cotenant.results.legacy import LegacyRecord, Repetitions, legacy_record, of_earlier_version, values_in_text
from cotenant.results.record import Record, record_of
from cotenant.results.skipped import NAMED, ForeignError, Skipped

SUFFIXES = (".json", ".jsonl", ".parquet", ".report")
RESOLVED = (".resolved", ".resolved.json")
"""The suffixes of a resolved suite; the second is an older one, which readers of `*.json` took for a record's."""
MOST_BYTES = 1 << 30
"""A larger file is no record; exported rows have their own reader."""
AnyRecord = ReadRecord | LegacyRecord
_VALUE = msgspec.json.Decoder(Any)
IS_EXPORT = "it is an export, which report, compare and mlbench-report read where it is named itself"


def records_in(places: list[Path]) -> Iterator[AnyRecord | Skipped]:
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


def read_file(path: Path, repetitions: Repetitions, written: Written) -> Iterator[AnyRecord | Skipped]:
    """Yield the contents of one file, record by record; `written` tells whether its launch wrote this content."""
    lost, content = 0, _content(path)
    edited = written.differs(path, content) if isinstance(content, bytes) else None
    for number, value in enumerate(repetitions.numbered(_values(content), path)):
        try:
            yield record_in(value, str(path), number, edited)
        except ForeignError as error:
            lost += 1
            if lost <= NAMED:
                yield Skipped(str(path), str(error))
    if lost > NAMED:
        yield Skipped(str(path), f"{lost - NAMED} more parts of it are no records")


def record_in(value: Any, path: str, number: int | None = None, edited: bool | None = False) -> AnyRecord:
    """Return the record in one JSON value of a file. Raises ForeignError without one; a text is the reason."""
    if not isinstance(value, dict):
        raise ForeignError(value if isinstance(value, str) else "it is no JSON object")
    if "schema" not in value:
        return legacy_record(value, path, number, [edited_finding()] if edited else [])
    try:
        return ReadRecord(_ours(value), text_of(path), number, edited)
    except msgspec.ValidationError as error:
        raise ForeignError(f"it is malformed: {error}") from error


def own_records(path: Path) -> list[Record | None]:
    """Return a file's records by their numbers in it; None for malformed records and the original suite's."""
    found: list[Record | None] = []
    for value in _values(_content(path)):
        try:
            read = record_in(value, str(path))
            found.append(read.record if isinstance(read, ReadRecord) else None)
        except ForeignError:
            found.append(None)
    return found


def _ours(fields: dict[str, Any]) -> Record:
    """Return our record of these fields. Raises msgspec.ValidationError."""
    try:
        return record_of(fields)
    except msgspec.ValidationError:
        return record_of(of_earlier_version(fields))


def planned_jobs(place: Path) -> set[str]:
    """Return the jobs in the resolved suites beside records, in a directory and below it.

    A file instead of a directory, or a damaged part, gives none.
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
    """Yield the files in these places, each once, even if places contain each other, like `out out/*`."""
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

    Links to directories are not followed, since they could form a cycle; like unreadable directories, they are named.
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
    """Yield the JSON values of a file, and a sentence if the rest of it cannot be read."""
    if isinstance(content, str):
        yield content
        return
    value: Any = None
    with suppress(msgspec.DecodeError):
        value = decoded(_VALUE, content)
    if isinstance(value, dict):
        yield value
    else:
        yield from values_in_text(content)
