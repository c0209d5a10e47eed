"""The directory in which a suite keeps its records, summary, journal and logs, held open from the suite's start."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from cotenant.errors import CotenantError, UnwrittenError
from cotenant.files import Directory
from cotenant.finding import Finding, warning
from cotenant.results.journal import FILE, Entry, Launched, append, goes_on, parsed
from cotenant.results.record import Record, encode_record, restored
from cotenant.results.store import (
    SUMMARY,
    Reserve,
    append_summary,
    cannot_write,
    prepare_directory,
    write_into,
    write_record,
)
from cotenant.results.superseded import SUPERSEDED, superseded
from cotenant.text import many

T = TypeVar("T")

LOGS = "logs"


class Output:
    """The files of one suite, in a directory in which its tenants may also write.

    A file that a tenant put in place of ours is set aside. Records that the disk refuses are written into reserved
    room, and `check` raises an error afterwards. The other methods that write raise CotenantError, except `keep`.
    """

    def __init__(self, path: Path) -> None:
        """Make and open the directory. Raises CotenantError if it has no room for a suite's records."""
        prepare_directory(path)
        try:
            self.directory = Directory(path)
        except OSError as error:
            raise cannot_write(path, error) from error
        self._known = b""
        try:
            self._reserve = Reserve(path)
        except CotenantError:
            self.directory.close()
            raise

    def close(self) -> None:
        self._reserve.close()
        self.directory.close()

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole or not at all."""
        self._do(partial(write_into, self.directory, name, content))

    def keep(self, records: Iterable[Record], time: datetime) -> dict[str, str]:
        """Write every record that can be written; return the SHA-256 of each file by its name."""
        kept: dict[str, str] = {}
        for record in records:
            with suppress(CotenantError):
                path = self._do(partial(write_record, self.directory, record, time))
                kept[path.name] = hashlib.sha256(encode_record(record)).hexdigest()
        return kept

    def supersede(self, launch: Launched, records: Sequence[Record]) -> str:
        """Set aside the records that do not count, of the journal's older launches or of this one; return a sentence
        on that. Records that cannot be renamed stay: readers take the newest launch.
        """
        new = dict(zip(launch.records, records, strict=True))
        stems = {_stem(name) for name in new}
        earlier = parsed(self._known, FILE).records
        names = [name for name in earlier.keys() - new.keys() if _stem(name) in stems]
        older = {name: record for name in names if (record := self._record(name)) is not None}
        aside = []
        for name in superseded(new, older):
            with suppress(OSError):
                self.directory.set_beside(name, SUPERSEDED)
                aside.append(name)
        if not aside:
            return ""
        files = f"{many(len(aside), 'record')}, now *{SUPERSEDED}"
        if aside[0] in new:
            return f"it failed, and an earlier launch completed, which counts in its place ({files})."
        return f"it counts in the place of an earlier launch ({files})."

    def _record(self, name: str) -> Record | None:
        """Return the record in a file; None if it is gone, or not one that was written here."""
        try:
            with self.directory.open(name) as file:
                return restored(file.read())
        except (OSError, msgspec.MsgspecError):
            return None

    def journal(self, entry: Entry) -> None:
        self._known = self._do(partial(append, self.directory, entry))

    def summary(self, line: str) -> None:
        self._do(partial(append_summary, self.directory, line))

    def logs(self) -> Directory:
        """Return the directory of logs; make it if it is missing."""

        def folder() -> Directory:
            try:
                return self.directory.folder(LOGS)
            except OSError as error:
                raise cannot_write(self.directory.path / LOGS, error) from error

        return self._do(folder)

    def put_right(self) -> tuple[Finding, ...]:
        """Set aside foreign files with the names of ours; return findings on them and on a replaced directory.

        A journal that no longer begins with our entries is written again.
        """
        try:
            replaced = list(self._set_aside())
        except OSError as error:
            raise cannot_write(self.directory, error) from error
        found = [
            warning(
                f"In {self.directory} there was {name}: the runner neither followed nor read it.",
                "Find the program that put it there: these names belong to the runner.",
                rule="file_replaced",
            )
            for name in replaced
        ]
        return (*found, *_replaced(self.directory))

    def check(self) -> None:
        """Raise UnwrittenError if the disk has refused a file, even if the reserved room then took it."""
        if self._reserve.refused is not None:
            kept = "Earlier measurements are kept as far as they could be written; --resume goes on."
            raise UnwrittenError(self._reserve.refused.sentence, f"{self._reserve.refused.remedy} {kept}")

    def check_name(self) -> None:
        """Raise UnwrittenError if the directory's name now leads elsewhere."""
        for finding in _replaced(self.directory):
            raise UnwrittenError(finding.sentence, finding.remedy)

    def _do(self, write: Callable[[], T]) -> T:
        """Do a write, if necessary into the reserved room. Raises UnwrittenError once the suite has begun."""
        try:
            return self._reserve.write(write)
        except CotenantError as error:
            if self._known:
                raise UnwrittenError(error.sentence, error.remedy) from error
            raise

    def _set_aside(self) -> Iterator[str]:
        for name, wanted in ((SUMMARY, stat.S_IFREG), (FILE, stat.S_IFREG), (LOGS, stat.S_IFDIR)):
            if self.directory.kind_of(name) not in (0, wanted):
                yield f"{self.directory.set_aside(name)}, in the place of {name}"
        if self._known and not goes_on(self.directory, self._known):
            if self.directory.kind_of(FILE):
                yield f"{self.directory.set_aside(FILE)}, in the place of {FILE}"
            self.directory.write(FILE, self._known)


def _stem(name: str) -> str:
    """Return the part of a record's file name that is equal for all records of one name and repetition."""
    return name.rpartition(".D")[0]


def _replaced(directory: Directory) -> Iterator[Finding]:
    """Yield the finding on a directory whose name leads elsewhere."""
    if directory.leads_elsewhere:
        yield warning(
            f"The name {directory} leads elsewhere since this suite began: its records are in {directory.place}.",
            "Find the program that renamed or replaced the directory, and move the records to where they belong.",
            rule="output_replaced",
        )
