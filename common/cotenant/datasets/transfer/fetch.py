"""A file from the first of several sources that gives it whole and right."""

from __future__ import annotations

import time
from collections.abc import Sequence

from cotenant.datasets.archive import Archive, Received, WrongBytesError, verified
from cotenant.datasets.progress import say
from cotenant.datasets.transfer.attempt import Expected, Patience, transfer
from cotenant.datasets.transfer.part import Part
from cotenant.datasets.transfer.source import SourceError
from cotenant.errors import CotenantError

REMEDY = (
    "Start again to go on from what has arrived, give another place with --mirror URL (COTENANT_MIRROR),"
    " or put the file into a folder and name that with --from DIR (COTENANT_DATA_FROM)."
)


def fetch(
    archive: Archive,
    urls: Sequence[str],
    part: Part,
    first_received: str | None,
    patience: Patience,
    expected: Expected,
) -> Received:
    """Bring `archive` to `part.whole` and return what was received, at once where an earlier run did.

    Sources are tried in order; each is asked again, with growing waits, while that may help. Raises CotenantError
    where none gave the file, and OSError for what our own disk refuses; what has arrived is kept.
    """
    if (received := part.receipt()) is not None:
        return received
    reasons = []
    for url in urls:
        try:
            received = _fetch_from(url, archive, part, first_received, patience, expected)
        except SourceError as error:
            reasons.append(f"{url}: {error}")
            say(f"{archive.name}: given up {reasons[-1]}")
            continue
        part.complete(received)
        return received
    raise CotenantError(f"{archive.name} could not be had from any source: {'; '.join(reasons)}.", REMEDY)


def _fetch_from(
    url: str,
    archive: Archive,
    part: Part,
    first_received: str | None,
    patience: Patience,
    expected: Expected,
) -> Received:
    """Bring the whole file from this source and compare it; raises SourceError where it cannot be had here."""
    proven = archive.checksum is not None or first_received is not None
    failures = farthest = 0
    while True:
        try:
            began = transfer(url, part, archive, proven, patience, expected)
            return _verified(archive, part, url, first_received, began)
        except SourceError as error:
            grown = part.size() - farthest
            failures = 1 if grown >= patience.progress_bytes else failures + 1
            farthest += max(grown, 0)
            if error.final or failures >= patience.tries:
                raise
            wait_s = max(patience.first_wait_s * 2 ** (failures - 1), error.wait_s)
            wait_s = min(wait_s, patience.longest_wait_s)
            say(f"{archive.name}: {url}: {error}; again in {wait_s:.0f} s")
            time.sleep(wait_s)


def _verified(archive: Archive, part: Part, url: str, first_received: str | None, began: int) -> Received:
    """Return what was received; raises SourceError where it is not the file, and forgets it."""
    try:
        return verified(archive, part.path, url, first_received)
    except WrongBytesError as error:
        part.drop()
        # What was put together from two answers may be wrong though each was right: it deserves one whole answer.
        raise SourceError(f"what it sent is not the file: {error}", final=began == 0) from None
