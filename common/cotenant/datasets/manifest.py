"""A set's manifest: written last, so a set counts as present only where it says so."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from cotenant.datasets.dataset import ALL, SIZES
from cotenant.datasets.disk import write_file

FILE_NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Received:
    """A file that a real set was made from: where it came from, and what it was compared with, None for nothing."""

    file: str
    source: str
    bytes: int
    sha256: str
    verified_by: str | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """What stands in a set's folder: `files` and `bytes` without the manifest itself, `splits` in items.

    `kind` is `fake` or `real`; `half` is `all`, or `validation` for the smaller half of a real set. `sources` are the
    files that a real set was made from: later runs compare those with them of which nobody recorded a digest.
    `taken_from` is the folder in which it lay unpacked, so that nothing was compared.
    """

    name: str
    size: str
    kind: str
    seed: int
    version: int
    files: int
    bytes: int
    splits: Mapping[str, int]
    half: str = ALL
    sources: tuple[Received, ...] = ()
    taken_from: str | None = None


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of the set in `folder`; None where there is none that was written here."""
    try:
        if folder.is_symlink():
            return None
        with open(os.open(folder / FILE_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), encoding="utf-8") as file:
            values = json.load(file)
        sources = tuple(Received(**entry) for entry in values.pop("sources", ()))
        manifest = Manifest(**values, sources=sources)
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return manifest if manifest.size in SIZES else None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest into `folder`, durably and in one step."""
    write_file(folder / FILE_NAME, [json.dumps(asdict(manifest), indent=2).encode() + b"\n"])
