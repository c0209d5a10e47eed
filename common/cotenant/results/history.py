"""The history: a file of launches that is only ever appended to, line by line, by any number of writers at once."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from cotenant.errors import CotenantError
from cotenant.results.entry import Entry, Identity, entry_of, line_of

MOST_LINE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Damage:
    """A line, counted from 1, that is no entry, and why."""

    line: int
    reason: str


@dataclass(slots=True)
class History:
    """Every launch once, in the order of the file, and what of the file could not be read."""

    entries: list[Entry] = field(default_factory=list)
    damaged: list[Damage] = field(default_factory=list)


def read_history(path: Path) -> History:
    """Read a history. Raises CotenantError where there is no such file, or it cannot be read."""
    with _opened(path, os.O_RDONLY, fcntl.LOCK_SH) as file:
        return _read(file)


def add_to_history(path: Path, entries: Sequence[Entry]) -> tuple[int, History]:
    """Append the entries the history does not hold yet; return how many, and the history before.

    The file is made where there is none. Lines are written whole, under a lock, and synced; where they cannot be, as on
    a full disk, what was written of them is taken back. A last line that its writer left unfinished is closed, so that
    it spoils nothing but itself. Raises CotenantError.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot("made", path, error) from None
    with _opened(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, fcntl.LOCK_EX) as file:
        history = _read(file)
        known = {entry.identity for entry in history.entries}
        new = {entry.identity: entry for entry in reversed(entries) if entry.identity not in known}
        if new:
            try:
                _append(file.fileno(), [line_of(entry) for entry in reversed(new.values())])
            except OSError as error:
                raise _cannot("written", path, error) from None
    return len(new), history


def _read(file: BinaryIO) -> History:
    history, known = History(), set[Identity]()
    for number, line in enumerate(_lines(file), 1):
        try:
            entry = entry_of(line)
        except ValueError as error:
            history.damaged.append(Damage(number, str(error)))
        else:
            if entry.identity not in known:
                known.add(entry.identity)
                history.entries.append(entry)
    return history


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield every line; of one that is too long to be an entry only its beginning is held."""
    while line := file.readline(MOST_LINE_BYTES):
        rest = line
        while not rest.endswith(b"\n") and (rest := file.readline(MOST_LINE_BYTES)):
            continue
        yield line


def _append(descriptor: int, lines: Sequence[bytes]) -> None:
    """Raises OSError, and then nothing is appended."""
    before = os.fstat(descriptor).st_size
    torn = before > 0 and os.pread(descriptor, 1, before - 1) != b"\n"
    content = memoryview((b"\n" if torn else b"") + b"".join(line + b"\n" for line in lines))
    try:
        while content:
            content = content[os.write(descriptor, content) :]
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, before)
        raise


@contextlib.contextmanager
def _opened(path: Path, flags: int, lock: int) -> Iterator[BinaryIO]:
    """Open a history and lock it; the kernel drops the lock with the file. Raises CotenantError."""
    try:
        # Not waiting: something that is no file could make us.
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    except FileNotFoundError:
        raise CotenantError(f"There is no history {path}.", "`cotenant history add DIR` begins one.") from None
    except OSError as error:
        raise _cannot("opened", path, error) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CotenantError(f"{path} is no file.", "--store names the history's file.")
    with os.fdopen(descriptor, "rb") as file:
        fcntl.flock(descriptor, lock)
        yield file


def _cannot(what: str, path: Path, error: OSError) -> CotenantError:
    return CotenantError(
        f"The history {path} cannot be {what}: {error.strerror}.",
        "Free some space, or name another file: --store FILE.",
    )
