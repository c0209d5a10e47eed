"""A file on its way: what has arrived so far, and a note of where it came from, for the next run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from cotenant.datasets.archive import Received
from cotenant.datasets.files import complete_size, sync_folder, write_file


@dataclass(frozen=True, slots=True)
class Note:
    """Which file a part belongs to: its URL, its validator there, and its bytes in all, where they were said."""

    url: str
    validator: str | None
    total: int | None


@dataclass(frozen=True)
class Part:
    """What has arrived of the file that will be called `name` in `folder`.

    Its names end in `.arriving`, not in what other makers clear away.
    """

    folder: Path
    name: str

    @property
    def path(self) -> Path:
        """Where the bytes gather."""
        return self.folder / f"{self.name}.arriving"

    @property
    def whole(self) -> Path:
        """The verified file."""
        return self.folder / self.name

    @property
    def _note(self) -> Path:
        return self.folder / f"{self.name}.arriving.json"

    @property
    def _receipt(self) -> Path:
        return self.folder / f"{self.name}.received.json"

    def size(self) -> int:
        """Return how many bytes have arrived."""
        return complete_size(self.path) or 0

    def note(self) -> Note | None:
        """Return what is known of the file on its way; None where nothing can be made of it."""
        try:
            return Note(**json.loads(self._note.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def drop(self) -> None:
        """Forget what has arrived."""
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    @contextmanager
    def going_on(self, start: int, note: Note) -> Iterator[BinaryIO]:
        """Yield the file, at byte `start`, with all behind it cut off; the note is on the disk before a byte is."""
        if start == 0:
            self.drop()
        write_file(self._note, [json.dumps(asdict(note)).encode()])
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(self.path, flags, 0o666), "wb") as file:
            os.ftruncate(file.fileno(), start)
            file.seek(start)
            yield file

    def complete(self, received: Received) -> None:
        """Give the verified file its name, durably, with the receipt beside it."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        write_file(self._receipt, [json.dumps(asdict(received)).encode()])
        self.path.rename(self.whole)
        self._note.unlink(missing_ok=True)
        sync_folder(self.folder)

    def receipt(self) -> Received | None:
        """Return what an earlier run received and verified; None where the file is not there, or not that one."""
        try:
            received = Received(**json.loads(self._receipt.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None
        return received if received.bytes == complete_size(self.whole) else None

    def reject(self) -> None:
        """Forget the whole file, too."""
        self.drop()
        self._receipt.unlink(missing_ok=True)
        self.whole.unlink(missing_ok=True)
