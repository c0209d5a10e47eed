"""Gets real sets: archives from a folder, a mirror or their publisher, verified, laid out beside the set's place.

The manifest comes last, then all is swapped in. An interruption loses no byte that arrived.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from cotenant.datasets.archive import Received
from cotenant.datasets.files import make_folder, swap_in, sync_folder
from cotenant.datasets.local import Found, adopt, checked
from cotenant.datasets.lock import give_up, locked
from cotenant.datasets.maker import SIZES
from cotenant.datasets.manifest import FAKE, REAL, Manifest, read_manifest, write_manifest
from cotenant.datasets.problems import check_space, explained, refuse_foreign
from cotenant.datasets.progress import say
from cotenant.datasets.real.order import RealOrder
from cotenant.datasets.real.plan import plan, smaller
from cotenant.datasets.real.real_set import ALL
from cotenant.datasets.transfer.attempt import Patience
from cotenant.datasets.transfer.fetch import fetch
from cotenant.datasets.transfer.part import Part
from cotenant.datasets.transfer.source import sources
from cotenant.datasets.unpacking import DamagedArchiveError
from cotenant.errors import CotenantError
from cotenant.protocol.messages import RUN_VARIABLE

PATIENCE = Patience()


def obtain(order: RealOrder, patience: Patience = PATIENCE) -> None:
    """Get the real set, unless it stands there in this half or whole; raises CotenantError for what can be mended.

    Nothing is written before it is known to be allowed, and to find room.
    """
    if _stands(order):
        # What a run that was killed at its very end left. Not ours to insist on: another may be at work.
        with suppress(OSError):
            if order.leftovers() or order.arriving.exists():
                with locked(order.lock, give_up):
                    _clear(order)
        return
    with explained(order.words, order.root):
        refuse_foreign(order.folder, order.real.name, read_manifest(order.folder), REAL)
        found = plan(order)
        order.root.mkdir(parents=True, exist_ok=True)
        make_folder(order.lock.parent)
        with locked(order.lock, lambda: say(f"{order.real.name}: another process is getting it, waiting ...")):
            # The process that held the lock may have got it.
            if not _stands(order):
                _obtain(order, found, patience)


def standing(order: RealOrder) -> Manifest | None:
    """Return the manifest of the real set, if it stands there in this half or whole."""
    manifest = read_manifest(order.folder)
    if manifest is None or (manifest.name, manifest.kind) != (order.real.name, REAL):
        return None
    return manifest if manifest.version == order.real.version and manifest.half in (order.half, ALL) else None


def _stands(order: RealOrder) -> bool:
    """Tell whether the real set stands there, and say so."""
    manifest = standing(order)
    # A runner asks once per benchmark, and several read the same set: that it is there is no news then.
    if manifest is not None and RUN_VARIABLE not in os.environ:
        say(f"{order.real.name}: present (real, {manifest.half}) in {order.folder}")
    return manifest is not None


def _obtain(order: RealOrder, found: Found, patience: Patience) -> None:
    """Get the archives, lay them out, complete the set with its manifest, and swap it in."""
    start_s = time.monotonic()
    before = read_manifest(order.folder)
    refuse_foreign(order.folder, order.real.name, before, REAL)
    make_folder(order.staging.parent)
    _clear_staging(order)
    make_folder(order.staging)
    sources = {one.file: one for one in before.sources} if before is not None else {}
    if found.unpacked is not None:
        splits = _adopted(order, found.unpacked)
    else:
        sources |= {one.file: one for one in _received(order, found, sources, patience)}
        splits = _laid_out(order, found)
    _complete(order, splits, tuple(sources.values()), found.unpacked)
    if before is not None and before.kind == FAKE:
        say(f"{order.real.name}: the fake set that stood there has been replaced")
    say(f"{order.words}: complete in {order.folder}, after {time.monotonic() - start_s:.1f} s")


def _received(order: RealOrder, found: Found, earlier: Mapping[str, Received], patience: Patience) -> list[Received]:
    """Get every archive that is not there, and compare those that are."""
    make_folder(order.arriving.parent)
    make_folder(order.arriving)
    every = []
    for archive in order.wanted.archives:
        first = earlier[archive.name].sha256 if archive.name in earlier else None
        if archive.name in found.archives:
            received = checked(archive, found.archives[archive.name], first)
        else:
            urls = sources(archive, order.real.name, order.mirror)
            part = Part(order.arriving, archive.name)
            received = fetch(archive, urls, part, first, patience, lambda size: _expect(order, size))
        if received.verified_by is None:
            say(
                f"{archive.name}: could not be verified, as nobody is known to have recorded a checksum of it;"
                f" its sha256, {received.sha256}, is kept in the manifest, and later runs compare with it"
            )
        every.append(received)
    return every


def _expect(order: RealOrder, size_bytes: int) -> None:
    """Raise CotenantError where what a server announces finds no room."""
    check_space(order.root, order.words, size_bytes + order.wanted.unpacked_bytes, smaller(order))


def _adopted(order: RealOrder, source: Path) -> dict[str, int]:
    """Bring a person's unpacked set to the staging folder, and return its items per split."""
    adopt(source, order.wanted, order.staging)
    try:
        return order.wanted.count(order.staging)
    except DamagedArchiveError as error:
        raise CotenantError(f"{source} {error}.", "Name another folder with --from DIR.") from error


def _laid_out(order: RealOrder, found: Found) -> dict[str, int]:
    """Lay the archives out, and return the items per split; an archive that proves to be wrong is forgotten."""
    parts = {archive: Part(order.arriving, archive.name) for archive in order.wanted.archives}
    paths = {archive.name: found.archives.get(archive.name, part.whole) for archive, part in parts.items()}
    try:
        order.wanted.lay_out(paths, order.staging)
        lacking = [path for path in order.wanted.paths if not (order.staging / path).exists()]
        if lacking:
            raise DamagedArchiveError(f"lacks {', '.join(lacking)}")
        return order.wanted.count(order.staging)
    except DamagedArchiveError as error:
        _clear_staging(order)
        # What has the recorded checksum would come again as it is.
        doubtful = [a for a in parts if a.checksum is None and a.name not in found.archives]
        for archive in doubtful:
            parts[archive].reject()
        raise CotenantError(
            f"{order.words} cannot be unpacked: of {', '.join(paths)} one {error}.",
            f"{', '.join(a.name for a in doubtful)} was removed: start again, with another --mirror URL or --from DIR."
            if doubtful
            else "Look whether the files are those of the sources in docs/datasets.md, and report it if they are.",
        ) from error


def _complete(
    order: RealOrder, splits: Mapping[str, int], sources: tuple[Received, ...], unpacked: Path | None
) -> None:
    """Write the manifest once all else is on the disk, then put the set in its place."""
    for name, target in order.wanted.links.items():
        (order.staging / name).symlink_to(target)
    sizes = [path.stat().st_size for path in order.staging.rglob("*") if path.is_file() and not path.is_symlink()]
    # One call for all: a million small files, each brought to the disk on its own, would take an hour.
    os.sync()
    manifest = Manifest(
        name=order.real.name,
        size=SIZES[-1],
        kind=REAL,
        seed=0,
        version=order.real.version,
        files=len(sizes),
        bytes=sum(sizes),
        splits=splits,
        half=order.half,
        sources=sources,
        taken_from=None if unpacked is None else str(unpacked),
    )
    write_manifest(order.staging, manifest)
    sync_folder(order.staging)
    swap_in(order.staging, order.folder)
    _clear(order)


def _clear_staging(order: RealOrder) -> None:
    for path in order.leftovers():
        shutil.rmtree(path)


def _clear(order: RealOrder) -> None:
    """Remove what was needed until the set stood; what has arrived for its other half stays."""
    _clear_staging(order)
    for archive in order.wanted.archives:
        Part(order.arriving, archive.name).reject()
    for folder in (order.arriving, order.arriving.parent, order.staging.parent):
        with suppress(OSError):
            folder.rmdir()
