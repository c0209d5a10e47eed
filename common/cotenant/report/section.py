"""A page as data (title, answer, cards, sections) and its HTML: offline, light, dark and in print.

Everything from files is escaped. One template shows every page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from cotenant.report.renderers import template


class Card(NamedTuple):
    """One number: its name, its value, and a note on it. The `lead` is the card to look at first."""

    name: str
    value: str
    note: str
    lead: bool = False


class Picture(NamedTuple):
    """An SVG element and the words beside it; `narrow` replaces it on a phone.

    `heard` is for screen readers, by default the title and the caption.
    """

    svg: Markup
    title: str
    caption: str = ""
    heard: str = ""
    narrow: Markup | None = None


class Details(NamedTuple):
    """One of several equal parts of a section, in a panel of its own.

    Beside the title are `facts`, and to the right a `figure` with its small `unit`, and a `note`. `links` are names
    with their places on the page. A part with an anchor is folded unless it `is_open`. `pairs` are names with their
    values; `small` pictures are closer together.
    """

    title: str = ""
    sentences: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    table: Markup | None = None
    pairs: Sequence[tuple[str, str]] = ()
    facts: str = ""
    figure: str = ""
    unit: str = ""
    note: str = ""
    links: Sequence[tuple[str, str]] = ()
    anchor: str = ""
    is_open: bool = False
    small: bool = False


class Section(NamedTuple):
    """A part of a page, shown in this order: sentences, a list of `points`, legend, pictures, details, table, code.

    `legend` has lists of signs, each a class of the style sheet, with their meanings. `anchor` and `short` are its
    place and its name in the navigation. A `filtered` table has a search field, and its headings sort it. `code` is
    text to copy.
    """

    title: str
    sentences: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    table: Markup | None = None
    details: Sequence[Details] = ()
    points: Sequence[str] = ()
    code: Sequence[str] = ()
    legend: Sequence[Sequence[tuple[str, str]]] = ()
    anchor: str = ""
    short: str = ""
    filtered: bool = False


class NoticePoint(NamedTuple):
    """A sentence of a notice after its severity, with its remedy and a command to paste, if there are any."""

    sentence: str
    severity: str = ""
    remedy: str = ""
    command: str = ""


class Notice(NamedTuple):
    """A list at the top of a page; failures are an `alarm`. `more` is a link's words and its place."""

    title: str
    points: Sequence[NoticePoint]
    alarm: bool = False
    more: tuple[str, str] | None = None


@dataclass(frozen=True)
class Page:
    """A page: the answer in sentences, the first or all in large letters; cards; sections.

    `pictures` are below the answer, `sentences` below the cards.
    """

    title: str
    subtitle: str
    answer: Sequence[str]
    cards: Sequence[Card]
    sections: Sequence[Section]
    notices: Sequence[Notice] = ()
    pictures: Sequence[Picture] = ()
    sentences: Sequence[str] = ()
    footer: str = ""
    all_large: bool = False

    def html(self) -> str:
        """Return the page as one file."""
        moves = any(section.filtered or any(part.anchor for part in section.details) for section in self.sections)
        return template("page.html.j2").render(page=self, moves=moves)
