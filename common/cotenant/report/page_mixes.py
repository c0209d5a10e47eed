"""The page's part on different jobs beside each other: a table and bars for each mix, the matrix of pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from markupsafe import Markup

from cotenant.report.mixes import LEGEND, mix_grid
from cotenant.report.page_jobs import Picture
from cotenant.report.pairs import outside_pairs, pairs_grid
from cotenant.report.pictures.mixes import progress_bars
from cotenant.report.renderers import html
from cotenant.report.summary import Summary

CAPTION = (
    "line: what a tenant is entitled to; bars over it: 95 % intervals, dotted those of a single launch's observations"
)


@dataclass(frozen=True, slots=True)
class MixPart:
    """A mix on the page: its table, and its bars; None where no progress is known."""

    table: Markup
    picture: Picture | None


@dataclass(frozen=True, slots=True)
class BesideEachOther:
    """All mixes, and the matrix of pairs as a table; empty where there is none."""

    mixes: list[MixPart]
    explanation: str
    pairs: Markup
    of_pairs: str


def beside_each_other(summary: Summary) -> BesideEachOther | None:
    """Return the page's part on different jobs; None without any."""
    blocks, pairs = outside_pairs(summary), pairs_grid(summary)
    grid = mix_grid(blocks)
    if not blocks and not pairs.groups:
        return None
    mixes = []
    for index, (group, block) in enumerate(zip(grid.groups, blocks, strict=True)):
        drawn = progress_bars(block, f"mix{index}")
        title = f"{block.mix}: each tenant's rate over what it has alone"
        picture = None if drawn is None else Picture(Markup(drawn), title, CAPTION)
        mixes.append(MixPart(html(replace(grid, groups=[group])), picture))
    of_pairs = " ".join(text for note in pairs.notes for text, _ in note)
    return BesideEachOther(mixes, LEGEND, html(pairs) if pairs.groups else Markup(), of_pairs)
