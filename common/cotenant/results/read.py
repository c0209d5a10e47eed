"""Reading records: ours, and both formats of the original suite. What cannot be read is named, counted and skipped.

The older of the original's formats is a file per device to which `{...},` was appended after a first `[`, and which was
never closed; the newer is one object a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cotenant.errors import CotenantError
from cotenant.results.row import ForeignError, Row, row_of

if TYPE_CHECKING:
    from cotenant.results.detail import Detail

T = TypeVar("T")
SUFFIXES = (".json", ".jsonl", ".report")
NOT_RECORDS = ".resolved.json"
MOST_BYTES = 1 << 30
"""A single file beyond this is no record; exported rows have a reader of their own."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, or what of it could not be read, and why."""

    path: str
    reason: str


@dataclass(slots=True)
class Records:
    """What was found: rows in the order of their paths, and what was skipped."""

    rows: list[Row] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def read_records(places: list[Path]) -> Records:
    """Read every record in the given files, and in the given directories and those below them.

    Raises CotenantError where a place does not exist; whatever else is wrong is skipped, and said.
    """
    found = Records()
    for path in _files(places):
        for one in read_file(path):
            if isinstance(one, Row):
                found.rows.append(one)
            else:
                found.skipped.append(one)
    return found


def read_details(places: list[Path]) -> Iterator[Detail | Skipped]:
    """Yield every record with what can be drawn of it, file by file: no more than one file's text is held.

    Raises CotenantError where a place does not exist.
    """
    from cotenant.results.detail import detail_of  # needs numpy, rows do not

    for path in _files(places):
        yield from _read(path, detail_of)


def read_file(path: Path) -> Iterator[Row | Skipped]:
    """Yield what one file holds, record by record."""
    yield from _read(path, row_of)


def _read(path: Path, made_of: Callable[[Any, str], T]) -> Iterator[T | Skipped]:
    try:
        if path.stat().st_size > MOST_BYTES:
            yield Skipped(str(path), f"it is larger than {MOST_BYTES >> 30} GiB")
            return
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        yield Skipped(str(path), error.strerror or str(error))
        return
    except UnicodeDecodeError:
        yield Skipped(str(path), "it is not UTF-8")
        return
    for value in _values(text):
        if isinstance(value, str):
            yield Skipped(str(path), value)
            continue
        try:
            yield made_of(value, str(path))
        except ForeignError as error:
            yield Skipped(str(path), str(error))


def _files(places: list[Path]) -> Iterator[Path]:
    for place in places:
        if place.is_dir():
            candidates = sorted(place.rglob("*"))
            named = (path for path in candidates if path.suffix in SUFFIXES and not path.name.endswith(NOT_RECORDS))
            yield from (path for path in named if path.is_file() and not path.name.startswith("."))
        elif place.exists():
            yield place
        else:
            raise CotenantError(f"There is no {place}.", "Name a directory with records, or a record.")


def _values(text: str) -> Iterator[Any]:
    """Yield the JSON objects of a file, a closed or unclosed list of them, or lines of them; a sentence where it ends.

    What comes before a damaged place is kept: an appended file is whole up to the moment its writer died.
    """
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
            yield f"it is cut off or damaged after {count} records" if count else "it is not JSON, or cut off"
            return
        except ValueError:  # A number of more digits than Python reads.
            yield "it holds a number that is none"
            return
        count += 1
        yield value if not isinstance(value, str) else [value]
    if not count:
        yield "it is empty"
