"""A view as text in a terminal, as Markdown, CSV, JSON and as a table of a page: one way each for all views.

Text from files is printed without control sequences. An absent number is a dash, empty or null.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from cotenant.report.numbers import ABSENT
from cotenant.report.view import COMMAND, Cell, Column, View, Words
from cotenant.text import csv_cell, markdown_cell, printable, visible

if TYPE_CHECKING:
    from jinja2 import Template

GAP = 2
_WORD = re.compile("[^ ]+")
WIDTH_OF_FILES = 200
"""The characters per line of tables that are not printed on a terminal."""


SCHEMA = "cotenant-view-1"


class ShownRow(NamedTuple):
    """A row for people: its cells by column, and the lines below it."""

    cells: Mapping[Column, Cell]
    notes: Sequence[Words]

    def has(self, column: Column) -> bool:
        """Return whether a column has a text in this row."""
        return self.cells[column].text not in ("", ABSENT)


class ShownRows(NamedTuple):
    """A group of rows with its title, the facts common to all rows, and the lines below it."""

    title: str
    facts: str
    lines: Sequence[ShownRow]
    notes: Sequence[Words]


def drawn(view: View) -> list[ShownRows]:
    """Return the groups of a view with the cells that people see."""
    return [
        ShownRows(
            group.title,
            group.facts,
            [ShownRow({column: column.cell(row) for column in view.columns}, view.below(row)) for row in group.each()],
            group.notes,
        )
        for group in view.shown
    ]


def _known(columns: Iterable[Column], groups: Sequence[ShownRows]) -> list[Column]:
    """Return the columns without optional ones that are empty in all rows."""
    lines = [line for group in groups for line in group.lines]
    return [column for column in columns if not column.optional or any(line.has(column) for line in lines)]


# A terminal


def show(views: Iterable[View], console: Console | None = None) -> None:
    """Print views below each other; on a terminal they are wrapped to its width."""
    console = console or Console()
    if not console.is_terminal:
        # In a notebook rich would display the text instead of printing it.
        console = Console(file=console.file, width=WIDTH_OF_FILES, force_jupyter=False)
    with may_leave():
        for view in views:
            for line in terminal(view, console.width):
                _print(line, console)


def may_leave() -> contextlib.AbstractContextManager[object]:
    """Return a context for printing by rich, which would end the program once its reader is gone (`... | head`).

    A missing reader is no failure: the program continues after the printing.
    """
    return contextlib.suppress(SystemExit)


def _print(line: Text, console: Console) -> None:
    """Print a line. Wrapped text keeps its indent; the terminal itself wraps rows of tables."""
    indent = len(line.plain) - len(line.plain.lstrip())
    unbound = bool(line.no_wrap) or not console.is_terminal
    if unbound or not indent or line.cell_len <= console.width:
        console.print(line, soft_wrap=unbound, highlight=False)
        return
    for part in line[indent:].wrap(console, console.width - indent):
        part.rstrip()
        console.print(Text(" " * indent) + part, soft_wrap=True, highlight=False)


def terminal(view: View, width: int) -> Iterator[Text]:
    """Yield the lines for a terminal of `width` columns; lines of tables do not wrap."""
    if view.title:
        yield Text(printable(view.title), "bold", no_wrap=True)
    columns = [column for column in view.columns if column.seen != "files"]
    groups = drawn(view)
    table = _Table(columns, groups, width)
    if view.joined and table.headed:
        yield table.header()
    for group in groups:
        yield from _heading(group, width)
        if not view.joined:
            table = _Table(columns, [group], width)
            if table.headed and group.lines:
                yield table.header()
        yield from table.lines(group.lines)
        yield from map(_line, group.notes)
        if group.title and not view.joined:
            yield Text("")
    yield from map(_line, view.lines)


def _heading(group: ShownRows, width: int) -> Iterator[Text]:
    """Yield a group's title and facts: on two lines if they do not fit on one."""
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
    """Return as much of a text as fits: its beginning, for a name also its end."""
    if cell_len(text) <= room:
        return text
    end = text[len(text) - room // 3 :] if is_name else ""
    while cell_len(text) + cell_len(end) >= room:
        text = text[:-1]
    return f"{text.rstrip()}…{end}"


def _fitted(columns: Sequence[Column], widths: Sequence[int], width: int) -> Sequence[int]:
    """Return the widths, with `least` columns narrowed if they and the columns before them then fit."""
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
    """Aligned columns, and `below` each row the columns that do not fit. Without headings it is a list, which wraps."""

    def __init__(self, columns: Sequence[Column], groups: Sequence[ShownRows], width: int) -> None:
        columns, lines = _known(columns, groups), [line for group in groups for line in group.lines]
        self.headed = any(column.heading for column in columns)
        self._indent = 0 if self.headed else GAP
        widths = [
            # A matrix also has names from files as headings.
            max(map(cell_len, (printable(column.heading), *(_text(line.cells[column]) for line in lines))))
            for column in columns
        ]
        if self.headed:
            widths = [*_fitted(columns, widths, width)]
        ends = accumulate(column_width + GAP for column_width in widths)
        fitting = max(1, sum(end - GAP <= width for end in ends)) if self.headed else len(columns)
        self.columns, self.below, self._widths = columns[:fitting], columns[fitting:], widths[:fitting]

    def header(self) -> Text:
        return self._aligned([Cell(column.heading) for column in self.columns], "bold")

    def lines(self, rows: Sequence[ShownRow]) -> Iterator[Text]:
        """Yield the lines of rows."""
        for row in rows:
            yield self._aligned([row.cells[column] for column in self.columns])
            cells = [(printable(column.heading), row.cells[column]) for column in self.below if row.has(column)]
            parts = [
                Text.assemble((f"{name} ".lstrip(), "dim"), (_text(cell), cell.style or "dim")) for name, cell in cells
            ]
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


def markdown(view: View) -> str:
    """Return one table of all groups."""
    groups = drawn(view)
    columns = _known((column for column in view.columns if column.seen != "screens"), groups)
    lines = [[markdown_cell(column.heading) for column in columns]]
    lines += [["---" if column.left else "---:" for column in columns]]
    lines += [
        [markdown_cell(_text(line.cells[column])) for column in columns] for group in groups for line in group.lines
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def as_csv(view: View) -> str:
    """Return a line per row, numbers with all digits; a spreadsheet reads no text as a formula."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(map(csv_cell, view.fields))
    for values in view.frame.iter_rows():
        writer.writerow(csv_cell(value) if isinstance(value, str) else value for value in values)
    return table.getvalue()


def as_json(view: View) -> str:
    """Return the view with the meanings of its fields; times are ISO 8601 in UTC."""
    return json.dumps(document(view), indent=1, allow_nan=False, default=_plain) + "\n"


def document(view: View) -> dict[str, Any]:
    """Return the JSON form of a view: its name, the meanings of its columns, and the rows as objects."""
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
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} is no value of a row")


FILES: dict[str, Callable[[View], str]] = {"md": markdown, "csv": as_csv, "json": as_json}
"""The writer of a view as a file, by the word of `--format`."""


# A page

MARKS = {"green": "good", "yellow": "some", "bold red": "bad", "dim": "soft"}


def html(view: View, without: Collection[str] = ()) -> Markup:
    """Return a table per group, `without` the columns with these headings; texts are escaped."""
    seen = [column for column in view.columns if column.seen != "files" and column.heading not in without]
    groups = drawn(view)
    columns = _known(seen, groups)
    return Markup(template("view.html.j2").render(columns=columns, groups=groups, marks=MARKS, printable=printable))


@functools.cache
def template(name: str) -> Template:
    """Return a template of a page, which escapes everything and makes control characters visible."""
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
