"""Room on the records' disk, held back: one that fills up while tenants run costs no record of theirs."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from cotenant.errors import CotenantError
from cotenant.results.record import Record
from cotenant.results.store import cannot_write, write_record

RESERVE_BYTES = 16 << 20
"""Of a launch of a hundred tenants, each with a hundred observations, the records take an eighth of it."""


class Reserve:
    """A file without a name: it ends with its process, however that ends."""

    def __init__(self, directory: Path) -> None:
        """Raises CotenantError where not even an empty file can be made."""
        self._directory = directory
        try:
            self._held = tempfile.TemporaryFile(dir=directory)
        except OSError as error:
            raise cannot_write(directory, error) from error
        # Of a disk that has less there is nothing to hold back, and a limit on a file's size may forbid it.
        with contextlib.suppress(OSError):
            os.posix_fallocate(self._held.fileno(), 0, RESERVE_BYTES)

    def write(self, records: Iterable[Record], time: datetime) -> None:
        """Write every record that can be, at last into the room held back; then raise the first CotenantError."""
        failures = []
        for record in records:
            try:
                write_record(self._directory, record, time)
            except CotenantError as error:
                failures.append(error)
                self.give_back()
                with contextlib.suppress(CotenantError):
                    write_record(self._directory, record, time)
        if failures:
            raise failures[0]

    def give_back(self) -> None:
        """Let others have the room."""
        self._held.truncate(0)

    def close(self) -> None:
        self._held.close()
