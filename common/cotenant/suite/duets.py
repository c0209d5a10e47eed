"""Duets, two programs that take turns in the same slices: a job file's cell with two sets of arguments, or two
commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cotenant.errors import CotenantError
from cotenant.suite.cells import JobCell

BETWEEN = "---"
"""Separates the arguments of A and B."""
SIDES = "AB"
REPETITIONS = 8
"""The default number of a duet's launches, each with processes of its own: two processes of one program differ by their
places in memory (Mytkowicz et al., ASPLOS 2009), which a single launch cannot show."""
USAGE = "As --duet vae -- --batch-size 64 --- --batch-size 128; a side without arguments is the job as it is."


@dataclass(frozen=True, slots=True)
class Duet:
    """The cell `label` with added words for A, and for B; in `exec` the words are the commands themselves."""

    label: str
    sides: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def name(self) -> str:
        return f"{self.label}.duet"

    def cell(self, cell: JobCell, side: str) -> JobCell:
        """Return the cell under the name of a side, as its files have it; in `exec` with the side's command."""
        job = replace(cell.job, stem=f"{self.name}.{side}")
        if job.foreign is not None:
            foreign = replace(job.foreign, words=self.sides[SIDES.index(side)])
            job = replace(job, cmd=foreign.shown, foreign=foreign)
        return JobCell(job, 1, 1, cell.args)


def duet_of(label: str, words: Sequence[str]) -> Duet:
    """Return the duet of `--duet LABEL -- A... --- B...`. Raises CotenantError."""
    return Duet(label, words_of_sides(words, USAGE))


def words_of_sides(words: Sequence[str], usage: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words before BETWEEN and behind it.

    Raises CotenantError unless BETWEEN is there exactly once.
    """
    if words.count(BETWEEN) != 1:
        number = "no" if BETWEEN not in words else "more than one"
        raise CotenantError(f"--duet compares two, and there is {number} {BETWEEN} after -- between them.", usage)
    middle = list(words).index(BETWEEN)
    return tuple(words[:middle]), tuple(words[middle + 1 :])
