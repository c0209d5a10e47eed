"""The grid: what every view of records yields. Renderers alone know how one looks in a terminal, a file or a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cotenant.report import numbers

Words = tuple[tuple[str, str], ...]
"""A line in parts, each with its style."""
Value = str | int | float | None

STYLES = {"PASSED": "green", "error": "bold red", "warning": "yellow", "info": "dim"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a row: `text` for people; `values` for programs, by field and with all digits, None for unknown.

    `note` stands small beside the text, `heat` (0 to 100) shades it on a page, `link` is a place on the page.
    """

    text: str = numbers.ABSENT
    values: Mapping[str, Value] = field(default_factory=dict)
    style: str = ""
    note: str = ""
    heat: int | None = None
    link: str = ""


BLANK = Cell("")


@dataclass(frozen=True, slots=True)
class Column:
    """One column as people see it. An `optional` one is left out where no row has anything in it.

    On a terminal too narrow for all columns, those to `drop` are left out; the last of the others, as many as have no
    room, stand on a line below each row, after their headings. `seen`: `files` leaves it to Markdown, where a terminal
    and a page have a heading or a note instead; `screens` to these two. `words` are sentences, which a page may break.
    """

    key: str
    heading: str
    left: bool = False
    optional: bool = False
    drop: bool = False
    seen: Literal["everywhere", "files", "screens"] = "everywhere"
    words: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """Cells by their columns' keys. Without cells a row is for programs alone, and for people without `values` of any.

    `values` are those that stand in no cell; `notes` are lines below the row.
    """

    cells: Mapping[str, Cell] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)
    notes: Sequence[Words] = ()

    def cell(self, column: Column) -> Cell:
        """Return what stands in a column."""
        return self.cells.get(column.key, BLANK)

    def in_order(self, columns: Sequence[Column]) -> list[Cell]:
        """Return what stands in these columns."""
        return [self.cell(column) for column in columns]

    def has(self, column: Column) -> bool:
        """Whether there is something in a column."""
        return self.cell(column).text not in ("", numbers.ABSENT)

    @property
    def record(self) -> dict[str, Value]:
        """All values by field."""
        return {
            name: value
            for values in (*(cell.values for cell in self.cells.values()), self.values)
            for name, value in values.items()
        }


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows under one heading: a `title`, and `facts` that hold for all of them. `notes` are lines below."""

    rows: Sequence[Row]
    title: str = ""
    facts: str = ""
    notes: Sequence[Words] = ()

    @property
    def shown_rows(self) -> list[Row]:
        """The rows that people see."""
        return [row for row in self.rows if row.cells]


@dataclass(frozen=True, slots=True)
class Grid:
    """A view. `fields` are the columns of its CSV form, `document` is its JSON form.

    In a terminal every group is a table of its own; `joined` ones share their columns' widths and one header.
    """

    columns: Sequence[Column]
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


def present(columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
    """Return the columns without the optional ones in which no row has anything."""
    return [column for column in columns if not column.optional or any(row.has(column) for row in rows)]


def table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    title: str = "",
    facts: str = "",
    notes: Sequence[Words] = (),
) -> Grid:
    """Return a grid of one group, from cells in the columns' order."""
    keys = [column.key for column in columns]
    return Grid(columns, [RowGroup([Row(dict(zip(keys, cells, strict=True))) for cells in rows], title, facts, notes)])


def word(text: str, name: str = "", style: str = "") -> Cell:
    """Return a text's cell; for programs it is the field `name`."""
    return Cell(text, {name: text} if name else {}, style)


def number(value: float | None, show: Callable[[float], str], name: str = "") -> Cell:
    """Return a number's cell; for programs it is the field `name`."""
    return Cell(numbers.ABSENT if value is None else show(value), {name: value} if name else {})


def measured_columns(key: str, heading: str, n: str = "n") -> tuple[Column, Column, Column]:
    """Return the columns of a number, its 95 % interval and its n."""
    return Column(key, heading), Column(f"{key} interval", "95 % interval"), Column(f"{key} n", n)


def measured(
    key: str,
    value: float | None,
    interval: tuple[float, float] | None,
    n: str,
    counts: Mapping[str, Value],
    show: Callable[[float], str] = numbers.rate,
    span: Callable[[float, float], str] = numbers.interval,
    ends: tuple[str, str] | None = None,
) -> dict[str, Cell]:
    """Return the cells of `measured_columns`; for programs the fields `key`, `key_low`, `key_high` and the counts.

    `ends` are other names for the ends of the interval. Without a value all are absent.
    """
    if value is None:
        return dict.fromkeys((key, f"{key} interval", f"{key} n"), Cell())
    low, high = ends or (f"{key}_low", f"{key}_high")
    found = dict(zip((low, high), interval or (None, None), strict=True))
    return {
        key: number(value, show, key),
        f"{key} interval": Cell(numbers.span(interval, span), found),
        f"{key} n": Cell(n, counts),
    }
