"""A page of sentences, cards, and sections of charts and tables: that of any view but a report of records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from cotenant.report.renderers import Card, template

if TYPE_CHECKING:
    from cotenant.report.page_jobs import Picture


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: its charts, and below them its table."""

    title: str
    pictures: Sequence[Picture]
    table: Markup


def simple_page(
    title: str,
    subtitle: str,
    answer: Sequence[str],
    words: Sequence[str],
    sections: Sequence[Section],
    cards: Sequence[Card] = (),
    skipped: Sequence[str] = (),
) -> str:
    """Return a page: sentences on top, cards, explaining words, and sections; `skipped` are files that are none."""
    return template("simple.html.j2").render(
        title=title, subtitle=subtitle, answer=answer, words=words, sections=sections, cards=cards, skipped=skipped
    )
