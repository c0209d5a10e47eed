"""Gets real sets: archives, or the unpacked set, out of a person's own folder, else archives from a server.

A person's files are never changed. Sets come out of archives that were compared with their checksums.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from cotenant.datasets.dataset import (
    ALL,
    FAKE,
    RAW,
    REAL,
    SIZES,
    Archive,
    FolderManifest,
    Half,
    Received,
    read_manifest,
)
from cotenant.datasets.disk import existing, file_size
from cotenant.datasets.fetch import WrongBytesError, fetch, refuse_no_curl, sources, verified
from cotenant.datasets.progress import say
from cotenant.datasets.request import SetRequest
from cotenant.datasets.unpack import DamagedArchiveError, unpack
from cotenant.errors import CotenantError
from cotenant.text import size_words

UNASKED_BYTES = 2_000_000_000
"""More bytes than this are written only on request."""


def plan(request: SetRequest) -> tuple[str, int]:
    """Return the steps in words, and the bytes that they write. Raises CotenantError if they are not allowed."""
    half, dataset = request.wanted, request.dataset
    local_archives, unpacked = _own_files(request)
    if unpacked is not None:
        copied_bytes = 0 if _same_disk(unpacked, request.root) else half.unpacked_bytes
        _refuse_large(request, copied_bytes)
        return f"taken from {unpacked}, to stand", copied_bytes
    absent = [archive for archive in half.archives if archive.name not in local_archives]
    if absent and dataset.gated is not None:
        raise CotenantError(
            f"{dataset.name} is never downloaded: its owners give it out on request, and"
            f" {', '.join(archive.name for archive in absent)} would be needed.",
            f"Ask at {dataset.gated}, then name the folder of these files with --from DIR (COTENANT_DATA_FROM).",
        )
    fetched_bytes = sum(archive.size_bytes for archive in absent)
    arrived = sum(min(file_size(request.arriving / archive.name), archive.size_bytes) for archive in absent)
    _refuse_large(request, fetched_bytes + half.unpacked_bytes)
    refuse_no_curl(absent)
    fetching = f"{size_words(fetched_bytes)} to fetch ({size_words(arrived)} there)"
    return f"{fetching}, about {size_words(half.unpacked_bytes)}", fetched_bytes - arrived + half.unpacked_bytes


def fill(request: SetRequest) -> FolderManifest:
    """Lay the half out in the staging folder, and return its manifest."""
    half, dataset, staging = request.wanted, request.dataset, request.staging
    local_archives, unpacked = _own_files(request)
    # Files that a killed run unpacked are not taken over: its archives are kept.
    shutil.rmtree(staging)
    staging.mkdir()
    received: tuple[Received, ...] = ()
    if unpacked is not None:
        adopt(unpacked, half, staging)
        try:
            splits = dataset.check(staging)
        except DamagedArchiveError as error:
            raise CotenantError(f"{unpacked} {error}.", "Name another folder with --from DIR.") from error
    else:
        request.arriving.mkdir(parents=True, exist_ok=True)
        received = tuple(_received(request, archive, local_archives) for archive in half.archives)
        splits = _laid_out(request, local_archives)
    for name, target in half.links.items():
        (staging / name).symlink_to(target)
    return FolderManifest(
        dataset.name,
        SIZES[-1],
        REAL,
        dataset.version,
        splits,
        half=request.half or ALL,
        sources=received,
        taken_from=None if unpacked is None else str(unpacked),
    )


def clear(request: SetRequest) -> None:
    """Remove the archives of the half asked for; archives that only the other half needs stay."""
    for archive in request.wanted.archives:
        (request.arriving / archive.name).unlink(missing_ok=True)
    for folder in (request.arriving, request.arriving.parent):
        with suppress(OSError):
            folder.rmdir()


def _own_files(request: SetRequest) -> tuple[Mapping[str, Path], Path | None]:
    """Return a person's own files of the half: archives by their names, or the folder of the unpacked set.

    They are sought in the person's folder and in folders of the set's name below it; a fake set does not count.
    """
    local, half = request.local, request.wanted
    if local is None:
        return {}, None
    if not local.is_dir():
        raise CotenantError(f"{local}, where the data should come from, is no folder.", "Name another with --from DIR.")
    places = (local / request.dataset.name, local / request.dataset.folder, local)
    names = [archive.name for archive in half.archives]
    archives = {name: place / name for name in names for place in reversed(places) if (place / name).is_file()}
    if len(archives) < len(names):
        for place in places:
            manifest = read_manifest(place)
            # The links of a smaller half would look like the whole.
            ours = manifest is None or (manifest.kind != FAKE and request.accepts(manifest))
            if ours and all((place / path).exists() for path in half.paths):
                return {}, place
    return archives, None


def _same_disk(source: Path, root: Path) -> bool:
    return source.stat().st_dev == existing(root).stat().st_dev


def _refuse_large(request: SetRequest, written_bytes: int) -> None:
    """Raise CotenantError if more than UNASKED_BYTES would be written without a request for the full size."""
    if written_bytes > UNASKED_BYTES and request.size != SIZES[-1]:
        instead = f" {request.smaller} takes the smaller half." if request.smaller else ""
        raise CotenantError(
            f"{request.title} writes {size_words(written_bytes)} below {request.root}, and no more than"
            f" {size_words(UNASKED_BYTES)} are written without being asked.",
            f"Ask with --size full, or DATASET_SIZE=full.{instead}",
        )


def _received(request: SetRequest, archive: Archive, local_archives: Mapping[str, Path]) -> Received:
    """Get the archive unless it is there, and compare it with its checksum."""
    manifest = read_manifest(request.folder)
    for earlier in manifest.sources if manifest is not None else ():
        if archive.digest is None and earlier.file == archive.name:
            # It has no published digest, but an earlier run recorded one.
            archive = replace(archive, size_bytes=earlier.bytes, digest=earlier.sha256, recorded_by="an earlier run")
    if (path := local_archives.get(archive.name)) is None:
        received = fetch(
            archive, sources(archive, request.dataset.name, request.mirror), request.arriving / archive.name
        )
    else:
        try:
            received = verified(archive, path, str(path))
        except WrongBytesError as error:
            remedy = "Replace it, or move it away so that the file is sought elsewhere."
            raise CotenantError(f"{path} is not the file: {error}.", remedy) from None
    if received.verified_by is None:
        say(
            f"{archive.name}: could not be verified, as no recorded checksum of it is known; its sha256, "
            f"{received.sha256}, is kept in the manifest, and later runs compare with it"
        )
    return received


def _laid_out(request: SetRequest, local_archives: Mapping[str, Path]) -> dict[str, int]:
    """Unpack the archives, and return the items per split; an unverified one that proves to be wrong is removed."""
    half, dataset, staging = request.wanted, request.dataset, request.staging
    paths = [local_archives.get(archive.name, request.arriving / archive.name) for archive in half.archives]
    try:
        unpack(paths, staging, partial(dataset.place, half), half.unpacked_bytes, dataset.name)
        if dataset.prepare is not None:
            dataset.prepare(staging)
            shutil.rmtree(staging / RAW)
        lacking = [path for path in half.paths if not (staging / path).exists()]
        if lacking:
            raise DamagedArchiveError(f"lacks {', '.join(lacking)}")
        return dataset.check(staging)
    except DamagedArchiveError as error:
        # A file with the recorded checksum would be the same if it were fetched again.
        doubtful = [
            archive for archive in half.archives if archive.digest is None and archive.name not in local_archives
        ]
        for archive in doubtful:
            (request.arriving / archive.name).unlink()
        removed = ", ".join(archive.name for archive in doubtful)
        raise CotenantError(
            f"{request.title} cannot be unpacked: of {', '.join(path.name for path in paths)} one {error}.",
            f"{removed} was removed: start again, with another --mirror URL or --from DIR."
            if doubtful
            else "Compare the files with the sources in docs/datasets.md; if they are the same, report it.",
        ) from error


def adopt(source: Path, half: Half, target: Path) -> None:
    """Bring the files of an unpacked half to `target`, as hard links or copies."""
    for path in half.paths:
        if (source / path).is_file():
            _link_or_copy(str(source / path), str(target / path))
        else:
            shutil.copytree(source / path, target / path, copy_function=_link_or_copy)


def _link_or_copy(source: str, target: str) -> None:
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(os.path.realpath(source), target)
    except OSError:  # On another disk, on a file system without hard links, or for another person's file.
        shutil.copyfile(source, target)
