"""Tables that others have published, as rows beside ours: a CSV file with a system a row, a benchmark family a column.

Lambda's comparison of GPUs (github.com/lambdal/deeplearning-benchmark) publishes such files, of throughput and of batch
sizes. Its own form is ours: `name_gpu,num_gpu,watt,price` and the families; a 0 there is a cell that nobody measured.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

from cotenant.errors import CotenantError
from cotenant.files import open_regular
from cotenant.report.tables import INDEX, Entry, Kind, Line
from cotenant.results.targets import System

OF_SYSTEM = ("num_gpu", "watt", "price")


def foreign_lines(path: Path, kind: Kind) -> list[Line]:
    """Return a line per system of the file, each named as foreign.

    Raises CotenantError for a file that is no such table, with the line's number.
    """
    lines = [_line(path, number, row, kind) for number, row in _rows(path) if row.get(INDEX)]
    if not lines:
        raise CotenantError(f"{path} has no system.", f"Its first column, {INDEX}, names one in each row.")
    return lines


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    """Return the rows with their lines' numbers: blank lines are no rows."""
    try:
        with open_regular(path, follow=True) as file:
            text = file.read().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CotenantError(f"{path} cannot be read: {error}.", "--foreign names a CSV file.") from None
    try:
        reader = csv.DictReader(text.splitlines(), restval="")
        # Its own line_num is that of the blank lines before a row.
        rows = [(reader.reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise CotenantError(f"{path}: {error}.", "--foreign names a CSV file.") from None
    if INDEX not in (reader.fieldnames or ()):
        raise CotenantError(
            f"{path} has no column {INDEX}.", f"Its header is {INDEX},{','.join(OF_SYSTEM)},<families>."
        )
    return rows


def _line(path: Path, number: int, row: dict[str, str], kind: Kind) -> Line:
    numbers = {
        name.strip(): _number(path, number, name, text)
        for name, text in row.items()
        # Under no name lie the cells of a line that is longer than the header.
        if name is not None and name != INDEX
    }
    name, devices = row[INDEX].strip(), numbers.pop("num_gpu", None)
    system = System(name, "", int(devices or 0), numbers.pop("watt", None), numbers.pop("price", None))
    entries = {
        family: Entry(value, None, None) if kind == "throughput" else Entry(math.nan, round(value), None)
        for family, value in numbers.items()
        if value is not None
    }
    return Line(system, {}, entries, f"{name} (foreign: {path.name})")


def _number(path: Path, number: int, name: str, text: str) -> float | None:
    """Return a number above 0; None for an empty cell, and for a 0, which stands for one there."""
    try:
        value = float(text) if text.strip() else 0.0
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise CotenantError(f"{path}, line {number}: {name} is {text!r}, no number.", "Empty cells are not known.")
    return value or None
