"""Writes files of results under a temporary name, syncs and then renames them, so that no record is partly written.

summary.txt, beside the records, gets a line after each launch, and a last line with the total time.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from cotenant.errors import CotenantError
from cotenant.files import Directory, opened
from cotenant.results.record import INTERRUPTED, Record, encode_record

T = TypeVar("T")

SUMMARY = "summary.txt"
FULL = (errno.ENOSPC, errno.EDQUOT)
NAME_BYTES = 255
ASIDE_BYTES = 12
"""Room in a record's file name for a suffix that sets it aside."""
PROBE_BYTES = 65536
RESERVE_BYTES = 16 << 20
"""The records of a launch of a hundred tenants, each with a hundred observations, take an eighth of it."""
TIME = "%Y%m%d-%H%M%S-%f"
"""The form of the time in a record's file name."""
OTHER_DIRECTORY = "--outdir names another directory; for a benchmark alone, --report does."


def file_name(record: Record, time: datetime) -> str:
    """Return `{suite}.{job}.R{uid}.D{vcd}[.FAIL].{time}.json`, valid on any file system."""
    failed = "" if record.completed else ".FAIL"
    end = f".R{record.run_id}.D{record.vcd}{failed}.{time.strftime(TIME)}.json"
    limit_bytes = (NAME_BYTES - ASIDE_BYTES - len(end.encode()) - 1) // 2
    return f"{safe_part(record.suite, limit_bytes)}.{safe_part(record.name, limit_bytes)}{end}"


def write_record(directory: Path | Directory, record: Record, time: datetime) -> Path:
    """Write one record into `directory` and return its path. Raises CotenantError if it cannot be written.

    Tenants that share a device may end at the same time: if a name exists, the time in it is a microsecond later.
    """
    content = encode_record(record)
    while True:
        name = file_name(record, time)
        try:
            with opened(directory) as place:
                place.write(name, content, new=True)
                return place.path / name
        except FileExistsError:
            time += timedelta(microseconds=1)
        except OSError as error:
            raise cannot_write(directory, error) from error


def keep_record(report: Path, record: Record, time: datetime) -> Path:
    """Write one record to the path of `--report`: a file if it ends in `.json`, else a directory."""
    if report.suffix != ".json":
        prepare_directory(report)
        return write_record(report, record, time)
    prepare_directory(report.parent)
    write_whole(report, encode_record(record))
    return report


def write_whole(path: Path, content: bytes) -> None:
    """Write one of our files, whole or not at all. Raises CotenantError, with a remedy for a full disk."""
    write_into(path.parent, path.name, content)


def write_into(directory: Path | Directory, name: str, content: bytes) -> None:
    """Write a file in a directory as `write_whole` does."""
    try:
        with opened(directory) as place:
            place.write(name, content)
    except OSError as error:
        raise cannot_write(directory, error) from error


def write_named(path: Path, content: bytes, elsewhere: str) -> None:
    """Write this content to a file named by a person, using `written_whole`. Raises CotenantError."""
    with written_whole(path, elsewhere) as place:
        place.write_bytes(content)


@contextmanager
def written_whole(path: Path, elsewhere: str) -> Iterator[Path]:
    """Yield a temporary path for a file named by a person, and rename it when it is complete.

    For a device or a pipe yield the path itself, which root could otherwise replace by a file. A link stays, and leads
    to the new file. Raises CotenantError with the remedy `elsewhere` if the file cannot be written.
    """
    place = path
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if path.exists() and not path.is_file():
            yield path
            return
        place, path = path.parent, Path(os.path.realpath(path))
        with Directory(path.parent) as directory, directory.written(path.name) as temporary:
            yield path.with_name(temporary)
    except OSError as error:
        raise cannot_write(place, error, elsewhere) from error


def prepare_directory(directory: Path, elsewhere: str = OTHER_DIRECTORY) -> None:
    """Make `directory` and test that a file can be written there. Raises CotenantError."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as probe:
            probe.write(b"\0" * PROBE_BYTES)
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        raise cannot_write(directory, error, elsewhere) from error


def check_place(directory: Path, elsewhere: str = OTHER_DIRECTORY) -> None:
    """Raise CotenantError if `directory` can neither be written to nor made; make no directory."""
    there = directory
    while not there.exists() and there != there.parent:
        there = there.parent
    number = errno.ENOTDIR if not there.is_dir() else 0 if os.access(there, os.W_OK | os.X_OK) else errno.EACCES
    if number:
        raise cannot_write(directory, OSError(number, os.strerror(number)), elsewhere)


def cannot_write(directory: Path | Directory, error: OSError, elsewhere: str = OTHER_DIRECTORY) -> CotenantError:
    """Return the error for a directory in which no file can be written."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    full = "Free some space there. " if error.errno in FULL else ""
    return CotenantError(f"Nothing can be written to {directory}: {reason}.", full + elsewhere)


def launch_line(position: int, launches: int, outcomes: Sequence[str], minutes: float, command: str) -> str:
    """Return the summary's line on a launch by its tenants' outcomes, in the original's exact form.

    An interrupted launch is called interrupted, not failed.
    """
    failed = sum(outcome not in ("completed", INTERRUPTED) for outcome in outcomes)
    count = f"{failed:2d}/{len(outcomes):2d}" if failed else "  /  "
    verdict = "FAILED" if failed else INTERRUPTED if INTERRUPTED in outcomes else "PASSED"
    return f"[{position:2d}/{launches:2d}][{count}] {verdict} | {minutes:8.2f} MIN | {' '.join(command.splitlines())}"


def total_line(seconds: float) -> str:
    """Return the last line of the summary."""
    return f"Total Time {seconds:8.2f} s"


def append_summary(directory: Path | Directory, line: str) -> None:
    """Append a line to the directory's `summary.txt`. Raises CotenantError if that fails."""
    try:
        with opened(directory) as place, place.open(SUMMARY, "ab") as file:
            file.write(line.encode(errors="backslashreplace") + b"\n")
    except OSError as error:
        raise cannot_write(directory, error) from error


class Reserve:
    """Reserved room on the records' disk, so that no record is lost if the disk fills up while tenants run.

    It is a file without a name, which disappears with its process. When the disk refuses a file, the room is freed and
    the file written again; `refused` is the first such error.
    """

    def __init__(self, directory: Path) -> None:
        """Reserve the room. Raises CotenantError if there is too little, or an empty file cannot be made."""
        self.refused: CotenantError | None = None
        try:
            self._held = tempfile.TemporaryFile(dir=directory)
        except OSError as error:
            raise cannot_write(directory, error) from error
        try:
            os.posix_fallocate(self._held.fileno(), 0, RESERVE_BYTES)
        except OSError as error:
            # A limit on the size of files is no failure: records are smaller.
            if error.errno in FULL:
                self.close()
                raise _no_room(directory) from error

    def write(self, write: Callable[[], T]) -> T:
        """Return the result of `write`. Raises CotenantError if it fails even in the reserved room."""
        try:
            return write()
        except CotenantError as error:
            self.refused = self.refused or error
            self.give_back()
            return write()

    def give_back(self) -> None:
        """Free the reserved room."""
        self._held.truncate(0)

    def close(self) -> None:
        self._held.close()


def _no_room(directory: Path) -> CotenantError:
    free, needed = shutil.disk_usage(directory).free / 2**20, RESERVE_BYTES >> 20
    return CotenantError(
        f"{directory} has {free:.1f} MiB free, and the records of a launch may need {needed} MiB.",
        f"Free some space there. {OTHER_DIRECTORY}",
    )


def safe_part(text: str, limit_bytes: int = NAME_BYTES) -> str:
    """Return `text` as a part of a file's name: without separators and control characters, not hidden, not too long."""
    safe = "".join(char if char.isalnum() or char in "-_.+=@" else "_" for char in text)
    return ("_" + safe[1:] if safe.startswith(".") else safe).encode()[:limit_bytes].decode(errors="ignore")
