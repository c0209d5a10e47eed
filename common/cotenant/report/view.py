"""The view: a frame for programs, and columns for people. Only renderers know how a view looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from cotenant.report import numbers

if TYPE_CHECKING:
    from cotenant.frames import pl

Row = Mapping[str, Any]
"""The values of a row, by field; None for an unknown one."""
Words = tuple[tuple[str, str], ...]
"""A line in parts, each a text with its style."""
Value = str | int | float | None
Seen = Literal["everywhere", "files", "screens"]

COMMAND = "cyan"
"""The style of a command; its line is not wrapped, so that it can be pasted."""
STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}
MEANINGS = {
    "suite": "the name of the job file",
    "host": "the name of the host",
    "job": "the job, with its arguments where several works have its name",
    "group": "student: each user has a slice; all: one launch has the machine",
    "tenant": "the number of a user; null in a row of all users",
    "unit": "the items that rates count per second",
    "isolation": "the backend that held the slices",
    "verdict": "clean, suspect, after 2/3 if only 2 of 3 launches count, or how the launches ended",
    "baseline": "how users ran alone: blocks, whole or quick",
}
"""The meanings of fields that several views have."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One text for people, and how it is shown.

    `note` is small text beside it. On a page, `heat` (0 to 100) shades the cell, `link` and `note_link` are the places
    that text and note lead to, `links` further texts with their places (empty: none), `anchor` makes the cell a place,
    and `order` is the number that sorts the column if the text does not begin with it.
    """

    text: str = numbers.ABSENT
    style: str = ""
    note: str = ""
    heat: int | None = None
    link: str = ""
    note_link: str = ""
    links: Sequence[tuple[str, str]] = ()
    anchor: str = ""
    order: float | None = None


BLANK = Cell("")


@dataclass(frozen=True, eq=False)
class Column:
    """One column for people: its heading, its fields, and the function that shows their values.

    `fields` are one name or several, by default the heading. `show` gets their values and returns a text or a Cell; it
    is not called if the first value is None, shown as a dash, or if a row lacks the field, shown as a blank.

    An `optional` column is left out if no row has anything in it. On a terminal too narrow for all columns, the last
    ones are on a line below each row, after their headings. Texts of a column with a `least` width are shortened, down
    to that, if it and the columns before it then fit. `seen`: `files` shows the column in Markdown only, as a terminal
    and a page have a heading or a note instead; `screens` shows it on these two only. `words` are sentences, which a
    page may wrap.
    """

    heading: str
    fields: str | tuple[str, ...] = ""
    show: Callable[..., str | Cell] = str
    left: bool = False
    optional: bool = False
    seen: Seen = "everywhere"
    words: bool = False
    least: int = 0

    def cell(self, row: Row) -> Cell:
        """Return the cell of a row."""
        first, *more = self.fields if isinstance(self.fields, tuple) else (self.fields or self.heading,)
        if first not in row:
            return BLANK
        if row[first] is None:
            return Cell()
        shown = self.show(row[first], *(row.get(name) for name in more))
        return shown if isinstance(shown, Cell) else Cell(shown)


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Rows that people see under one heading: a `title`, and `facts` that apply to all rows.

    Rows may be the view's, a filter of its frame, or others that only people read; they may have more fields than the
    frame. `notes` are lines below.
    """

    rows: pl.DataFrame | Sequence[Row]
    title: str = ""
    facts: str = ""
    notes: Sequence[Words] = ()

    def each(self) -> Iterable[Row]:
        """Return the rows as mappings."""
        return self.rows if isinstance(self.rows, Sequence) else self.rows.iter_rows(named=True)


@dataclass(frozen=True, eq=False)
class View:
    """Rows for programs, with a meaning for every field, and groups of rows for people.

    Without `groups` people see all rows as one group. In a terminal every group is a table of its own; `joined` ones
    share their columns' widths and one header. `lines` are below all groups, and `below` returns the lines below a row.
    Programs read `notes`, sentences on omissions, and `sentences`, the answers; `parts` are further views in the JSON
    form of this one.
    """

    name: str
    fields: Mapping[str, str] = field(default_factory=dict)
    rows: pl.DataFrame | Sequence[Row] = ()
    columns: Sequence[Column] = ()
    groups: Sequence[RowGroup] = ()
    title: str = ""
    lines: Sequence[Words] = ()
    below: Callable[[Row], Sequence[Words]] = lambda row: ()
    joined: bool = False
    notes: Sequence[str] = ()
    sentences: Sequence[str] = ()
    parts: Sequence[View] = ()

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The rows that programs read."""
        return frame_of(self.fields, self.rows) if isinstance(self.rows, Sequence) else self.rows

    @property
    def shown(self) -> Sequence[RowGroup]:
        """The groups that people see; none if the view is empty."""
        return self.groups or ([RowGroup(self.rows)] if self.columns and len(self.rows) else [])


def common(*names: str) -> dict[str, str]:
    """Return the meanings of fields that several views have."""
    return {name: MEANINGS[name] for name in names}


def frame_of(fields: Iterable[str], rows: Sequence[Row]) -> pl.DataFrame:
    """Return rows as a frame; missing values are null."""
    from cotenant.frames import pl  # views for people only do without polars

    return pl.DataFrame({name: pl.Series([row.get(name) for row in rows], strict=False) for name in fields})


def place_columns(*names: str) -> list[Column]:
    """Return columns with the place of a row's measurement, which terminal and page show in a heading."""
    return [Column(name, left=True, seen="files") for name in names]


def with_ends(name: str, meaning: str, low: str = "", high: str = "") -> dict[str, str]:
    """Return the fields of a value and of the ends of its 95 % interval, by default `<name>_low` and `<name>_high`."""
    end = f"end of the 95 % interval of {name}; null if there is none"
    return {name: meaning, low or f"{name}_low": f"lower {end}", high or f"{name}_high": f"upper {end}"}


def measurement(
    heading: str,
    fields: Sequence[str],
    n: Callable[..., str] = str,
    show: Callable[[float], str] = numbers.rate,
    span: Callable[[float, float], str] = numbers.interval,
    once: Callable[..., bool] = lambda *counts: False,
    **more: Any,
) -> list[Column]:
    """Return the columns of a measurement; `fields` name its value, the ends of its interval, and its counts.

    `n` shows the counts; from them `once` tells whether a single launch is why there is no interval; `more` are
    settings of all three columns.
    """
    value, _, _, *counts = fields

    def around(_: float, low: float | None, high: float | None, *counted: Any) -> str:
        ends = None if low is None or high is None else (low, high)
        return numbers.span(ends, span, once(*counted))

    return [
        Column(heading, value, show, **more),
        Column("95 % interval", tuple(fields), around, **more),
        Column("n", (value, *counts), lambda _, *counted: n(*counted), **more),
    ]
