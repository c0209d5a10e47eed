"""Duets: one cell of a job file with two sets of further arguments, which take turns in the same slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cotenant.errors import CotenantError
from cotenant.suite.cells import JobCell

BETWEEN = "---"
"""Stands between the arguments of A and those of B."""
USAGE = "As --duet vae -- --batch-size 64 --- --batch-size 128; a side without arguments is the job as it is."


@dataclass(frozen=True, slots=True)
class Duet:
    """The cell `label` with the further words of A, and with those of B."""

    label: str
    sides: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def name(self) -> str:
        return f"{self.label}.duet"

    def cell(self, cell: JobCell, side: str) -> JobCell:
        """Return the cell as the one of a side: its files are called so."""
        job = replace(cell.job, stem=f"{self.name}.{side}")
        return JobCell(job, 1, 1, cell.args)


def duet_of(label: str, words: Sequence[str]) -> Duet:
    """Return the duet of `--duet LABEL -- A... --- B...`. Raises CotenantError."""
    sides = words_of_sides(words, "--duet", USAGE)
    return Duet(label, sides)


def words_of_sides(words: Sequence[str], flag: str, usage: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words before BETWEEN and behind it. Raises CotenantError where it does not stand there once."""
    if words.count(BETWEEN) != 1:
        number = "no" if BETWEEN not in words else "more than one"
        raise CotenantError(f"{flag} compares two, and behind -- stands {number} {BETWEEN} between them.", usage)
    middle = list(words).index(BETWEEN)
    return tuple(words[:middle]), tuple(words[middle + 1 :])
