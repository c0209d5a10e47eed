"""The life of a set, fake or real: asked for, planned, made or fetched beside its place, checked, and put there.

The manifest comes last, then all is swapped in. An interruption loses no complete file and no byte that arrived.
"""

from __future__ import annotations

import os
import shutil
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from cotenant.datasets.dataset import FAKE, FILE_NAME, REAL, Dataset, Manifest, read_manifest, write_manifest
from cotenant.datasets.disk import (
    ELSEWHERE,
    bytes_below,
    check_space,
    explained,
    locked,
    make_folder,
    swap_in,
    sync_folder,
)
from cotenant.datasets.progress import say
from cotenant.errors import EXIT_FOREIGN_FILES, CotenantError
from cotenant.protocol.messages import RUN_VARIABLE
from cotenant.text import size_words


class ForeignFilesError(CotenantError):
    """Files that nobody here made stand in a set's place. A set of ours comes there whole, with its manifest."""

    exit_status = EXIT_FOREIGN_FILES


@dataclass(frozen=True)
class Request(ABC):
    """A set that is asked for, to stand below `root`."""

    kind: ClassVar[str]
    root: Path
    dataset: Dataset
    size: str

    @property
    def folder(self) -> Path:
        """Where the complete set stands."""
        return self.root / self.dataset.folder

    @property
    def lock(self) -> Path:
        """The file whose lock its one maker holds."""
        return self.root / ".locks" / self.dataset.name

    @property
    def staging(self) -> Path:
        """Where it is made."""
        return self.root / ".making" / f"{self.dataset.name}-{self.variant}"

    def leftovers(self, ending: str = "") -> list[Path]:
        """Return what runs left of this set, in any variant, where it is made."""
        making = self.staging.parent
        return [] if making.is_symlink() else list(making.glob(f"{self.dataset.name}-*{ending}"))

    @property
    @abstractmethod
    def variant(self) -> str:
        """All that decides the bytes, so that nothing else is taken over."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What is asked for, in words."""

    @property
    @abstractmethod
    def smaller(self) -> str | None:
        """How less would be asked for, where that is possible."""

    @abstractmethod
    def accepts(self, manifest: Manifest) -> bool:
        """Tell whether the set of this name and kind that stands there serves."""

    @abstractmethod
    def plan(self) -> tuple[str, int]:
        """Return what will be done, and the bytes it writes; raises CotenantError where that may not be."""

    @abstractmethod
    def fill(self) -> Manifest:
        """Put the set's files into the staging folder, and return its manifest, files and bytes yet to be counted."""

    @abstractmethod
    def clear(self) -> None:
        """Remove what was needed until the set stood."""


def standing(request: Request) -> Manifest | None:
    """Return the manifest of the set, if it stands there and serves."""
    manifest = read_manifest(request.folder)
    if manifest is None or (manifest.name, manifest.kind) != (request.dataset.name, request.kind):
        return None
    return manifest if request.accepts(manifest) else None


def obtain(request: Request) -> None:
    """Make or get the set, unless it stands there; raises CotenantError for what a person can mend.

    Nothing is written before it is known to be allowed, and to find room.
    """
    if _stands(request):
        # Of a run that was killed as it removed a set it had replaced. Another process may be at it.
        if replaced := request.leftovers(".old"):
            with suppress(OSError), locked(request.lock):
                _remove(request, replaced)
        return
    with explained(request.title, request.root):
        # Before anything is written: a person's own files may lie where nobody may write.
        _refuse_foreign(request)
        words, written_bytes = request.plan()
        free_bytes = check_space(request.root, request.title, _lacking(request, written_bytes), request.smaller)
        request.root.mkdir(parents=True, exist_ok=True)
        make_folder(request.lock.parent)
        with locked(request.lock, lambda: say(f"{request.dataset.name}: another process is at it, waiting ...")):
            # The process that held the lock may have obtained it.
            if not _stands(request):
                say(f"{request.title}: {words} in {request.folder} ({size_words(free_bytes)} free)")
                _build(request)


def needed_bytes(request: Request) -> int:
    """Return what obtaining the set writes beside what is there; 0 of one that will be refused."""
    if standing(request) is None:
        with suppress(CotenantError):
            return _lacking(request, request.plan()[1])
    return 0


def _lacking(request: Request, written_bytes: int) -> int:
    """Return what is left to write; what runs that were killed left is used, or removed before."""
    return max(written_bytes - sum(map(bytes_below, request.leftovers())), 0)


def _stands(request: Request) -> bool:
    """Tell whether the set stands there and serves, and print it."""
    manifest = standing(request)
    # A runner asks once per benchmark, and several read the same set: that it is there is no news then.
    if manifest is not None and RUN_VARIABLE not in os.environ:
        what = manifest.size if manifest.kind == FAKE else f"real, {manifest.half}"
        say(f"{request.dataset.name}: present ({what}) in {request.folder}")
    return manifest is not None


def _refuse_foreign(request: Request) -> None:
    """Raise CotenantError where the set's folder holds what this one must not replace.

    That is what nobody here made (ForeignFilesError), since it may be a person's own, and a real set, where a fake one
    is asked for.
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


def _build(request: Request) -> None:
    """Fill the staging folder, complete it with the manifest once all else is on the disk, and swap it in."""
    start_s = time.monotonic()
    _refuse_foreign(request)
    before, staging = read_manifest(request.folder), request.staging
    _remove(request, [path for path in request.leftovers() if path != staging])
    make_folder(staging.parent)
    make_folder(staging)
    manifest = request.fill()
    files = [path for path in staging.rglob("*") if path.is_file() and not path.is_symlink() and path.name != FILE_NAME]
    # One call for all: a million small files, each brought to the disk on its own, would take an hour.
    os.sync()
    size_bytes = sum(path.stat().st_size for path in files)
    write_manifest(staging, replace(manifest, files=len(files), bytes=size_bytes))
    sync_folder(staging)
    swap_in(staging, request.folder)
    request.clear()
    _remove(request, request.leftovers())
    if before is not None and before.kind != request.kind:
        say(f"{request.dataset.name}: the fake set that stood there has been replaced")
    took_s = time.monotonic() - start_s
    say(f"{request.title}: complete in {request.folder}, {size_words(size_bytes)}, after {took_s:.1f} s")


def _remove(request: Request, leftovers: list[Path]) -> None:
    for path in leftovers:
        shutil.rmtree(path)
    with suppress(OSError):
        request.staging.parent.rmdir()
