"""The life of a set, fake or real: planned, made or fetched beside its place, checked, and put there.

The manifest comes last, then all is swapped in. An interruption loses no complete file and no byte that arrived.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from dataclasses import replace

from cotenant.datasets import fake, real
from cotenant.datasets.dataset import FAKE, FILE_NAME, REAL, FolderManifest, read_manifest, write_manifest
from cotenant.datasets.disk import ELSEWHERE, bytes_below, check_space, explained, locked, swap_in
from cotenant.datasets.progress import say
from cotenant.datasets.request import SetRequest
from cotenant.errors import EXIT_FOREIGN_FILES, CotenantError
from cotenant.protocol.messages import RUN_VARIABLE
from cotenant.text import size_words


class ForeignFilesError(CotenantError):
    """Foreign files are in a set's place. A set of ours is put there whole, with its manifest."""

    exit_status = EXIT_FOREIGN_FILES


def standing(request: SetRequest) -> FolderManifest | None:
    """Return the manifest of the set in its place, None if there is none or it does not satisfy the request."""
    manifest = read_manifest(request.folder)
    return manifest if manifest is not None and request.accepts(manifest) else None


def obtain(request: SetRequest) -> None:
    """Make or get the set, unless it stands there; raises CotenantError for faults that a person can mend.

    Nothing is written before it is known to be allowed, and to find room.
    """
    if _stands(request):
        return
    with explained(request.title, request.root):
        # Before anything is written: a person's own files may be in a read-only place.
        _refuse_foreign(request)
        words, lacking_bytes = _plan(request)
        free_bytes = check_space(request.root, request.title, lacking_bytes, request.smaller)
        request.lock.parent.mkdir(parents=True, exist_ok=True)
        with locked(request.lock, lambda: say(f"{request.dataset.name}: another process is at it, waiting ...")):
            # The process that held the lock may have obtained it.
            if not _stands(request):
                say(f"{request.title}: {words} in {request.folder} ({size_words(free_bytes)} free)")
                _build(request)


def added_bytes(request: SetRequest) -> int:
    """Return the bytes that obtaining the set adds; 0 for one that will be refused."""
    if standing(request) is None:
        with suppress(CotenantError):
            return _plan(request)[1]
    return 0


def _plan(request: SetRequest) -> tuple[str, int]:
    """Return the steps in words, and the bytes they add to the remains of killed runs, which are used or removed.

    Raises CotenantError for a real set that may not be got.
    """
    words, written_bytes = fake.plan(request) if request.kind == FAKE else real.plan(request)
    return words, max(written_bytes - sum(map(bytes_below, request.leftovers())), 0)


def _stands(request: SetRequest) -> bool:
    """Return whether the set is in its place and satisfies the request; print it if so, outside of a runner."""
    manifest = standing(request)
    # A runner asks once per benchmark, and several read the same set: its presence is no news then.
    if manifest is not None and RUN_VARIABLE not in os.environ:
        content = manifest.size if manifest.kind == FAKE else f"real, {manifest.half}"
        say(f"{request.dataset.name}: present ({content}) in {request.folder}")
    return manifest is not None


def _refuse_foreign(request: SetRequest) -> None:
    """Raise CotenantError if the set's folder holds files that this one must not replace.

    These are foreign files (ForeignFilesError), which may be a person's own, and a real set if a fake one is
    requested.
    """
    folder, manifest = request.folder, read_manifest(request.folder)
    if folder.is_symlink():
        raise ForeignFilesError(
            f"{folder} cannot be used as a folder: it is a symbolic link, and what it leads to may be your own.",
            f"Move it away, or {ELSEWHERE}.",
        )
    if manifest is not None and manifest.name == request.dataset.name:
        if manifest.kind == FAKE or request.kind == REAL:
            return
        raise CotenantError(
            f"{folder} holds the real set, which a fake one never replaces.",
            f"Use it with FAKE_DATASET=0, or {ELSEWHERE} for fake sets.",
        )
    if folder.exists() and any(folder.iterdir()):
        ready = ", then name it with --from DIR if it is the set" if request.kind == REAL else ""
        # A manifest that cannot be read may be ours, and says nothing of the files.
        problem = CotenantError if (folder / FILE_NAME).exists() else ForeignFilesError
        raise problem(
            f"{folder} holds files without a manifest of this set, so they may be your own.",
            f"Move the folder away{ready}, or {ELSEWHERE}.",
        )


def _build(request: SetRequest) -> None:
    """Fill the staging folder, add the manifest once all else is on the disk, and swap the folder in."""
    start_s = time.monotonic()
    _refuse_foreign(request)
    before, staging = read_manifest(request.folder), request.staging
    for path in request.leftovers():
        if path != staging:
            shutil.rmtree(path)
    staging.mkdir(parents=True, exist_ok=True)
    manifest = fake.fill(request) if request.kind == FAKE else real.fill(request)
    files = [path for path in staging.rglob("*") if path.is_file() and not path.is_symlink() and path.name != FILE_NAME]
    # One call for all: a million small files, each brought to the disk on its own, would take an hour.
    os.sync()
    size_bytes = sum(path.stat().st_size for path in files)
    write_manifest(staging, replace(manifest, files=len(files), bytes=size_bytes))
    swap_in(staging, request.folder)
    if request.kind == REAL:
        real.clear(request)
    for path in request.leftovers():
        shutil.rmtree(path)
    with suppress(OSError):
        staging.parent.rmdir()
    if before is not None and before.kind != request.kind:
        say(f"{request.dataset.name}: the fake set that stood there has been replaced")
    took_s = time.monotonic() - start_s
    say(f"{request.title}: complete in {request.folder}, {size_words(size_bytes)}, after {took_s:.1f} s")
