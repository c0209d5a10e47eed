"""Files of results: written to a temporary name, synced, then named, so that a record is whole or not there.

Beside the records lies summary.txt: a line per launch, appended while the suite runs, and a last one with the total.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

from cotenant.errors import CotenantError
from cotenant.files import sync_name
from cotenant.results.record import INTERRUPTED, Record, encode

NAME_BYTES = 255
PROBE_BYTES = 65536
RESERVE_BYTES = 16 << 20
"""Of a launch of a hundred tenants, each with a hundred observations, the records take an eighth of it."""
OTHER_DIRECTORY = "--outdir names another directory; for a benchmark alone, --report does."


def file_name(record: Record, time: datetime) -> str:
    """Return `{suite}.{job}.R{uid}.D{vcd}[.FAIL].{time}.json`, which any file system takes."""
    failed = "" if record.completed else ".FAIL"
    end = f".R{record.run_id}.D{record.vcd}{failed}.{time.strftime('%Y%m%d-%H%M%S-%f')}.json"
    each = (NAME_BYTES - len(end.encode()) - 1) // 2
    return f"{_safe(record.suite, each)}.{_safe(record.name, each)}{end}"


def write_record(directory: Path, record: Record, time: datetime) -> Path:
    """Write one record into `directory` and return its path. Raises CotenantError where it cannot be kept.

    Tenants that share a device end at the same time under the same name: the later one's time is a microsecond later.
    """
    content = encode(record)
    while True:
        path = directory / file_name(record, time)
        try:
            with _temporary(path, _name_new) as temporary:
                temporary.write_bytes(content)
        except FileExistsError:
            time += timedelta(microseconds=1)
        except OSError as error:
            raise cannot_write(directory, error) from error
        else:
            return path


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
    try:
        with _temporary(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise cannot_write(path.parent, error) from error


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
        with _temporary(path) as temporary:
            yield temporary
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


def cannot_write(directory: Path, error: OSError, elsewhere: str = OTHER_DIRECTORY) -> CotenantError:
    """Return the sentence for a directory in which nothing can be kept."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    full = "Free some space there. " if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
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


def append_summary(directory: Path, line: str) -> None:
    """Append a line to the directory's `summary.txt`. Raises CotenantError where that cannot be written."""
    try:
        with (directory / "summary.txt").open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(line + "\n")
    except OSError as error:
        raise cannot_write(directory, error) from error


class Reserve:
    """Room on the records' disk, held back: one that fills up while tenants run costs no record of theirs.

    It is a file without a name, which ends with its process, however that ends.
    """

    def __init__(self, directory: Path) -> None:
        """Raises CotenantError where not even an empty file can be made."""
        self._directory = directory
        try:
            self._held = tempfile.TemporaryFile(dir=directory)
        except OSError as error:
            raise cannot_write(directory, error) from error
        # Of a disk that has less there is nothing to hold back, and a limit on a file's size may forbid it.
        with suppress(OSError):
            os.posix_fallocate(self._held.fileno(), 0, RESERVE_BYTES)

    def write(self, records: Iterable[Record], time: datetime) -> list[Path]:
        """Write every record that can be, at last into the room held back, and return their files.

        Raises the first CotenantError then.
        """
        first, paths = None, []
        for record in records:
            try:
                paths.append(write_record(self._directory, record, time))
            except CotenantError as error:
                first = first or error
                self.give_back()
                with suppress(CotenantError):
                    write_record(self._directory, record, time)
        if first is not None:
            raise first
        return paths

    def give_back(self) -> None:
        """Let others have the room."""
        self._held.truncate(0)

    def close(self) -> None:
        self._held.close()


@contextmanager
def _temporary(path: Path, name: Callable[[Path, Path], object] = Path.rename) -> Iterator[Path]:
    """Give the path of a file to be written beside `path`, sync it, and then `name` it. Raises OSError."""
    # Not made from the name, which may be as long as a name can be. Whose it is, its number says: who clears up after
    # a killed writer leaves those of others alone.
    temporary = path.with_name(f".{os.getpid()}-{os.urandom(8).hex()}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        name(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_name(path)


def _name_new(temporary: Path, path: Path) -> None:
    """Name a file unless the name is taken. Raises FileExistsError."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links: between these two lines somebody else may take the name.
        if path.exists():
            raise FileExistsError(path) from None
        temporary.rename(path)


def _safe(text: str, limit_bytes: int) -> str:
    """Return `text` for a part of a file's name: no separators, no control characters, not hidden, not too long."""
    safe = "".join(char if char.isalnum() or char in "-_.+=@" else "_" for char in text)
    return ("_" + safe[1:] if safe.startswith(".") else safe).encode()[:limit_bytes].decode(errors="ignore")
