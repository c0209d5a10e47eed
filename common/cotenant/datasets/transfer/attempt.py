"""One attempt to get a file, or the rest of it, from one source."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from cotenant.datasets.archive import Archive
from cotenant.datasets.progress import shown_bytes
from cotenant.datasets.transfer.part import Note, Part
from cotenant.datasets.transfer.reply import NothingLeftError, Reply, asked
from cotenant.datasets.transfer.source import SourceError


@dataclass(frozen=True, slots=True)
class Patience:
    """When a source is slow, when it is given up, and how long is waited in between (seconds, doubled each time).

    An attempt that comes `progress_bytes` farther than any before is no failure: a long file may well come in pieces.
    """

    timeout_s: float = 30.0
    slowest_bytes_s: float = 1000.0
    tries: int = 5
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    progress_bytes: int = 1 << 20


Expected = Callable[[int], None]
"""Is told, before any is written, how many bytes will come, and raises where they find no room."""


def transfer(url: str, part: Part, archive: Archive, proven: bool, patience: Patience, expected: Expected) -> int:
    """Bring `part` to its end from `url` and return the byte at which this began; raises SourceError.

    `proven` says that a digest will be compared at the end: only then is a part continued from another source, or
    from a server that cannot say whether its file is still the same.
    """
    start, validator = _resumable(url, part, proven)
    if start and start == _end(part, archive):
        return start
    try:
        with asked(url, start, validator, patience.timeout_s) as reply:
            _check(reply, part, archive, start, validator)
            if reply.total is not None:
                expected(reply.total - reply.start)
            _receive(reply, url, part, archive, patience)
            return reply.start
    except NothingLeftError as error:
        if start and error.total in (None, start) and not archive.exact:
            return start
        part.drop()
        raise SourceError("it has fewer bytes than have arrived, so we begin again", final=False) from None


def _resumable(url: str, part: Part, proven: bool) -> tuple[int, str | None]:
    """Return the byte to go on from, and the validator that has to hold there."""
    note, size = part.note(), part.size()
    if note is None or not size:
        return 0, None
    if note.url == url and note.validator is not None:
        return size, note.validator
    return (size, None) if proven else (0, None)


def _end(part: Part, archive: Archive) -> int | None:
    """Return the bytes that the whole file is known to have."""
    if archive.exact:
        return archive.size_bytes
    note = part.note()
    return note.total if note else None


def _check(reply: Reply, part: Part, archive: Archive, start: int, validator: str | None) -> None:
    """Raise SourceError where what the source says cannot be the file that is wanted, or the one that was begun."""
    if reply.total is not None:
        if archive.exact and reply.total != archive.size_bytes:
            reason = f"it says that the file has {reply.total:,} bytes, and {archive.name} has {archive.size_bytes:,}"
            raise SourceError(reason, final=True)
        if reply.total > archive.most_bytes:
            reason = f"it says that the file has {reply.total:,} bytes, far more than the {archive.size_bytes:,} known"
            raise SourceError(reason, final=True)
    if reply.start == 0:
        return
    note = part.note()
    changed = validator is not None and reply.validator is not None and validator != reply.validator
    resized = note is not None and None not in (note.total, reply.total) and note.total != reply.total
    if changed or resized:
        part.drop()
        raise SourceError("its file has changed since we began, so we begin again", final=False)


def _receive(reply: Reply, url: str, part: Part, archive: Archive, patience: Patience) -> None:
    """Write what arrives; raises SourceError where it stalls, ends early or does not end."""
    known = archive.size_bytes if archive.exact else None
    total = reply.total if reply.total is not None else known
    most = total if total is not None else archive.most_bytes
    received = reply.start
    note = Note(url, reply.validator, total)
    with part.going_on(reply.start, note) as file, shown_bytes(archive.name, total or archive.size_bytes) as arrived:
        since_s, since_bytes = time.monotonic(), received
        while piece := reply.read():
            received += len(piece)
            if received > most:
                break
            file.write(piece)
            arrived(received)
            if (now_s := time.monotonic()) - since_s >= patience.timeout_s:
                if received - since_bytes < patience.slowest_bytes_s * patience.timeout_s:
                    raise SourceError("it has become too slow", final=False)
                since_s, since_bytes = now_s, received
    if received > most:
        part.drop()
        raise SourceError(f"it sends more than the {most:,} bytes of {archive.name}", final=True)
    if total is not None and received < total:
        raise SourceError(f"it ended after {received:,} of {total:,} bytes", final=False)
