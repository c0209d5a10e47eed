"""One file of the loopback's server, and how the tests of transfers ask for it."""

import hashlib

from cotenant.datasets.archive import Archive, Checksum, Received
from cotenant.datasets.transfer.attempt import Patience
from cotenant.datasets.transfer.fetch import fetch
from cotenant.datasets.transfer.part import Note, Part

CONTENT = bytes(range(256)) * 400  # 102,400 bytes, more than one piece of a socket
OTHER = bytes(reversed(CONTENT))
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PUBLISHED = Checksum("sha256", SHA256, "a library")
# A loaded machine may take long to answer; only those who test stalling wait less.
IMPATIENT = Patience(timeout_s=20, tries=3, first_wait_s=0.001, longest_wait_s=0.01, progress_bytes=1)


def archive(*urls: str, checksum: Checksum | None = PUBLISHED, exact: bool = True) -> Archive:
    return Archive("file", urls, len(CONTENT), exact, checksum)


def get(wanted: Archive, part: Part, first: str | None = None, patience: Patience = IMPATIENT) -> Received:
    return fetch(wanted, wanted.urls, part, first, patience, lambda size: None)


def leave(part: Part, content: bytes, url: str, validator: str | None = None) -> None:
    """Leave a part as a run that ended does."""
    with part.going_on(0, Note(url, validator, None)) as file:
        file.write(content)


def ranges(server) -> list[str | None]:
    return [asked.get("Range") for _, asked in server.requests]


def names(part: Part) -> list[str]:
    return sorted(path.name for path in part.folder.iterdir())
