"""The interference tables of a page, and a picture of each: what is kept of the rate alone, with slices and without."""

from __future__ import annotations

from dataclasses import replace

from markupsafe import Markup

from cotenant.report.interference import interference_blocks, interference_grid
from cotenant.report.pictures.kept import kept
from cotenant.report.render_html import html
from cotenant.report.summary import Summary


def page_blocks(summary: Summary) -> list[tuple[Markup, Markup | None]]:
    """Return a table and a picture for each suite and host; none where nothing was measured in two ways."""
    grid = interference_grid(summary)
    found = []
    for index, (group, block) in enumerate(zip(grid.groups, interference_blocks(summary), strict=True)):
        drawn = kept(block, f"k{index}")
        found.append((html(replace(grid, groups=[group])), None if drawn is None else Markup(drawn)))
    return found
