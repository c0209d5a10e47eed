"""The interference tables of a page, and a picture of each: what is kept of the rate alone, with slices and without."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from cotenant.report.interference import Block, interference_blocks
from cotenant.report.interference_text import grid, notes_of
from cotenant.report.pictures.kept import kept
from cotenant.report.summary import Summary


@dataclass(frozen=True, slots=True)
class PageBlock:
    """What the page shows of one suite on one host."""

    suite: str
    host: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    picture: Markup | None


def page_blocks(summary: Summary) -> list[PageBlock]:
    """Return the tables; none where nothing was measured in two ways."""
    return [_shown(block, f"k{index}") for index, block in enumerate(interference_blocks(summary))]


def _shown(block: Block, name: str) -> PageBlock:
    header, rows = grid(block)
    drawn = kept(block, name)
    return PageBlock(
        suite=block.suite or "suite",
        host=block.host,
        header=tuple(header),
        rows=tuple(map(tuple, rows)),
        notes=tuple(notes_of(block)),
        picture=None if drawn is None else Markup(drawn),
    )
