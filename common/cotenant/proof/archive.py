"""An archive: a suite's directory as one file (tar, zstandard), with the hash of everything in it.

Its first member is the manifest, the hash of every other one. Each member is a frame of its own, so that damage has a
place. Behind the last one lies the hash of all that is before it, as a frame that unpackers skip: `tar --zstd -xf`
reads the file as well. Its sender may want to harm its reader: anything but a plain file of a suite is refused.
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

from cotenant.decoding import decoded
from cotenant.errors import CotenantError
from cotenant.files import content_of
from cotenant.results.journal import FILE as JOURNAL
from cotenant.results.journal import Journal, Launched, read_journal
from cotenant.results.store import write_named
from cotenant.text import gib, printable

MANIFEST = "manifest.json"
SKIPPABLE = (0x184D2A50).to_bytes(4, "little")
"""Magic number of a frame that decoders skip (RFC 8878, 3.1.2)."""
SEAL_BYTES = 8 + 64
MOST_BYTES = 1 << 30
"""Most bytes that are unpacked, and held in memory: some fifty thousand records."""
READ_BYTES = 1 << 12
"""Bytes of a frame that are read at once: four bytes of a hostile one become 128 KiB (RFC 8878, 3.1.1.2)."""
END = bytes(2 * tarfile.BLOCKSIZE)
"""The bytes after the last member of a tar."""
RECORD = ".json"
SUFFIXES = (RECORD, ".resolved", ".unfinished")


class ArchiveManifest(msgspec.Struct, frozen=True):
    """The contents of an archive: the SHA-256 of each member by its name, and of the journal's last line."""

    cotenant: str
    made: str
    members: dict[str, str]
    journal_head: str
    schema: str = "cotenant-archive-1"


_MANIFEST = msgspec.json.Decoder(ArchiveManifest)


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The content of an archive. `damage`: the first place that is not as it was written, "" where all of it is.

    `members` are those before it, where the rest cannot be unpacked.
    """

    manifest: ArchiveManifest
    members: dict[str, bytes]
    damage: str


def make_archive(directory: Path, target: Path, version: str) -> tuple[ArchiveManifest, list[str]]:
    """Write the contents of a directory of records into `target`; also return the names of files that are left out.

    No launch in the journal wrote that: it is of another program, or of a launch that has not ended. Raises
    CotenantError without a journal, or a place.
    """
    journal = read_journal(directory)
    if not journal.entries:
        raise CotenantError(
            f"{directory} has no journal: no suite of this version has run there.",
            "Archive the directory that a run wrote (--outdir, by default the workspace's output).",
        )
    paths, left_out = _files(directory, journal)
    if sum(path.lstat().st_size for path in paths) > MOST_BYTES:
        raise _too_much(directory)
    members = {path.relative_to(directory).as_posix(): content_of(path) for path in paths}
    # A suite that still runs goes on writing: behind these lines are launches whose records are not here.
    members[JOURNAL] = b"".join(members[JOURNAL].splitlines(keepends=True)[: len(journal.entries)])
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    manifest = ArchiveManifest(version, datetime.now(UTC).isoformat(timespec="seconds"), hashes, journal.head)
    blocks = [_block(name, content) for name, content in {MANIFEST: msgspec.json.encode(manifest), **members}.items()]
    if sum(map(len, [*blocks, END])) > MOST_BYTES:
        raise _too_much(directory)
    write_named(target, packed([*blocks, END]), "-o names another file.")
    return manifest, left_out


def _too_much(directory: Path) -> CotenantError:
    return CotenantError(
        f"{directory} holds more than an archive may, {gib(MOST_BYTES)}.",
        "Runs with directories of their own (--outdir) have archives of their own.",
    )


def packed(blocks: Iterable[bytes]) -> bytes:
    """Return an archive's file of the blocks of its tar, each in a frame of its own."""
    compressor = zstandard.ZstdCompressor(level=10, write_checksum=True)
    frames = b"".join(map(compressor.compress, blocks))
    return frames + _seal(frames)


def unpack(path: Path) -> Unpacked:
    """Read an archive. Raises CotenantError for a file that is none, or one whose manifest cannot be read."""
    try:
        content = content_of(path, follow=True)
    except OSError as error:
        raise CotenantError(f"{path} cannot be read: {error.strerror}.") from error
    frames, members, broken = content[:-SEAL_BYTES], dict[str, bytes](), ""
    try:
        for name, member in _members(_blocks(frames)):
            members[name] = member
    except (zstandard.ZstdError, tarfile.TarError) as error:
        broken = str(error)
    try:
        manifest = decoded(_MANIFEST, members.pop(MANIFEST, b""))
    except msgspec.DecodeError as error:
        raise CotenantError(
            f"{path} is no archive, or one with a damaged manifest: {broken or error}.",
            "Have it sent again; `cotenant archive` makes archives.",
        ) from error
    if broken:
        place = next((name for name in manifest.members if name not in members), "its end")
        damage = f"{place}: {broken}"
    else:
        damage = _first_difference(manifest, members)
    if not damage and content[-SEAL_BYTES:] != _seal(frames):
        damage = "its members are whole, and its seal or its packing is not"
    return Unpacked(manifest, members, damage)


def _files(directory: Path, journal: Journal) -> tuple[list[Path], list[str]]:
    """Return the files of a directory of records, in order, and those named so that no launch wrote; no link."""
    known = {name for entry in journal.entries if isinstance(entry, Launched) for name in entry.records}
    files, left_out = list[Path](), list[str]()
    for path in sorted([*directory.iterdir(), *(directory / "logs").glob("*")]):
        name = path.relative_to(directory).as_posix()
        if not _belongs(name) or not stat.S_ISREG(path.lstat().st_mode):
            continue
        if path.suffix == RECORD and name not in known:
            left_out.append(name)
        else:
            files.append(path)
    return files, left_out


def _belongs(name: str) -> bool:
    """Tell whether a member of this name is part of an archive: nothing hidden, and no path that leaves it."""
    folder, _, file = name.rpartition("/")
    if folder == "logs":
        return file.endswith(".log") and not file.startswith(".")
    is_own = Path(file).suffix in SUFFIXES or file in (JOURNAL, "summary.txt")
    return not folder and is_own and not file.startswith(".") and file != MANIFEST


def _block(name: str, content: bytes) -> bytes:
    """Return a member as tar has it: its header, its content, and zeros to the end of the last block."""
    member = tarfile.TarInfo(name)
    member.size = len(content)
    return member.tobuf(tarfile.PAX_FORMAT) + content + bytes(-len(content) % tarfile.BLOCKSIZE)


def _blocks(frames: bytes) -> Iterator[bytes]:
    """Yield each frame's content. Raises ZstdError for one that is damaged, or for more than an archive may hold."""
    at, left = 0, MOST_BYTES
    while at < len(frames):
        header = zstandard.get_frame_parameters(frames[at : at + READ_BYTES])
        size = header.content_size
        if size > left:  # also where a frame does not tell its size
            raise zstandard.ZstdError(f"more than an archive may hold, {gib(MOST_BYTES)}")
        left -= size
        unpacker, parts, due = zstandard.ZstdDecompressor().decompressobj(), list[bytes](), size
        while not unpacker.eof:
            piece = frames[at : at + READ_BYTES]
            if not piece:
                raise zstandard.ZstdError("it is cut off")
            parts.append(unpacker.decompress(piece))
            at += len(piece) - len(unpacker.unused_data)
            due -= len(parts[-1])
            if due < 0:
                raise zstandard.ZstdError("a frame holds more than it says")
        if not header.has_checksum:  # else the checksum that follows is taken for the next frame's beginning
            raise zstandard.ZstdError("its frame says that it has no checksum")
        yield b"".join(parts)


def _members(blocks: Iterator[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents. Raises TarError for a member that no archive of ours holds."""
    names = set[str]()
    for block in blocks:
        if block == END:
            if next(blocks, None) is not None:
                raise tarfile.TarError("there is more behind it")
            return
        name, content = _member(block)
        if name in names or not (_belongs(name) or (name == MANIFEST and not names)):
            raise tarfile.TarError(f"in its place stands '{printable(name)}', which no archive has, or not twice")
        names.add(name)
        yield name, content
    raise tarfile.TarError("it is cut off")


def _member(block: bytes) -> tuple[str, bytes]:
    """Return the name and the content of the only member of a block. Raises TarError for anything else."""
    try:
        with tarfile.open(fileobj=io.BytesIO(block), mode="r:") as tar:
            member = tar.next()
            file = member and member.isreg() and not member.issparse() and tar.extractfile(member)
            if not (member and file) or tar.offset != len(block):
                raise tarfile.TarError(
                    f"in its place stands '{printable(member.name if member else '')}', no plain file"
                )
            return member.name, file.read()
    except (ValueError, OverflowError) as error:  # of headers that nobody writes
        raise tarfile.TarError(str(error)) from error


def _first_difference(manifest: ArchiveManifest, members: dict[str, bytes]) -> str:
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
