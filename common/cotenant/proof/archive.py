"""An archive: what a suite left in a directory as one file (tar, zstandard), with the hash of everything in it.

Its first member is the manifest, the hash of every other one. Behind the compressed stream lies the hash of all that is
before it, as a frame that unpackers skip: `tar --zstd -xf` reads the file as well.
"""

from __future__ import annotations

import hashlib
import io
import stat
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import zstandard

from cotenant.errors import CotenantError
from cotenant.files import open_regular
from cotenant.results.journal import FILE as JOURNAL
from cotenant.results.journal import read_journal
from cotenant.results.store import write_named

MANIFEST = "manifest.json"
SKIPPABLE = (0x184D2A50).to_bytes(4, "little")
"""Magic number of a frame that decoders skip (RFC 8878, 3.1.2)."""
SEAL_BYTES = 8 + 64
MOST_BYTES = 16 << 30
"""Of what is unpacked: more than any suite leaves; a file that claims more was not made here."""
SUFFIXES = (".json", ".resolved", ".unfinished", ".challenge")


class Manifest(msgspec.Struct, frozen=True):
    """What an archive holds: the SHA-256 of each member by its name, and of the journal's last line."""

    cotenant: str
    made: str
    members: dict[str, str]
    journal_head: str
    schema: str = "cotenant-archive-1"


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The content of an archive. `damage`: the first place that is not as it was written, "" where all of it is."""

    manifest: Manifest
    members: dict[str, bytes]
    damage: str


def make_archive(directory: Path, target: Path, version: str) -> Manifest:
    """Write what a directory of records holds into `target`. Raises CotenantError without a journal, or a place."""
    journal = read_journal(directory)
    if not journal.entries:
        raise CotenantError(
            f"{directory} has no journal: no suite of this version has run there.",
            "Archive the directory that a run wrote (--outdir, by default the workspace's output).",
        )
    members = {path.relative_to(directory).as_posix(): _content(path) for path in _files(directory)}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    manifest = Manifest(version, datetime.now(UTC).isoformat(timespec="seconds"), hashes, journal.head)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in {MANIFEST: msgspec.json.encode(manifest), **members}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    packed = zstandard.ZstdCompressor(level=10, write_checksum=True).compress(stream.getvalue())
    write_named(target, packed + _seal(packed), "-o names another file.")
    return manifest


def unpack(path: Path) -> Unpacked:
    """Read an archive. Raises CotenantError for what is none, or is too damaged to be unpacked."""
    try:
        with open_regular(path, follow=True) as file:
            content = file.read()
    except OSError as error:
        raise CotenantError(f"{path} cannot be read: {error.strerror}.") from error
    packed = content[:-SEAL_BYTES]
    try:
        plain = zstandard.ZstdDecompressor().decompress(packed, max_output_size=MOST_BYTES)
        members = dict(_members(plain))
        manifest = msgspec.json.decode(members.pop(MANIFEST), type=Manifest)
    except (zstandard.ZstdError, tarfile.TarError, msgspec.MsgspecError, KeyError, MemoryError) as error:
        raise CotenantError(
            f"{path} is no archive, or a damaged one: {str(error) or type(error).__name__}.",
            "Have it sent again; `cotenant archive` makes archives.",
        ) from error
    damage = _first_difference(manifest, members)
    if not damage and content[-SEAL_BYTES:] != _seal(packed):
        damage = "its seal is not that of its content"
    return Unpacked(manifest, members, damage)


def _files(directory: Path) -> Iterator[Path]:
    """Yield what belongs to a directory of records, in order: no link, and nothing of other programs."""
    own = [path for path in directory.iterdir() if path.suffix in SUFFIXES or path.name in (JOURNAL, "summary.txt")]
    logs = (directory / "logs").glob("*.log")
    for path in sorted([*own, *logs]):
        if stat.S_ISREG(path.lstat().st_mode) and not path.name.startswith("."):
            yield path


def _content(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read()


def _members(plain: bytes) -> Iterable[tuple[str, bytes]]:
    """Yield names and contents. Raises TarError for what no archive of ours holds: links, names that come twice."""
    names = set[str]()
    with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as tar:
        for member in tar:
            if not member.isreg() or member.name in names:
                raise tarfile.TarError(f"member {member.name!r} is no file, or comes twice")
            names.add(member.name)
            file = tar.extractfile(member)
            assert file is not None
            yield member.name, file.read()


def _first_difference(manifest: Manifest, members: dict[str, bytes]) -> str:
    for name, digest in manifest.members.items():
        if name not in members:
            return f"{name} is missing"
        if hashlib.sha256(members[name]).hexdigest() != digest:
            return f"{name} is not what was archived"
    more = [name for name in members if name not in manifest.members]
    return f"{more[0]} was put in" if more else ""


def _seal(packed: bytes) -> bytes:
    digest = hashlib.sha256(packed).hexdigest().encode()
    return SKIPPABLE + len(digest).to_bytes(4, "little") + digest
