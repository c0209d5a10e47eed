"""Files of results: written to a temporary name, synced, then named, so that a record is whole or not there.

Beside the records lies summary.txt: a line per launch, appended while the suite runs, and a last one with the total.
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
from cotenant.results.record import INTERRUPTED, Record, encode

T = TypeVar("T")

SUMMARY = "summary.txt"
FULL = (errno.ENOSPC, errno.EDQUOT)
NAME_BYTES = 255
PROBE_BYTES = 65536
RESERVE_BYTES = 16 << 20
"""The records of a launch of a hundred tenants, each with a hundred observations, take an eighth of it."""
TIME = "%Y%m%d-%H%M%S-%f"
"""The form of a record's end in its file's name."""
OTHER_DIRECTORY = "--outdir names another directory; for a benchmark alone, --report does."


def file_name(record: Record, time: datetime) -> str:
    """Return `{suite}.{job}.R{uid}.D{vcd}[.FAIL].{time}.json`, which any file system takes."""
    failed = "" if record.completed else ".FAIL"
    end = f".R{record.run_id}.D{record.vcd}{failed}.{time.strftime(TIME)}.json"
    each = (NAME_BYTES - len(end.encode()) - 1) // 2
    return f"{_safe(record.suite, each)}.{_safe(record.name, each)}{end}"


def write_record(directory: Path | Directory, record: Record, time: datetime) -> Path:
    """Write one record into `directory` and return its path. Raises CotenantError where it cannot be kept.

    Tenants that share a device end at the same time under the same name: the later one's time is a microsecond later.
    """
    content = encode(record)
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
    """Write one record where `--report` says: to that very file if it ends in `.json`, else into that directory."""
    if report.suffix != ".json":
        prepare_directory(report)
        return write_record(report, record, time)
    prepare_directory(report.parent)
    write_whole(report, encode(record))
    return report


def write_whole(path: Path, content: bytes) -> None:
    """Give a file of ours this content at once or not at all. Raises CotenantError, with a remedy for a full disk."""
    write_into(path.parent, path.name, content)


def write_into(directory: Path | Directory, name: str, content: bytes) -> None:
    """Do as `write_whole` in a directory."""
    try:
        with opened(directory) as place:
            place.write(name, content)
    except OSError as error:
        raise cannot_write(directory, error) from error


def write_named(path: Path, content: bytes, elsewhere: str) -> None:
    """Give a file that a person has named this content, as `whole` does. Raises CotenantError."""
    with whole(path, elsewhere) as place:
        place.write_bytes(content)


@contextmanager
def whole(path: Path, elsewhere: str) -> Iterator[Path]:
    """Give the temporary path of a file that a person has named, and name it when it is whole.

    A device or a pipe is given itself, as root could put a file in its place; a link stays, and leads to the file.
    Raises CotenantError where nothing can be kept, with `elsewhere`, the remedy that names another file.
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
    """Make `directory` and prove that a file can be kept there. Raises CotenantError."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as probe:
            probe.write(b"\0" * PROBE_BYTES)
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        raise cannot_write(directory, error, elsewhere) from error


def check_place(directory: Path, elsewhere: str = OTHER_DIRECTORY) -> None:
    """Raise CotenantError where `directory` can neither be written to nor made; make nothing."""
    there = directory
    while not there.exists() and there != there.parent:
        there = there.parent
    number = errno.ENOTDIR if not there.is_dir() else 0 if os.access(there, os.W_OK | os.X_OK) else errno.EACCES
    if number:
        raise cannot_write(directory, OSError(number, os.strerror(number)), elsewhere)


def cannot_write(directory: Path | Directory, error: OSError, elsewhere: str = OTHER_DIRECTORY) -> CotenantError:
    """Return the sentence for a directory in which nothing can be kept."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    full = "Free some space there. " if error.errno in FULL else ""
    return CotenantError(f"Nothing can be written to {directory}: {reason}.", full + elsewhere)


def launch_line(position: int, launches: int, outcomes: Sequence[str], minutes: float, command: str) -> str:
    """Return the line of one launch by its tenants' outcomes, in the original's exact form.

    One that was interrupted has not failed, and is called so.
    """
    failed = sum(outcome not in ("completed", INTERRUPTED) for outcome in outcomes)
    count = f"{failed:2d}/{len(outcomes):2d}" if failed else "  /  "
    verdict = "FAILED" if failed else INTERRUPTED if INTERRUPTED in outcomes else "PASSED"
    return f"[{position:2d}/{launches:2d}][{count}] {verdict} | {minutes:8.2f} MIN | {' '.join(command.splitlines())}"


def total_line(seconds: float) -> str:
    """Return the suite's last line."""
    return f"Total Time {seconds:8.2f} s"


def append_summary(directory: Path | Directory, line: str) -> None:
    """Append a line to the directory's `summary.txt`. Raises CotenantError where that cannot be written."""
    try:
        with opened(directory) as place, place.open(SUMMARY, "ab") as file:
            file.write(line.encode(errors="backslashreplace") + b"\n")
    except OSError as error:
        raise cannot_write(directory, error) from error


class Reserve:
    """Room on the records' disk, held back: one that fills up while tenants run costs no record of theirs.

    It is a file without a name, which ends with its process, however that ends. A file that the disk refuses is written
    once more into this room, and `refused` is why.
    """

    def __init__(self, directory: Path) -> None:
        """Raises CotenantError where there is no such room, or not even an empty file can be made."""
        self.refused: CotenantError | None = None
        try:
            self._held = tempfile.TemporaryFile(dir=directory)
        except OSError as error:
            raise cannot_write(directory, error) from error
        try:
            os.posix_fallocate(self._held.fileno(), 0, RESERVE_BYTES)
        except OSError as error:
            # A limit on a file's size forbids no record, which is smaller.
            if error.errno in FULL:
                self.close()
                raise _no_room(directory) from error

    def write(self, write: Callable[[], T]) -> T:
        """Return the result of `write`. Raises CotenantError where it cannot write into the room held back, either."""
        try:
            return write()
        except CotenantError as error:
            self.refused = self.refused or error
            self.give_back()
            return write()

    def give_back(self) -> None:
        """Let others have the room."""
        self._held.truncate(0)

    def close(self) -> None:
        self._held.close()


def _no_room(directory: Path) -> CotenantError:
    free, needed = shutil.disk_usage(directory).free / 2**20, RESERVE_BYTES >> 20
    return CotenantError(
        f"{directory} has {free:.1f} MiB free, and the records of a launch may need {needed} MiB.",
        f"Free some space there. {OTHER_DIRECTORY}",
    )


def _safe(text: str, limit_bytes: int) -> str:
    """Return `text` for a part of a file's name: no separators, no control characters, not hidden, not too long."""
    safe = "".join(char if char.isalnum() or char in "-_.+=@" else "_" for char in text)
    return ("_" + safe[1:] if safe.startswith(".") else safe).encode()[:limit_bytes].decode(errors="ignore")
