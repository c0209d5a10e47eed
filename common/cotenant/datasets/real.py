"""Gets real sets: archives, or the unpacked set, out of a person's own folder, else archives from a server.

A person's files are never changed. Sets come out of archives that were compared with what is known of them.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from cotenant.datasets.dataset import (
    ALL,
    FAKE,
    RAW,
    REAL,
    SIZES,
    VALIDATION,
    Archive,
    Half,
    Manifest,
    Received,
    read_manifest,
)
from cotenant.datasets.disk import make_folder
from cotenant.datasets.fetch import (
    WrongBytesError,
    arrived_bytes,
    fetch,
    forget,
    refuse_no_curl,
    sources,
    verified,
)
from cotenant.datasets.obtain import Request
from cotenant.datasets.progress import say
from cotenant.datasets.unpack import DamagedArchiveError, unpack
from cotenant.errors import CotenantError
from cotenant.text import size_words

UNASKED_BYTES = 2_000_000_000
"""More is written for nobody who has not asked for it."""
# Where a second name of a file cannot be had: other disks, file systems without them, files of other people.
_NO_SECOND_NAME = (errno.EXDEV, errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.EMLINK)


@dataclass(frozen=True)
class RealRequest(Request):
    """A half of a real set. The size `full` allows it to write more than UNASKED_BYTES.

    `mirror` is a base URL that is tried first, `local` a folder that is looked into before.
    """

    kind = REAL
    half: str = ALL
    mirror: str | None = None
    local: Path | None = None

    @property
    def wanted(self) -> Half:
        """What the half is made of."""
        return self.dataset.halves[self.half]

    @property
    def arriving(self) -> Path:
        """Where its archives arrive; both halves share them."""
        return self.root / ".arriving" / self.dataset.name

    @property
    def variant(self) -> str:
        return f"real-{self.half}"

    @property
    def title(self) -> str:
        return f"{self.dataset.name} (real, {self.half})"

    @property
    def smaller(self) -> str | None:
        return "USE_VALIDATION=1" if self.half == ALL and VALIDATION in self.dataset.halves else None

    def accepts(self, manifest: Manifest) -> bool:
        return manifest.version == self.dataset.real_version and manifest.half in (self.half, ALL)

    def plan(self) -> tuple[str, int]:
        own, unpacked = self._own_files()
        if unpacked is not None:
            copied_bytes = 0 if self._same_disk(unpacked) else self.wanted.unpacked_bytes
            self._refuse_large(copied_bytes)
            return f"taken from {unpacked}, to stand", copied_bytes
        absent = [archive for archive in self.wanted.archives if archive.name not in own]
        self._refuse_gated(absent)
        fetched_bytes = sum(archive.size_bytes for archive in absent)
        arrived = sum(min(arrived_bytes(archive, self.arriving), archive.size_bytes) for archive in absent)
        unpacked_bytes = self.wanted.unpacked_bytes
        self._refuse_large(fetched_bytes + unpacked_bytes)
        refuse_no_curl(absent)
        words = (
            f"{size_words(fetched_bytes)} to fetch ({size_words(arrived)} there), about {size_words(unpacked_bytes)}"
        )
        return words, fetched_bytes - arrived + unpacked_bytes

    def fill(self) -> Manifest:
        own, unpacked = self._own_files()
        # What a run that was killed laid out is not taken over: its archives are what is kept.
        shutil.rmtree(self.staging)
        self.staging.mkdir()
        received: tuple[Received, ...] = ()
        if unpacked is not None:
            adopt(unpacked, self.wanted, self.staging)
            try:
                splits = self.dataset.check(self.staging)
            except DamagedArchiveError as error:
                raise CotenantError(f"{unpacked} {error}.", "Name another folder with --from DIR.") from error
        else:
            make_folder(self.arriving.parent)
            make_folder(self.arriving)
            received = tuple(self._received(self._known(archive), own) for archive in self.wanted.archives)
            splits = self._laid_out(own)
        for name, target in self.wanted.links.items():
            (self.staging / name).symlink_to(target)
        name, version = self.dataset.name, self.dataset.real_version
        taken_from = None if unpacked is None else str(unpacked)
        return Manifest(name, SIZES[-1], REAL, 0, version, 0, 0, splits, self.half, received, taken_from)

    def clear(self) -> None:
        """Remove the archives; what has arrived for the set's other half stays."""
        for archive in self.wanted.archives:
            forget(archive, self.arriving)
        for folder in (self.arriving, self.arriving.parent):
            if folder.exists() and not any(folder.iterdir()):
                folder.rmdir()

    def _own_files(self) -> tuple[Mapping[str, Path], Path | None]:
        """Return what a person has of the half: archives by their names, or the folder of the unpacked set.

        Looked for in the person's folder, or in one below it of the set's name; a fake set is none.
        """
        if self.local is None:
            return {}, None
        if not self.local.is_dir():
            raise CotenantError(
                f"{self.local}, where the data should come from, is no folder.", "Name another with --from DIR."
            )
        places = (self.local / self.dataset.name, self.local / self.dataset.folder, self.local)
        names = [archive.name for archive in self.wanted.archives]
        archives = {name: place / name for name in names for place in reversed(places) if (place / name).is_file()}
        if len(archives) < len(names):
            for place in places:
                manifest = read_manifest(place)
                # The links of a smaller half would look like the whole.
                ours = manifest is None or (manifest.kind != FAKE and self.accepts(manifest))
                if ours and all((place / path).exists() for path in self.wanted.paths):
                    return {}, place
        return archives, None

    def _same_disk(self, source: Path) -> bool:
        here = self.root
        while not here.exists():
            here = here.parent
        return all((source / path).stat().st_dev == here.stat().st_dev for path in self.wanted.paths)

    def _refuse_gated(self, absent: list[Archive]) -> None:
        """Raise CotenantError where archives would be needed that nobody may hand on."""
        if absent and self.dataset.gated is not None:
            raise CotenantError(
                f"{self.dataset.name} is never downloaded: its owners give it to who asks them, and"
                f" {', '.join(archive.name for archive in absent)} would be needed.",
                f"Ask at {self.dataset.gated}, then name the folder of these files with --from DIR"
                " (COTENANT_DATA_FROM).",
            )

    def _refuse_large(self, written_bytes: int) -> None:
        """Raise CotenantError where more would be written than may be without being asked."""
        if written_bytes > UNASKED_BYTES and self.size != SIZES[-1]:
            instead = f" {self.smaller} takes the smaller half." if self.smaller else ""
            raise CotenantError(
                f"{self.title} writes {size_words(written_bytes)} below {self.root}, and no more than"
                f" {size_words(UNASKED_BYTES)} are written without being asked.",
                f"Ask with --size full, or DATASET_SIZE=full.{instead}",
            )

    def _known(self, archive: Archive) -> Archive:
        """Return `archive`, where nobody recorded a digest with the one of what an earlier run received."""
        manifest = read_manifest(self.folder)
        for received in manifest.sources if manifest is not None else ():
            if archive.digest is None and received.file == archive.name:
                return replace(archive, digest=received.sha256, recorded_by="an earlier run")
        return archive

    def _received(self, archive: Archive, own: Mapping[str, Path]) -> Received:
        """Get the archive unless it is there, and compare it with what is known of it."""
        if (path := own.get(archive.name)) is None:
            received = fetch(archive, sources(archive, self.dataset.name, self.mirror), self.arriving)
        else:
            try:
                received = verified(archive, path, str(path))
            except OSError as error:
                _unreadable(error)
            except WrongBytesError as error:
                remedy = "Replace it, or move it away so that the file is sought elsewhere."
                raise CotenantError(f"{path} is not the file: {error}.", remedy) from None
        if received.verified_by is None:
            say(
                f"{archive.name}: could not be verified, as nobody is known to have recorded a checksum of it;"
                f" its sha256, {received.sha256}, is kept in the manifest, and later runs compare with it"
            )
        return received

    def _laid_out(self, own: Mapping[str, Path]) -> dict[str, int]:
        """Unpack the archives, and return the items per split; an unverified one that proves to be wrong is removed."""
        half, staging = self.wanted, self.staging
        paths = [own.get(archive.name, self.arriving / archive.name) for archive in half.archives]
        try:
            unpack(paths, staging, partial(self.dataset.place, half), half.unpacked_bytes, self.dataset.name)
            if self.dataset.prepare is not None:
                self.dataset.prepare(staging)
                shutil.rmtree(staging / RAW)
            lacking = [path for path in half.paths if not (staging / path).exists()]
            if lacking:
                raise DamagedArchiveError(f"lacks {', '.join(lacking)}")
            return self.dataset.check(staging)
        except DamagedArchiveError as error:
            # What has the recorded checksum would come again as it is.
            doubtful = [a for a in half.archives if a.digest is None and a.name not in own]
            for archive in doubtful:
                forget(archive, self.arriving)
            raise CotenantError(
                f"{self.title} cannot be unpacked: of {', '.join(path.name for path in paths)} one {error}.",
                f"{', '.join(a.name for a in doubtful)} was removed: start again, with another --mirror URL"
                " or --from DIR."
                if doubtful
                else "Look whether the files are those of the sources in docs/datasets.md, and report it if they are.",
            ) from error


def adopt(source: Path, half: Half, target: Path) -> None:
    """Bring the files of an unpacked half to `target`: as second names of the same bytes, or as copies."""
    for path in half.paths:
        if (source / path).is_file():
            _adopt_file(source / path, target / path)
            continue
        # Without `onerror` a folder that cannot be listed would be left out, and the rest taken for the set.
        for place, _, names in os.walk(source / path, onerror=_unreadable, followlinks=True):
            for name in names:
                below = Path(place, name)
                _adopt_file(below, target / below.relative_to(source))


def _adopt_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source.resolve(), target)
    except OSError as error:
        if error.errno not in _NO_SECOND_NAME:
            raise
        shutil.copyfile(source, target)


def _unreadable(error: OSError) -> NoReturn:
    remedy = "Mend its permissions or its disk."
    raise CotenantError(f"{error.filename} cannot be read: {error.strerror}.", remedy) from error
