"""A view as text in a terminal, as Markdown, CSV, JSON and as a table of a page: one way each for all of them.

Text from files is printed without a terminal's control sequences. An absent number is a dash, empty or null.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from cotenant.report.grid import Column, Grid, GridGroup, Row, present
from cotenant.report.view import COMMAND, Cell, View, Words
from cotenant.text import csv_cell, markdown_cell, printable, visible

if TYPE_CHECKING:
    from jinja2 import Template

GAP = 2
_WORD = re.compile("[^ ]+")
WIDTH_OF_FILES = 200
"""Columns of a table that is not printed on a terminal."""


SCHEMA = "cotenant-view-1"


def drawn(view: View | Grid) -> Grid:
    """Return a view with the cells that people see."""
    if isinstance(view, Grid):
        return view
    columns = [Column(of.heading, of.cell, of.left, of.optional, of.seen, of.words, of.least) for of in view.columns]
    groups = []
    for group in view.shown:
        made = [Row({column: column.of(of) for column in columns}, notes=view.below(of)) for of in group.each()]
        groups.append(GridGroup(made, group.title, group.facts, group.notes))
    return Grid(columns, groups, view.title, view.lines, view.joined)


# A terminal


def show(grids: Iterable[View | Grid], console: Console | None = None) -> None:
    """Print views below each other; on a terminal they are folded to its width."""
    console = console or Console()
    if not console.is_terminal:
        # In a notebook rich would show the text there, and print nothing.
        console = Console(file=console.file, width=WIDTH_OF_FILES, force_jupyter=False)
    with may_leave():
        for grid in grids:
            for line in terminal(grid, console.width):
                _print(line, console)


def may_leave() -> contextlib.AbstractContextManager[object]:
    """Return a context for printing by rich, which would end the program once its reader is gone (`... | head`).

    That is no failure: the program goes on after the printing.
    """
    return contextlib.suppress(SystemExit)


def _print(line: Text, console: Console) -> None:
    """Print a line. Folded text keeps its indent; rows of tables are folded by the terminal itself."""
    indent = len(line.plain) - len(line.plain.lstrip())
    unbound = bool(line.no_wrap) or not console.is_terminal
    if unbound or not indent or line.cell_len <= console.width:
        console.print(line, soft_wrap=unbound, highlight=False)
        return
    for part in line[indent:].wrap(console, console.width - indent):
        part.rstrip()
        console.print(Text(" " * indent) + part, soft_wrap=True, highlight=False)


def terminal(view: View | Grid, width: int) -> Iterator[Text]:
    """Yield the lines for a terminal of `width` columns; those of tables do not wrap."""
    grid = drawn(view)
    if grid.title:
        yield Text(printable(grid.title), "bold", no_wrap=True)
    columns = [column for column in grid.columns if column.seen != "files"]
    table = _Table(columns, grid.shown_rows, width)
    if grid.joined and table.headed:
        yield table.header()
    for group in grid.groups:
        yield from _heading(group, width)
        if not grid.joined:
            table = _Table(columns, group.shown_rows, width)
            if table.headed and group.shown_rows:
                yield table.header()
        yield from table.lines(group.shown_rows)
        yield from map(_line, group.notes)
        if group.title and not grid.joined:
            yield Text("")
    yield from map(_line, grid.notes)


def _heading(group: GridGroup, width: int) -> Iterator[Text]:
    """Yield a group's title and facts: on two lines where one has no room for them."""
    title, facts = Text(printable(group.title), "bold"), Text(f"  {printable(group.facts)}".rstrip())
    if group.title and title.cell_len + facts.cell_len <= width:
        yield Text.assemble(title, facts)
    elif group.title:
        yield from (title, facts)


def _line(words: Words) -> Text:
    """Return a line with its spaces as the view wrote them."""
    parts = [(_WORD.sub(lambda word: printable(word[0]), text), style) for text, style in words]
    return Text.assemble(*parts, no_wrap=any(style == COMMAND for _, style in words))


def _text(cell: Cell) -> str:
    return printable(f"{cell.text} {cell.note}")


def _shortened(text: str, room: int, is_name: bool) -> str:
    """Return as much of a text as has room: its beginning, of a name also its end."""
    if cell_len(text) <= room:
        return text
    end = text[len(text) - room // 3 :] if is_name else ""
    while cell_len(text) + cell_len(end) >= room:
        text = text[:-1]
    return f"{text.rstrip()}…{end}"


def _fitted(columns: Sequence[Column[Any]], widths: Sequence[int], width: int) -> Sequence[int]:
    """Return the widths, with those of `least` columns less where these and the columns before them then fit."""
    for count in (count for count in range(len(columns), 0, -1) if columns[count - 1].least):
        fitted, excess = [*widths], sum(widths[:count]) + GAP * (count - 1) - width
        places = [at for at, column in enumerate(columns[:count]) if column.least]
        while excess > 0:
            widest = max(places, key=lambda at: fitted[at] - columns[at].least)
            if fitted[widest] <= columns[widest].least:
                break
            fitted[widest], excess = fitted[widest] - 1, excess - 1
        if excess <= 0:
            return fitted
    return widths


class _Table:
    """Aligned columns, and `below` each row those without room. A table without headings is a list, which folds."""

    def __init__(self, columns: Sequence[Column[Any]], rows: Sequence[Row], width: int) -> None:
        columns = present(columns, rows)
        self.headed = any(column.heading for column in columns)
        self._indent = 0 if self.headed else GAP
        widths = [
            # A matrix has names from files as headings, too.
            max(map(cell_len, (printable(column.heading), *(_text(row.cell(column)) for row in rows))))
            for column in columns
        ]
        if self.headed:
            widths = [*_fitted(columns, widths, width)]
        ends = accumulate(own + GAP for own in widths)
        fitting = max(1, sum(end - GAP <= width for end in ends)) if self.headed else len(columns)
        self.columns, self.below, self._widths = columns[:fitting], columns[fitting:], widths[:fitting]

    def header(self) -> Text:
        return self._aligned([Cell(column.heading) for column in self.columns], "bold")

    def lines(self, rows: Sequence[Row]) -> Iterator[Text]:
        """Yield the lines of rows."""
        for row in rows:
            yield self._aligned(row.in_order(self.columns))
            known = [(printable(column.heading), row.cell(column)) for column in self.below if row.has(column)]
            parts = [Text.assemble((f"{name} ".lstrip(), "dim"), (_text(of), of.style or "dim")) for name, of in known]
            if parts:
                yield Text(" " * GAP) + Text("; ").join(parts)
            for words in row.notes:
                yield Text(" " * (self._indent + self._widths[0] + GAP)) + _line(words)

    def _aligned(self, cells: Sequence[Cell], style: str = "") -> Text:
        line = Text(" " * self._indent, no_wrap=self.headed)
        for column, cell, width in zip(self.columns, cells, self._widths, strict=True):
            shown = _shortened(_text(cell), width, column is self.columns[0]) if column.least else _text(cell)
            text = Text.assemble((shown, cell.style or style))
            text.align("left" if column.left else "right", width)
            line.append_text(text).append(" " * GAP)
        line.rstrip()
        return line


# Files


def markdown(view: View | Grid) -> str:
    """Return one table of all groups."""
    grid = drawn(view)
    rows = grid.shown_rows
    columns = present([column for column in grid.columns if column.seen != "screens"], rows)
    lines = [[markdown_cell(column.heading) for column in columns]]
    lines += [["---" if column.left else "---:" for column in columns]]
    lines += [[markdown_cell(_text(cell)) for cell in row.in_order(columns)] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def as_csv(view: View | Grid) -> str:
    """Return a line per row with numbers in all their digits; no text of it is a formula."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    if isinstance(view, View):
        rows = view.frame.iter_rows()
    else:
        records = filter(None, (row.record for row in view.rows))
        rows = (tuple(record.get(name) for name in view.fields) for record in records)
    writer.writerow(map(csv_cell, view.fields))
    for values in rows:
        writer.writerow(csv_cell(value) if isinstance(value, str) else value for value in values)
    return table.getvalue()


def as_json(view: View | Grid) -> str:
    """Return the view with the meanings of its fields; times are ISO 8601 in UTC."""
    of_view = document(view) if isinstance(view, View) else view.document
    return json.dumps(of_view, indent=1, allow_nan=False, default=_plain) + "\n"


def document(view: View) -> dict[str, Any]:
    """Return the JSON form of a view: its name, the meaning of each column, and the rows, an object each."""
    return {
        "schema": SCHEMA,
        "view": view.name,
        "columns": dict(view.fields),
        "rows": view.frame.to_dicts(),
        "notes": list(view.notes),
        **({"sentences": list(view.sentences)} if view.sentences else {}),
        **({"parts": {part.name: document(part) for part in view.parts}} if view.parts else {}),
    }


def _plain(value: Any) -> Any:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else asdict(value)


FILES: dict[str, Callable[[View | Grid], str]] = {"md": markdown, "csv": as_csv, "json": as_json}
"""The writer of a view as a file, by the word of `--format`."""


# A page

MARKS = {"green": "good", "yellow": "some", "bold red": "bad", "dim": "soft"}


def html(view: View | Grid, without: Collection[str] = ()) -> Markup:
    """Return a table per group, `without` the columns of these headings; its texts are escaped."""
    grid = drawn(view)
    seen = [column for column in grid.columns if column.seen != "files" and column.heading not in without]
    columns = present(seen, grid.shown_rows)
    return Markup(
        template("grid.html.j2").render(columns=columns, groups=grid.groups, marks=MARKS, printable=printable)
    )


def template(name: str) -> Template:
    """Return a template of a page, in which everything is escaped and made visible."""
    from jinja2 import Environment, PackageLoader  # no terminal needs it

    environment = Environment(
        loader=PackageLoader("cotenant.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible_value,
    )
    return environment.get_template(name)


def _visible_value(value: object) -> object:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
