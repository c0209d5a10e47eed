"""A real set that is asked for, and where it stands, arrives, is laid out and is locked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cotenant.datasets.real.real_set import Half, RealSet


@dataclass(frozen=True)
class RealOrder:
    """A half of the real set `real`, and its places below `root`: the fake one of its name stands and locks there, too.

    `large` says that more than what is written without being asked may be; `mirror` is a base URL that is tried
    first, `local` a folder that is looked into before.
    """

    root: Path
    real: RealSet
    half: str
    large: bool = False
    mirror: str | None = None
    local: Path | None = None

    @property
    def words(self) -> str:
        """What is asked for, in words."""
        return f"{self.real.name} (real, {self.half})"

    @property
    def wanted(self) -> Half:
        """What the half is made of."""
        return self.real.halves[self.half]

    @property
    def folder(self) -> Path:
        """Where the complete set stands."""
        return self.root / self.real.folder

    @property
    def staging(self) -> Path:
        """Where it is laid out, anew each time: archives are what an interruption leaves."""
        return self.root / ".making" / f"{self.real.name}-real-{self.half}"

    def leftovers(self) -> list[Path]:
        """Return what runs left of this set where it is laid out."""
        making = self.staging.parent
        return [] if making.is_symlink() else list(making.glob(f"{self.real.name}-real-*"))

    @property
    def arriving(self) -> Path:
        """Where its archives arrive; both halves share them."""
        return self.root / ".arriving" / self.real.name

    @property
    def lock(self) -> Path:
        """The file whose lock its one maker holds."""
        return self.root / ".locks" / self.real.name
