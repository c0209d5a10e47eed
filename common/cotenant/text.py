"""Words that several packages print alike: counted nouns, lists, sizes, and text from files made safe to print."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_MOST_QUOTED = 80
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_ORDINALS = (
    *("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh"),
    *("eighth", "ninth", "tenth", "eleventh", "twelfth"),
)
_HISSING = ("s", "x", "z", "ch", "sh")
"""Endings of nouns with an additional syllable in the plural."""
_SENDERS = {"SIGINT": "Ctrl-C", "SIGHUP": "a closed terminal"}
FORMULA_BEGINNINGS = "=+-@\t\r\uff1d\uff0b\uff0d\uff20"
"""First characters that make a text a formula to a spreadsheet (CWE-1236), also in full width."""
_MARKDOWN = re.compile(r"[\\`*\[\]|~]")


def sender_of(signal_name: str) -> str:
    """Return how a person sends a signal, `Ctrl-C` for SIGINT, or its name if there are several ways."""
    return _SENDERS.get(signal_name, signal_name)


def many(count: int, one: str) -> str:
    """Return `1 launch` or `2 launches`."""
    return f"{count} {noun(count, one)}"


def noun(count: int, one: str) -> str:
    """Return the noun for so many things: `launch` or `launches`."""
    if count == 1:
        return one
    return f"{one}{'es' if one.endswith(_HISSING) else 's'}"


def in_words(count: int) -> str:
    """Return `four`, from thirteen on `13`."""
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)


def ordinal(place: int) -> str:
    """Return `fifth`, from the thirteenth on `13th`."""
    if place < len(_ORDINALS):
        return _ORDINALS[place]
    teen = place % 100 in (11, 12, 13)
    return f"{place}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(place % 10, 'th')}"


def verb(count: int, one: str = "is", several: str = "are") -> str:
    """Return the verb of so many: `is` or `are`."""
    return one if count == 1 else several


def listed(items: Iterable[object], most: int = 4, between: str = ", ") -> str:
    """Return `a, b, c and 5 more`."""
    words = [str(item) for item in items]
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return between.join(words[:most]) + more


def joined(between: str, *parts: str) -> str:
    """Return the parts that are not empty in one text."""
    return between.join(filter(None, parts))


def gib(size_bytes: float) -> str:
    """Return bytes as people compare memory: `1.50 GiB`, below a gibibyte `64 MiB`."""
    return f"{size_bytes / 2**30:.2f} GiB" if size_bytes >= 2**30 else f"{size_bytes / 2**20:.0f} MiB"


def size_words(size_bytes: int) -> str:
    """Return bytes in decimal units, as files and downloads are counted: `31 MB`, `9.6 GB`."""
    size, unit = float(size_bytes), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size >= 999.5:
            size, unit = size / 1000, larger
    return f"{size:.1f} {unit}" if size < 9.95 and unit != "bytes" else f"{size:.0f} {unit}"


def quoted(text: str) -> str:
    """Quote `text` on one line, shortened if it is long."""
    quotation = repr(text)
    return quotation if len(quotation) <= _MOST_QUOTED else f"{quotation[:_MOST_QUOTED]}...'"


def printable(text: str) -> str:
    """Return a text from a file or a log as one line, without a terminal's control sequences."""
    return visible(" ".join(_ESCAPE.sub("", text).split()))


def visible(text: str) -> str:
    """Return a text with its lines and spaces, without control sequences and changes of writing direction."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else "?" for char in _ESCAPE.sub("", text))


def csv_cell(text: str) -> str:
    """Return a text as a cell of CSV; one that a spreadsheet would compute gets an apostrophe before it."""
    line = printable(text)
    return f"'{line}" if line.startswith(tuple(FORMULA_BEGINNINGS)) else line


def markdown_cell(text: str) -> str:
    """Return a text as a cell of a Markdown table: no HTML, no link, no picture and no end of the cell."""
    line = _MARKDOWN.sub(r"\\\g<0>", printable(text)).replace("://", "\\://").replace("www.", "www\\.")
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def is_host(name: str) -> bool:
    """Return whether a text can be looked up as a host: sockets raise UnicodeError for an empty or too long label."""
    try:
        return bool(name.encode("idna"))
    except UnicodeError:
        return False


def endpoint(host: str, port: int) -> str:
    """Return `HOST:PORT`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
