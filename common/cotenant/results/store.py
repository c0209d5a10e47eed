"""Records on disk: written to a temporary name, synced, renamed, so that a record is whole or not there."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from cotenant.errors import CotenantError
from cotenant.results.record import Record, encode


def file_name(record: Record, time: datetime) -> str:
    """Return `{suite}.{job}.R{uid}.D{vcd}[.FAIL].{time}.json`."""
    failed = "" if record.completed else ".FAIL"
    stamp = time.strftime("%Y%m%d-%H%M%S-%f")
    return f"{record.suite}.{record.name}.R{record.run_id}.D{record.vcd}{failed}.{stamp}.json"


def write_record(directory: Path, record: Record, time: datetime) -> Path:
    """Write one record into `directory` and return its path. Raises CotenantError where it cannot be kept."""
    path = directory / file_name(record, time)
    write_whole(path, encode(record))
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
    """Give `path` this content at once or not at all. Raises CotenantError, with a remedy for a full disk."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_directory(path.parent)
    except OSError as error:
        raise cannot_write(path.parent, error) from error


def prepare_directory(directory: Path) -> None:
    """Make `directory` and prove that a file can be kept there. Raises CotenantError."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(directory, error) from error
    probe = directory / ".writable"
    write_whole(probe, b"\0" * 65536)
    probe.unlink()


def cannot_write(directory: Path, error: OSError) -> CotenantError:
    """Return the sentence for a directory in which nothing can be kept."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return CotenantError(
        f"Nothing can be written to {directory}: {reason}.",
        "Name another directory with --outdir, or free some space.",
    )


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
