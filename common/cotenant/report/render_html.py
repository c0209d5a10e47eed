"""A grid as tables of a page, and the templates that pages are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, Template
from markupsafe import Markup

from cotenant.report.grid import Column, Grid, Row, present
from cotenant.text import printable

MARKS = {"green": "good", "yellow": "some", "bold red": "bad", "dim": "soft"}


@dataclass(frozen=True, slots=True)
class Card:
    """One figure: what it is, its value, and what it is of. The `lead` is the one to look at first."""

    name: str
    value: str
    note: str
    lead: bool = False


def html(grid: Grid) -> Markup:
    """Return a table per group; what stands in it is escaped."""
    columns = [column for column in grid.columns if column.seen != "files"]
    columns = present(columns, grid.shown_rows)
    groups = [
        {
            "title": group.title,
            "facts": group.facts,
            "rows": [_page_row(row, columns) for row in group.shown_rows],
            "notes": ["".join(text for text, _ in words) for words in group.notes],
        }
        for group in grid.groups
    ]
    return Markup(template("grid.html.j2").render(columns=columns, groups=groups))


def _page_row(row: Row, columns: Sequence[Column]) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = []
    for column, cell in zip(columns, row.in_order(columns), strict=True):
        kinds = ("l" if column.left else "", "words" if column.words else "", "" if cell.heat is None else "heat")
        cells.append(
            {
                "text": printable(cell.text),
                "small": printable(cell.note),
                "link": cell.link,
                "mark": MARKS.get(cell.style, "") if cell.heat is None else "",
                "kind": " ".join(filter(None, kinds)),
                "heat": cell.heat,
            }
        )
    return cells


def template(name: str) -> Template:
    """Return a template of a page, in which everything is escaped."""
    loader = PackageLoader("cotenant.report")
    return Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True).get_template(name)
