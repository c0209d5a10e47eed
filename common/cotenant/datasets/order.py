"""A set that is asked for, and where it stands, is made and is locked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cotenant.datasets.maker import SIZES, Maker


@dataclass(frozen=True)
class Order:
    """The set of `maker` in `size`, and its places below `root`."""

    root: Path
    maker: Maker
    size: str
    seed: int

    @property
    def folder(self) -> Path:
        """Where the complete set stands."""
        return self.root / self.maker.folder

    @property
    def staging(self) -> Path:
        """Where it is made; one name for all that decides its bytes, so that nothing else is taken over."""
        return self.root / ".making" / f"{self.maker.name}-{self.size}-v{self.maker.version}-s{self.seed}"

    @property
    def lock(self) -> Path:
        """The file whose lock its one maker holds."""
        return self.root / ".locks" / self.maker.name

    def leftovers(self, size: str) -> list[Path]:
        """Return what other runs left of this set in `size` or smaller: of use to nobody once it stands."""
        making = self.staging.parent
        if making.is_symlink():
            return []
        sizes = SIZES[: SIZES.index(size) + 1]
        return [path for s in sizes for path in making.glob(f"{self.maker.name}-{s}-*")]
