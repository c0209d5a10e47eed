"""Reading records: ours, and both formats of the original suite. What cannot be read is named, counted and skipped.

The older of the original's formats is a file per device to which `{...},` was appended after a first `[`, and which was
never closed; the newer is one object a file.
"""

from __future__ import annotations

import functools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from cotenant.errors import CotenantError
from cotenant.results.detail import Detail, detail_of
from cotenant.results.exported import frames, is_export
from cotenant.results.row import ForeignError, Row, has_uid, row_of
from cotenant.results.skipped import NAMED, Skipped
from cotenant.results.table import Details, Table, frame_of

T = TypeVar("T")
SUFFIXES = (".json", ".jsonl", ".parquet", ".report")
NOT_RECORDS = ".resolved.json"
MOST_BYTES = 1 << 30
"""A single file beyond this is no record; exported rows have a reader of their own."""


@dataclass(frozen=True, slots=True)
class Records:
    """What was found in the order of the paths, what was skipped, and the files of them that are exports."""

    details: Details
    skipped: tuple[Skipped, ...]
    exports: tuple[str, ...]

    @property
    def frame(self) -> pl.DataFrame:
        return self.details.table.frame

    @property
    def rows(self) -> list[Row]:
        return self.details.rows


def read_records(places: list[Path]) -> Records:
    """Read every record in the given files, and in the given directories and those below them.

    An exported file is read where it is named itself; its rows come last. Raises CotenantError where a place does not
    exist; whatever else is wrong is skipped, and said.
    """
    own: list[Detail] = []
    found: list[pl.DataFrame] = []
    skipped: list[Skipped] = []
    exports, others = exports_among(places)
    for one in read_details(others):
        skipped.append(one) if isinstance(one, Skipped) else own.append(one)
    for path in exports:
        for part in frames(path):
            skipped.append(part) if isinstance(part, Skipped) else found.append(part)
    table = Table(pl.concat([frame_of(own), *found]), own)
    return Records(Details(table), tuple(skipped), tuple(map(str, exports)))


def exports_among(places: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return those of the places that are exported files, each once, and the others."""
    exports = {place.resolve(): place for place in places if is_export(place)}
    return list(exports.values()), [place for place in places if place.resolve() not in exports]


def read_details(places: list[Path]) -> Iterator[Detail | Skipped]:
    """Yield every record with what can be drawn of it, file by file: no more than one file's text is held.

    Raises CotenantError where a place does not exist.
    """
    return read_as(places, detail_of)


def read_as(places: list[Path], made_of: Callable[[Any, str], T]) -> Iterator[T | Skipped]:
    """Yield what `made_of` makes of each record and its path. Raises CotenantError where a place does not exist."""
    for path in _files(places):
        if isinstance(path, Skipped):
            yield path
        elif is_export(path):
            yield Skipped(
                str(path), "it is an export, which report, compare and mlbench-report read where it is named itself"
            )
        else:
            yield from _read(path, made_of)


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
    lost = 0
    for value in _numbered(_values(text), path):
        made = _made(value, path, made_of)
        lost += isinstance(made, Skipped)
        if lost <= NAMED or not isinstance(made, Skipped):
            yield made
    if lost > NAMED:
        yield Skipped(str(path), f"{lost - NAMED} more parts of it are no records")


def _numbered(values: Iterator[Any], path: Path) -> Iterator[Any]:
    """Give the original's records without a uid the number of those of their job and device before them in the file.

    It appended a record to a device's file in each repetition.
    """
    before: Counter[tuple[str, str]] = Counter()
    for value in values:
        if isinstance(value, dict) and not value.keys() & {"schema", "run_id", "uid"} and not has_uid(path):
            of = str(value.get("name")), str(value.get("vcd"))
            value = value | {"run_id": before[of]}
            before[of] += 1
        yield value


def _made(value: Any, path: Path, made_of: Callable[[Any, str], T]) -> T | Skipped:
    if isinstance(value, str):
        return Skipped(str(path), value)
    try:
        return made_of(value, str(path))
    except ForeignError as error:
        return Skipped(str(path), str(error))
    except RecursionError:
        return Skipped(str(path), "it is nested too deeply")


def _files(places: list[Path]) -> Iterator[Path | Skipped]:
    """Yield what is in these places, each file once: they may lie within each other, as `out out/*` do."""
    seen: set[tuple[str, str]] = set()
    home = functools.cache(os.path.realpath)
    for place in places:
        if not place.exists():
            raise CotenantError(f"There is no {place}.", "Name a directory with records, or a record.")
        for found in _below(place) if place.is_dir() else (place,):
            if isinstance(found, Skipped):
                yield found
            elif (name := (home(found.parent), found.name)) not in seen:
                seen.add(name)
                yield found


def _below(place: Path) -> Iterator[Path | Skipped]:
    """Yield the files below a directory that may be records, a directory's own first, both in order of their names.

    Links to directories could lead in a circle: they are not followed, and said, as is what cannot be looked into.
    """
    refused: list[OSError] = []
    for directory, below, names in os.walk(place, onerror=refused.append):
        below.sort()
        for name in sorted(names):
            path = Path(directory, name)
            named = path.suffix in SUFFIXES and not name.endswith(NOT_RECORDS) and not name.startswith(".")
            if named and path.is_file():
                yield path
            elif named and path.is_symlink() and not path.exists():
                yield Skipped(str(path), "it is a link to a file that is not there")
        for path in (Path(directory, name) for name in below):
            if path.is_symlink():
                yield Skipped(str(path), "it is a link to a directory, which is read where it is named itself")
    for error in refused:
        yield Skipped(str(error.filename), error.strerror or str(error))


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
