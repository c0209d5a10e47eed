"""A grid as text in a terminal, as Markdown, CSV, JSON and as a table of a page: one way each for all views.

What comes from files is printed without a terminal's control sequences. An absent number is a dash, empty or null.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from cotenant.report.grid import BLANK, Cell, Column, Grid, Group, Row, Words, present
from cotenant.text import printable

GAP = 2
SHORT_NAME = 8
"""Where a row's longest name leaves no room for its numbers, one longer than this stands on a line of its own."""
_SPACES = re.compile("( +)")
WIDTH_OF_FILES = 200
"""Columns of a table that goes to no terminal."""


# A terminal


def show(grids: Iterable[Grid], console: Console | None = None) -> None:
    """Print grids below each other; on a terminal they are folded to its width, and no number is cut."""
    console = console or Console()
    if not console.is_terminal:
        console = Console(file=console.file, width=WIDTH_OF_FILES)
    with may_leave():
        for grid in grids:
            for line in terminal(grid, console.width):
                _print(line, console)


def may_leave() -> contextlib.AbstractContextManager[object]:
    """Return a context for printing by rich, which ends the program where its reader has left (`... | head`).

    Nothing has failed then, and what comes after the printing is done all the same.
    """
    return contextlib.suppress(SystemExit)


def _print(line: Text, console: Console) -> None:
    """Print a line. What is folded keeps its indent; rows of tables are folded by the terminal itself."""
    indent = len(line.plain) - len(line.plain.lstrip())
    if line.no_wrap or not console.is_terminal:
        console.print(line, soft_wrap=True, highlight=False)
    elif indent and line.cell_len > console.width:
        for part in line[indent:].wrap(console, console.width - indent):
            part.rstrip()
            console.print(Text(" " * indent) + part, soft_wrap=True, highlight=False)
    else:
        console.print(line, highlight=False)


def terminal(grid: Grid, width: int) -> Iterator[Text]:
    """Yield the lines for so many columns; those of tables do not wrap."""
    if grid.title:
        yield Text(printable(grid.title), "bold", no_wrap=True)
    columns = [column for column in grid.columns if column.seen != "files"]
    joined = _tables(columns, grid.shown_rows, width) if grid.joined else []
    yield from (table.header() for table in joined if table.headed)
    for group in grid.groups:
        yield from _heading(group, width)
        for table in joined or _tables(columns, group.shown_rows, width):
            if not grid.joined and table.headed:
                yield table.header()
            yield from table.lines(group.shown_rows)
        yield from map(_line, group.notes)
        if group.title and not grid.joined:
            yield Text("")
    yield from map(_line, grid.notes)


def _heading(group: Group, width: int) -> Iterator[Text]:
    """Yield a group's title and facts: on two lines where one has no room for them."""
    title, facts = Text(printable(group.title), "bold"), Text(f"  {printable(group.facts)}".rstrip())
    if group.title and title.cell_len + facts.cell_len <= width:
        yield Text().append_text(title).append_text(facts)
    elif group.title:
        yield from (title, facts)


def _line(words: Words) -> Text:
    """Return a line. Its spaces are the view's own, and stay."""
    return Text.assemble(*(("".join(map(_word, _SPACES.split(text))), style) for text, style in words))


def _word(text: str) -> str:
    return printable(text) if text.strip(" ") else text


def _text(cell: Cell) -> str:
    return printable(f"{cell.text} {cell.note}")


def _tables(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[_Table]:
    """Return the tables of these columns that fit a width, as far as columns give way: see `Column`."""
    columns = present(columns, rows)
    if not columns or not rows:
        return []
    ways = [
        _Table(columns, [], rows),
        _Table([one for one in columns if one.narrow != "drop"], [], rows),
        _Table(
            [one for one in columns if one.narrow == "keep"],
            [one for one in columns if one.narrow in ("below", "aside")],
            rows,
        ),
    ]
    fitting = next((table for table in ways if table.width <= width), None)
    if fitting is not None:
        return [fitting]
    narrowest = ways[-1]
    tables = [narrowest]
    if any(column.split for column in columns):
        tables = [_Table(part, narrowest.below, rows) for part in _parts(narrowest.columns, rows, width)]
    for table in tables:
        table.shorten(width)
    return tables


def _parts(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[list[Column]]:
    """Return the columns of as few tables as fit, each of which begins with those before the first split."""
    first = next(at for at, column in enumerate(columns) if column.split)
    starts = [at for at, column in enumerate(columns) if column.split]
    parts: list[list[Column]] = []
    for start, end in zip(starts, [*starts[1:], len(columns)], strict=True):
        more = [*columns[start:end]]
        if parts and columns[start].split == "may" and _Table([*parts[-1], *more], [], rows).width <= width:
            parts[-1] += more
        else:
            parts.append([*columns[:first], *more])
    return parts


class _Table:
    """Aligned columns, and those whose values stand on a second line below each row."""

    def __init__(self, columns: Sequence[Column], below: Sequence[Column], rows: Sequence[Row]) -> None:
        self.columns, self.below = columns, below
        self.headed = any(column.heading for column in columns)
        self._widths = [
            max([cell_len(column.heading), *(cell_len(_text(row.cell(column))) for row in rows)]) for column in columns
        ]
        self._indent = 0 if self.headed else GAP
        self._lead = columns[0]
        self._names = [_text(row.cell(self._lead)) for row in rows]

    @property
    def width(self) -> int:
        """The columns of a terminal that the longest line takes."""
        return self._indent + sum(self._widths) + GAP * (len(self._widths) - 1)

    def shorten(self, width: int) -> None:
        """Where a table is too wide, long names stand on lines of their own."""
        if self.width > width:
            short = [cell_len(name) for name in self._names if cell_len(name) <= SHORT_NAME]
            self._widths[0] = min(self._widths[0], max([cell_len(self._lead.heading), *short]))

    def header(self) -> Text:
        return self._aligned([Cell(column.heading) for column in self.columns], "bold")

    def lines(self, rows: Sequence[Row]) -> Iterator[Text]:
        """Yield the lines of rows; of a part of a table those that have something in it."""
        for row in rows:
            cells = row.in_order(self.columns)
            if not any(_text(cell) for column, cell in zip(self.columns, cells, strict=True) if self._own(column)):
                continue
            if cell_len(_text(cells[0])) > self._widths[0]:
                yield Text(_text(cells[0]), cells[0].style, no_wrap=True)
                cells[0] = BLANK
            yield self._aligned(cells)
            if below := self._below(row):
                yield Text(f"{' ' * GAP}{below}", "dim")
            for words in row.notes:
                yield Text(" " * (self._indent + self._widths[0] + GAP)) + _line(words)

    def _own(self, column: Column) -> bool:
        """Whether a column stands in this table alone, of all that one was split into."""
        at = next((at for at, one in enumerate(self.columns) if one.split), 0)
        return column in self.columns[at:]

    def _below(self, row: Row) -> str:
        known = [column for column in self.below if row.has(column)]
        texts = [(column, _text(row.cell(column))) for column in known]
        return "; ".join(
            text if column.narrow == "aside" else f"{column.heading} {text}".strip() for column, text in texts
        )

    def _aligned(self, cells: Sequence[Cell], style: str = "") -> Text:
        line = Text(" " * self._indent, no_wrap=self.headed)
        for column, cell, width in zip(self.columns, cells, self._widths, strict=True):
            text = _text(cell)
            space = " " * (width - cell_len(text))
            parts = ((text, cell.style or style), (space, ""))
            line.append_text(Text.assemble(*(parts if column.left else reversed(parts)), " " * GAP))
        line.rstrip()
        return line


# Files


def markdown(grid: Grid) -> str:
    """Return one table of all groups."""
    rows = grid.shown_rows
    columns = present([column for column in grid.columns if column.seen != "screens"], rows)
    lines = [[column.heading for column in columns], ["---" if column.left else "---:" for column in columns]]
    lines += [[_text(cell).replace("|", "\\|") for cell in row.in_order(columns)] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def as_csv(grid: Grid) -> str:
    """Return a line per row with numbers in all their digits."""
    table = io.StringIO()
    writer = csv.DictWriter(table, grid.fields, lineterminator="\n")
    writer.writeheader()
    for row in grid.rows:
        record = row.record
        if record:
            writer.writerow(
                {name: printable(value) if isinstance(value, str) else value for name, value in record.items()}
            )
    return table.getvalue()


def as_json(grid: Grid) -> str:
    """Return the view's document; times are ISO 8601 in UTC."""
    return json.dumps(grid.document, indent=1, allow_nan=False, default=_moment) + "\n"


def _moment(value: Any) -> str:
    if not isinstance(value, datetime):
        raise TypeError(f"no JSON is made of {type(value).__name__}")
    return value.isoformat().replace("+00:00", "Z")


FILES: dict[str, Callable[[Grid], str]] = {"md": markdown, "csv": as_csv, "json": as_json}
"""What a view is as a file, by the word of `--format`."""
