"""A set's manifest: written last, so a set counts as present only where it says so."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from cotenant.datasets.archive import Received
from cotenant.datasets.files import write_file
from cotenant.datasets.maker import SIZES, Maker
from cotenant.datasets.makers import find_maker

FILE_NAME = "manifest.json"
FAKE, REAL = "fake", "real"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What stands in a set's folder: `files` and `bytes` without the manifest itself, `splits` in items.

    `kind` is `fake` or `real`; `half` is `all`, or `validation` for the smaller half of a real set. `sources` are the
    files that a real set was made from, also those of an earlier one in its place: later runs compare with them.
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
    half: str = "all"
    sources: tuple[Received, ...] = ()
    taken_from: str | None = None

    def satisfies(self, maker: Maker, size: str) -> bool:
        """Tell whether this set serves who asks `maker` for `size`: full serves small as well."""
        mine = (self.name, self.kind, self.version) == (maker.name, FAKE, maker.version)
        return mine and SIZES.index(self.size) >= SIZES.index(size)


def present(root: Path, name: str, size: str) -> bool:
    """Tell whether the set `name` stands complete below `root`, in `size` or larger. Reads one small file.

    Raises CotenantError for a name that no maker has.
    """
    maker = find_maker(name)
    manifest = read_manifest(root / maker.folder)
    return manifest is not None and manifest.satisfies(maker, size)


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of the set in `folder`; None where there is none that a maker wrote."""
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
