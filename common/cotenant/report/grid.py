"""The grid: the cells of a view, which `report/view.py` takes the place of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from cotenant.report import numbers
from cotenant.report.view import BLANK, COMMAND, STYLES, Cell, Seen, Value, Words

__all__ = [
    "BLANK",
    "COMMAND",
    "STYLES",
    "Cell",
    "Column",
    "Grid",
    "GridColumn",
    "GridGroup",
    "GridRow",
    "Measurement",
    "Row",
    "RowGroup",
    "Seen",
    "T",
    "Value",
    "Words",
    "measured_columns",
    "number",
    "place_columns",
    "present",
    "row",
    "table",
    "text_column",
    "word",
]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class GridColumn(Generic[T]):
    """One column: its heading, and the function `of` that makes an item's cell.

    An `optional` column is left out if no row has anything in it. On a terminal too narrow for all columns, the last
    ones stand on a line below each row, after their headings. Texts of a column with a `least` width are shortened,
    down to that, where it and the columns before it then have room. `seen`:
    `files` shows it in Markdown only, where a terminal and a page have a heading or a note instead; `screens` on these
    two only. `words` are sentences, which a page may break.
    """

    heading: str
    of: Callable[[T], Cell]
    left: bool = False
    optional: bool = False
    seen: Seen = "everywhere"
    words: bool = False
    least: int = 0


Column = GridColumn
"""A column of a grid."""


@dataclass(frozen=True, slots=True)
class GridRow:
    """Cells by column, and `notes`, lines below. Programs read `values`, if there are any, in place of the cells'.

    A row without cells is for programs only, one with empty `values` for people only.
    """

    cells: Mapping[Column[Any], Cell] = field(default_factory=dict)
    values: Mapping[str, Value] | None = None
    notes: Sequence[Words] = ()

    def cell(self, column: Column[Any]) -> Cell:
        """Return the cell of a column."""
        return self.cells.get(column, BLANK)

    def in_order(self, columns: Iterable[Column[Any]]) -> list[Cell]:
        """Return the cells of these columns."""
        return [self.cell(column) for column in columns]

    def has(self, column: Column[Any]) -> bool:
        """Whether a column has a text or a value in this row."""
        return self.cell(column).text not in ("", numbers.ABSENT)

    @property
    def record(self) -> Mapping[str, Value]:
        """All values by field."""
        if self.values is not None:
            return self.values
        return {name: value for cell in self.cells.values() for name, value in cell.values.items()}


def row(columns: Iterable[Column[T]], item: T, notes: Sequence[Words] = ()) -> Row:
    """Return the row of an item."""
    return Row({column: column.of(item) for column in columns}, notes=notes)


Row = GridRow
"""A row of a grid."""


@dataclass(frozen=True, slots=True)
class GridGroup:
    """Rows under one heading: a `title`, and `facts` that hold for all of them. `notes` are lines below."""

    rows: Sequence[Row]
    title: str = ""
    facts: str = ""
    notes: Sequence[Words] = ()

    @property
    def shown_rows(self) -> list[Row]:
        """The rows that people see."""
        return [row for row in self.rows if row.cells]


RowGroup = GridGroup
"""A group of a grid."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A view. `fields` are the columns of its CSV form, `document` is its JSON form.

    In a terminal every group is a table of its own; `joined` ones share their columns' widths and one header.
    """

    columns: Sequence[Column[Any]]
    groups: Sequence[RowGroup]
    title: str = ""
    notes: Sequence[Words] = ()
    joined: bool = False
    fields: Sequence[str] = ()
    document: Any = None

    @property
    def rows(self) -> list[Row]:
        """The rows of all groups."""
        return [row for group in self.groups for row in group.rows]

    @property
    def shown_rows(self) -> list[Row]:
        """The rows of all groups that people see."""
        return [row for row in self.rows if row.cells]


def present(columns: Sequence[Column[Any]], rows: Sequence[Row]) -> list[Column[Any]]:
    """Return the columns without the optional ones in which no row has anything."""
    return [column for column in columns if not column.optional or any(row.has(column) for row in rows)]


def table(
    columns: Sequence[Column[T]], items: Iterable[T], title: str = "", facts: str = "", notes: Sequence[Words] = ()
) -> Grid:
    """Return a grid of one group."""
    return Grid(columns, [RowGroup([row(columns, item) for item in items], title, facts, notes)])


def word(text: str, name: str = "", style: str = "") -> Cell:
    """Return a text's cell; for programs it is the field `name`."""
    return Cell(text, {name: text} if name else {}, style)


def text_column(heading: str, of: Callable[[T], str], name: str = "", **more: Any) -> Column[T]:
    """Return a column of texts; for programs it is the field `name`, and `more` says how a column is shown."""
    return Column(heading, lambda item: word(of(item), name), left=True, **more)


def place_columns(of: Callable[[T], Any], *names: str) -> list[Column[T]]:
    """Return columns of the place where a row was measured, which stands in a heading on a terminal and a page."""

    def cell(name: str, item: T) -> Cell:
        return word(getattr(of(item), name), name)

    return [Column(name, partial(cell, name), left=True, seen="files") for name in names]


def number(value: float | None, show: Callable[[float], str], name: str = "") -> Cell:
    """Return a number's cell; for programs it is the field `name`."""
    return Cell(numbers.ABSENT if value is None else show(value), {name: value} if name else {})


class Measurement(NamedTuple):
    """A number, its 95 % interval or None, its n as written for people, and the counts that programs read.

    `once` says that the reason for no interval is a single launch.
    """

    value: float
    interval: tuple[float, float] | None
    n: str
    counts: Sequence[Value] = ()
    once: bool = False


def measured_columns(
    heading: str,
    of: Callable[[T], Measurement | None],
    fields: Sequence[str],
    n: str = "n",
    show: Callable[[float], str] = numbers.rate,
    span: Callable[[float, float], str] = numbers.interval,
    **more: Any,
) -> Sequence[Column[T]]:
    """Return the columns of a measurement; `fields` name its value, the ends of its interval, and its counts.

    `more` says how all three columns are shown.
    """

    def cell(part: int, item: T) -> Cell:
        if (measurement := of(item)) is None:
            return Cell()
        value, interval, n, counts, once = measurement
        values = dict(zip(fields, (value, *(interval or (None, None)), *counts), strict=False))
        return (Cell(show(value), values), Cell(numbers.span(interval, span, once)), Cell(n))[part]

    headings = (heading, "95 % interval", n)
    return [Column(name, partial(cell, part), **more) for part, name in enumerate(headings)]
