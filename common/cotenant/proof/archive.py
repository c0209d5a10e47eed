"""An archive: the files of a suite's directory in one file (tar, zstandard), with the SHA-256 of each.

The hashes stand in the manifest, its first member. `tar --zstd -xf` unpacks it as well.
"""

from __future__ import annotations

import hashlib
import io
import stat
import tarfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import zstandard

from cotenant.decoding import decoded
from cotenant.errors import CotenantError
from cotenant.files import content_of
from cotenant.results.journal import FILE as JOURNAL
from cotenant.results.journal import Journal, read_journal
from cotenant.results.store import write_named
from cotenant.results.superseded import SUPERSEDED

MANIFEST = "manifest.json"
RECORD = ".json"
KEPT = (RECORD, ".resolved", ".unfinished", SUPERSEDED, ".log")


class ArchiveManifest(msgspec.Struct, frozen=True):
    """The contents of an archive: the SHA-256 of each member by its name, and of the journal's last line."""

    cotenant: str
    made: str
    members: dict[str, str]
    journal_head: str
    schema: str = "cotenant-archive-1"


_MANIFEST = msgspec.json.Decoder(ArchiveManifest)


def make_archive(directory: Path, target: Path, version: str) -> tuple[ArchiveManifest, list[str]]:
    """Write a directory's records, logs and journal into `target`; return the manifest and the records left out.

    These were written by no launch in the journal, but by another program or a launch that has not ended. Raises
    CotenantError if there is no journal or `target` cannot be written.
    """
    journal = read_journal(directory)
    if not journal.entries:
        raise CotenantError(
            f"{directory} has no journal: no suite of this version has run there.",
            "Archive the directory that a run wrote (--outdir, by default the workspace's output).",
        )
    paths, left_out = _files(directory, journal)
    members = {path.relative_to(directory).as_posix(): content_of(path) for path in paths}
    # A running suite may have appended lines since; their launches have no records here.
    members[JOURNAL] = b"".join(members[JOURNAL].splitlines(keepends=True)[: len(journal.entries)])
    hashes = {name: sha256(content) for name, content in members.items()}
    manifest = ArchiveManifest(version, datetime.now(UTC).isoformat(timespec="seconds"), hashes, journal.head)
    write_named(target, packed({MANIFEST: msgspec.json.encode(manifest), **members}), "-o names another file.")
    return manifest, left_out


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def packed(members: Mapping[str, bytes]) -> bytes:
    """Return a compressed tar of these members."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return zstandard.ZstdCompressor(level=10, write_checksum=True).compress(plain.getvalue())


def unpacked(path: Path) -> tuple[ArchiveManifest, dict[str, bytes]]:
    """Return the manifest and the other members of an archive, which is read into memory and written nowhere.

    Raises CotenantError for a file that is no archive, or cannot be unpacked.
    """
    members = dict[str, bytes]()
    try:
        plain = zstandard.ZstdDecompressor().stream_reader(content_of(path, follow=True), read_across_frames=True)
        with plain, tarfile.open(fileobj=plain, mode="r|") as tar:
            for member in tar:
                if (file := tar.extractfile(member)) is not None:
                    members[member.name] = file.read()
        manifest = decoded(_MANIFEST, members.pop(MANIFEST, b""))
    except OSError as error:
        raise CotenantError(f"{path} cannot be read: {error.strerror}.") from error
    except (zstandard.ZstdError, tarfile.TarError, msgspec.DecodeError, ValueError, OverflowError) as error:
        raise CotenantError(
            f"{path} is no archive, or a damaged one: {error}.",
            "Have it sent again; `cotenant archive` makes archives.",
        ) from error
    return manifest, members


def _files(directory: Path, journal: Journal) -> tuple[list[Path], list[str]]:
    """Return the files to archive, sorted, and the records that no launch wrote; skip links and hidden files."""
    written, files, left_out = journal.records, list[Path](), list[str]()
    for path in sorted([*directory.iterdir(), *(directory / "logs").glob("*.log")]):
        name = path.relative_to(directory).as_posix()
        is_own = path.suffix in KEPT or name in (JOURNAL, "summary.txt")
        if not is_own or path.name.startswith(".") or not stat.S_ISREG(path.lstat().st_mode):
            continue
        if path.suffix == RECORD and name not in written:
            left_out.append(name)
        else:
            files.append(path)
    return files, left_out
