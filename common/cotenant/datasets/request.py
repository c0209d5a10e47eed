"""Requests for a data set: which one, its size or half, its place, and its permitted sources."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cotenant.datasets.dataset import ALL, FAKE, REAL, SIZES, VALIDATION, Dataset, FolderManifest, Half


@dataclass(frozen=True)
class SetRequest:
    """A set to stand below `root`: a fake one of a size, or the `half` of the real one.

    The size `full` allows a real one to write more than `real.UNASKED_BYTES`. `local` is a folder that is searched
    before anything is fetched, `mirror` a base URL that is tried before the publisher's. `processes` workers make a
    fake set, by default one for each processor that may be used.
    """

    root: Path
    dataset: Dataset
    size: str
    half: str | None = None
    mirror: str | None = None
    local: Path | None = None
    processes: int | None = None

    @property
    def kind(self) -> str:
        return FAKE if self.half is None else REAL

    @property
    def wanted(self) -> Half:
        """The real set's half that is asked for."""
        return self.dataset.halves[self.half or ALL]

    @property
    def folder(self) -> Path:
        """The place of the complete set."""
        return self.root / self.dataset.folder

    @property
    def lock(self) -> Path:
        """The lock file of its single maker."""
        return self.root / ".locks" / self.dataset.name

    @property
    def staging(self) -> Path:
        """The folder in which the set is made. A fake set's is reused, so its name has all that decides the bytes."""
        variant = f"real-{self.half}" if self.half else f"{self.size}-v{self.dataset.version}"
        return self.root / ".making" / f"{self.dataset.name}-{variant}"

    @property
    def arriving(self) -> Path:
        """The place at which a real set's archives arrive; both halves share them."""
        return self.root / ".arriving" / self.dataset.name

    @property
    def title(self) -> str:
        """The request in words."""
        return f"{self.dataset.name} (real, {self.half})" if self.half else f"{self.dataset.name} ({self.size})"

    @property
    def smaller(self) -> str | None:
        """The way to ask for less, if that is possible."""
        if self.half:
            return "USE_VALIDATION=1" if self.half == ALL and VALIDATION in self.dataset.halves else None
        return None if self.size == SIZES[0] else f"--size {SIZES[0]}"

    def leftovers(self) -> list[Path]:
        """Return the staging folders that runs of this set left behind, in any variant."""
        return list(self.staging.parent.glob(f"{self.dataset.name}-*"))

    def accepts(self, manifest: FolderManifest) -> bool:
        """Return whether the set of this manifest satisfies the request."""
        if (manifest.name, manifest.kind, manifest.version) != (self.dataset.name, self.kind, self.dataset.version):
            return False
        return manifest.half in (self.half, ALL) if self.half else manifest.size in (self.size, SIZES[-1])
