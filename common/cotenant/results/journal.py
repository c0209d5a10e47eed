"""The journal of a directory of records: the suites started there, the launches that ended, and their files.

Each start, launch and end appends a line of JSON, which is synced. Each line has the hash of the line before it, so
that changed, removed or inserted lines are found. `--resume` continues after the last launch in the journal.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from cotenant.decoding import decoded
from cotenant.errors import CotenantError
from cotenant.files import Directory, opened
from cotenant.results.store import OTHER_DIRECTORY, cannot_write

FILE = "cotenant.journal"
FIRST = "0" * 64
ARGUMENTS = "arguments after --"
"""The condition of a start with the words after `--`, as a JSON list."""
LOCK_LIMIT_S, LOCK_POLL_S = 10.0, 0.05


UNFINISHED = frozenset({"interrupted", "node_lost"})
"""Outcomes of launches that `--resume` repeats."""


class _Entry(msgspec.Struct, frozen=True, tag_field="entry"):
    suite: str
    uid: int


class Started(_Entry, frozen=True, tag="start"):
    """The start or resumption of a suite; a resumption needs equal `conditions`."""

    host: str
    time: str
    launches: tuple[str, ...]
    conditions: dict[str, str]
    resumed: bool = False


class Launched(_Entry, frozen=True, tag="launch"):
    """The end of a launch, with the names of its records' files and their SHA-256.

    Several hosts may write into one directory; `host` is empty in older lines.
    """

    label: str
    time: str
    outcomes: tuple[str, ...]
    records: dict[str, str]
    host: str = ""

    @property
    def finished(self) -> bool:
        """Return whether it ended, even by a failure, without an interruption or a lost node."""
        return not UNFINISHED.intersection(self.outcomes)


class Ended(_Entry, frozen=True, tag="end"):
    """The end of a suite on `host` (empty in older lines), with the signal that interrupted it, if any."""

    time: str
    interrupted: str | None = None
    host: str = ""


Entry = Started | Launched | Ended


class _Line(msgspec.Struct, frozen=True):
    previous: str
    content: Entry


_DECODER = msgspec.json.Decoder(_Line)


@dataclass(frozen=True, slots=True)
class Journal:
    """The entries of one file, in order, and the hash that the next line must have."""

    entries: tuple[Entry, ...] = ()
    head: str = FIRST

    @property
    def records(self) -> dict[str, str]:
        """The SHA-256 of each record of the launches, by its name."""
        launches = (entry for entry in self.entries if isinstance(entry, Launched))
        return {name: digest for launch in launches for name, digest in launch.records.items()}

    def last_start(self, suite: str, uid: int, host: str) -> Started | None:
        """Return a repetition's newest start that was no resumption: on this host, else on any host."""
        starts = [entry for entry in self.entries if isinstance(entry, Started) and not entry.resumed]
        same = [start for start in starts if (start.suite, start.uid) == (suite, uid)]
        return next(reversed([start for start in same if start.host == host] or same), None)

    def launches_since(self, start: Started) -> list[Launched]:
        """Return the launches after a start, with its repetition and host."""
        behind = self.entries[self.entries.index(start) :]
        launches = [entry for entry in behind if isinstance(entry, Launched) and entry.host in ("", start.host)]
        return [launch for launch in launches if (launch.suite, launch.uid) == (start.suite, start.uid)]


class Written:
    """The SHA-256 of records by the journals beside them; each journal is read once."""

    def __init__(self) -> None:
        self.unread: dict[str, str] = {}
        """Reasons why journals cannot be used, by their paths."""
        self._hashes: dict[Path, dict[str, str]] = {}

    def differs(self, path: Path, content: bytes) -> bool | None:
        """Return whether the journal beside this file lists other content for it; None if it does not list the file."""
        if path.parent not in self._hashes:
            self._hashes[path.parent] = self._read(path.parent)
        written = self._hashes[path.parent].get(path.name)
        return None if written is None else hashlib.sha256(content).hexdigest() != written

    def _read(self, directory: Path) -> dict[str, str]:
        try:
            return read_journal(directory).records
        except CotenantError as error:
            path = str(directory / FILE)
            reason = error.sentence.removeprefix(path).lstrip(":, ").rstrip(".")
            self.unread[path] = f"{reason}, so no record is held against it"
            return {}


def now() -> str:
    """Return the current time in the form of entries."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def read_journal(directory: Path | Directory) -> Journal:
    """Read the journal of a directory; a missing journal has no entries. A killed writer's torn last line is ignored.

    Raises CotenantError, with the line's number, if a line was changed.
    """
    try:
        with opened(directory) as place, place.open(FILE) as file:
            return parsed(file.read(), f"{directory}/{FILE}")
    except FileNotFoundError:
        return Journal()
    except OSError as error:
        raise CotenantError(f"{directory}/{FILE} cannot be read: {error.strerror}.") from error


def append(directory: Path | Directory, entry: Entry) -> bytes:
    """Append an entry and sync it; cut off a killed writer's torn line. Return the whole content.

    Raises CotenantError.
    """
    path = f"{directory}/{FILE}"
    try:
        with opened(directory) as place, place.open(FILE, "r+b") as file:
            _lock(file, path)
            content = file.read()
            whole = content[: content.rfind(b"\n") + 1]
            line = msgspec.json.encode(_Line(parsed(content, path).head, entry)) + b"\n"
            file.seek(len(whole))
            file.truncate()
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
            return whole + line
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise CotenantError(f"{path} is no regular file.", "Move it away.") from error
        raise cannot_write(directory, error) from error


def goes_on(place: Directory, head: bytes) -> bool:
    """Return whether a journal still begins with the bytes `head`, followed by entries only."""
    try:
        with place.open(FILE) as file:
            content = file.read()
        parsed(content, FILE)
    except (OSError, CotenantError):
        return False
    return content.startswith(head)


def _lock(file: BinaryIO, path: str) -> None:
    """Wait for other writers, but not for ever: any process that may read the file can hold its lock."""
    deadline = time.monotonic() + LOCK_LIMIT_S
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise CotenantError(
                    f"{path} has been locked for {LOCK_LIMIT_S:g} s.",
                    f"This shows the process that holds it: fuser -v {path}",
                ) from None
            time.sleep(LOCK_POLL_S)
        except OSError as error:
            raise CotenantError(
                f"{path} cannot be locked: {error.strerror}.",
                f"Lustre takes locks with the mount option flock, NFS with its lock service. {OTHER_DIRECTORY}",
            ) from error


def parsed(content: bytes, path: Path | str) -> Journal:
    """Return a journal's entries. Raises CotenantError, which names the changed line."""
    entries, head = [], FIRST
    for number, text in enumerate(content.split(b"\n")[:-1], 1):
        try:
            line = decoded(_DECODER, text)
        except msgspec.DecodeError as error:
            raise _damaged(path, number, f"it is no entry ({error})") from error
        if line.previous != head:
            raise _damaged(path, number, "it does not follow the line before it")
        entries.append(line.content)
        head = hashlib.sha256(text).hexdigest()
    return Journal(tuple(entries), head)


def _damaged(path: Path | str, number: int, reason: str) -> CotenantError:
    return CotenantError(
        f"{path}, line {number}: {reason}; the journal was changed or damaged.",
        "Move it away: the records stay as they are, and a new journal begins.",
    )
