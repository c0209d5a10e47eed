"""What a person has already: the archives of a set, or the set unpacked, in a folder of theirs. It is never changed."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from cotenant.datasets.archive import Archive, Received, WrongBytesError, verified
from cotenant.datasets.manifest import FAKE, read_manifest
from cotenant.datasets.real.real_set import ALL, Half, RealSet
from cotenant.errors import CotenantError

# Where a second name of a file cannot be had: other disks, file systems without them, files of other people.
_NO_SECOND_NAME = (errno.EXDEV, errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.EMLINK)


@dataclass(frozen=True, slots=True)
class Found:
    """What there is of a half: the archives' paths by their names, or the folder of the unpacked set."""

    archives: Mapping[str, Path] = field(default_factory=dict)
    unpacked: Path | None = None


def look(folder: Path | None, real: RealSet, half_name: str) -> Found:
    """Look for a half of a set in `folder`, or in one below it of the set's name; raises CotenantError for no folder.

    A fake set is never taken for the real one.
    """
    if folder is None:
        return Found()
    half = real.halves[half_name]
    if not folder.is_dir():
        raise CotenantError(
            f"{folder}, where the data should come from, is no folder.", "Name another with --from DIR."
        )
    places = (folder / real.name, folder / real.folder, folder)
    archives = {
        archive.name: found[0]
        for archive in half.archives
        if (found := [place / archive.name for place in places if (place / archive.name).is_file()])
    }
    if len(archives) == len(half.archives):
        return Found(archives)
    for place in places:
        manifest = read_manifest(place)
        # The links of a smaller half would look like the whole.
        if manifest is not None and (manifest.kind == FAKE or manifest.half not in (half_name, ALL)):
            continue
        if manifest is not None and manifest.version != real.version:
            continue
        if all((place / path).exists() for path in half.paths):
            return Found(unpacked=place)
    return Found(archives)


def checked(archive: Archive, path: Path, first_received: str | None) -> Received:
    """Compare a person's file with what is known of it; raises CotenantError where it is another one."""
    try:
        return verified(archive, path, str(path), first_received)
    except OSError as error:
        _unreadable(error, path)
    except WrongBytesError as error:
        raise CotenantError(
            f"{path} is not the file: {error}.", "Replace it, or move it away so that the file is sought elsewhere."
        ) from None


def adopt(source: Path, half: Half, target: Path) -> None:
    """Bring the files of an unpacked half to `target`: as second names of the same bytes, or as copies."""
    for path in half.paths:
        if (source / path).is_dir():
            _adopt_tree(source / path, target / path)
        else:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            _adopt_file(source / path, target / path)


def _adopt_tree(source: Path, target: Path) -> None:
    # Unsaid, a folder that cannot be listed would be left out, and the rest taken for the set.
    for place, _, names in os.walk(source, onerror=_unreadable, followlinks=True):
        below = target / Path(place).relative_to(source)
        below.mkdir(parents=True, exist_ok=True)
        for name in names:
            _adopt_file(Path(place, name), below / name)


def _adopt_file(source: Path, target: Path) -> None:
    try:
        os.link(source.resolve(), target)
    except OSError as error:
        if error.errno not in _NO_SECOND_NAME:
            raise
        shutil.copyfile(source, target)


def _unreadable(error: OSError, path: Path | None = None) -> NoReturn:
    place = path or error.filename
    raise CotenantError(f"{place} cannot be read: {error.strerror}.", "Mend its permissions or its disk.") from error
