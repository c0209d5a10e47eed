"""A digest in the footer of a Parquet file: damage is known before anything decodes it.

Parquet has checksums of pages, which polars does not write. Of a file with wrong bytes its decoder makes other values,
columns that break whatever reads them, or the end of the process. The digest is one more entry of the file's key-value
metadata, so that any reader of Parquet reads the file: SHA-256 of the file with zeros in the digest's place.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import BinaryIO

_MARK = b"cotenant.sha256:"
_ZEROS = b"0" * 64
METADATA = {"cotenant.seal": (_MARK + _ZEROS).decode()}
"""What a file has to be written with, to be sealed afterwards."""
UNSEALED = "it has no seal: it is cut off, or not of `cotenant export` (rows of other programs are read as JSON lines)"
CHANGED = "its seal says that it was changed after it was exported"
_MAGIC = b"PAR1"
_END_BYTES = 8
"""The footer's length in four bytes, least first, and the magic number."""
_CHUNK_BYTES = 1 << 20


def seal(path: Path) -> None:
    """Write the digest of a file with METADATA into it. Raises OSError, and ValueError where it has none."""
    with path.open("r+b") as file:
        at = _place(file)
        if at is None:
            raise ValueError(f"{path} was written without METADATA")
        digest = _digest(file, at)
        file.seek(at)
        file.write(digest)


def broken_seal(path: Path) -> str | None:
    """Return what is wrong with a Parquet file's seal, or None where it is whole. Raises OSError."""
    with path.open("rb") as file:
        at = _place(file)
        if at is None:
            return UNSEALED
        digest = _digest(file, at)
        file.seek(at)
        return None if file.read(len(_ZEROS)) == digest else CHANGED


def _place(file: BinaryIO) -> int | None:
    """Return where the digest begins, None in a file without one."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_BYTES))
    end = file.read()
    length = int.from_bytes(end[:4], "little") + _END_BYTES
    if not end.endswith(_MAGIC) or length > size:
        return None
    file.seek(size - length)
    found = file.read().rfind(_MARK)
    return None if found < 0 else size - length + found + len(_MARK)


def _digest(file: BinaryIO, at: int) -> bytes:
    """Return the digest of the whole file, with zeros at its own place."""
    found = hashlib.sha256()
    file.seek(0)
    left = at
    while left and (chunk := file.read(min(left, _CHUNK_BYTES))):
        found.update(chunk)
        left -= len(chunk)
    found.update(_ZEROS)
    file.seek(at + len(_ZEROS))
    while chunk := file.read(_CHUNK_BYTES):
        found.update(chunk)
    return found.hexdigest().encode()
