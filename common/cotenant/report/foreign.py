"""Tables that others have published, as rows beside ours: a row per system, a column per benchmark family.

Lambda's comparison of GPUs (github.com/lambdal/deeplearning-benchmark) publishes such files, of throughput and of batch
sizes. Our tables have its columns: `name_gpu,num_gpu,watt,price` and the families; 0 means "not measured". The newest
files omit the first column's name and give the number of devices in the system's, as `8xH200`; others are a JSON list.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cotenant.errors import CotenantError
from cotenant.files import content_of
from cotenant.report.tables import INDEX, ColumnWork, Entry, Kind, Line
from cotenant.results.targets import System

OF_SYSTEM = ("num_gpu", "watt", "price")
REMEDY = "--foreign names a CSV or JSON file."
UNNAMED = ""
"""The name of the first column in the newest files."""
_DEVICES = re.compile(r"(?<![A-Za-z0-9])(\d+)x ?(?=[A-Z0-9])")
"""`8x H200` and `4xH100` have numbers of devices; `8x_Texas` is a machine's name, and `p3.16xlarge` a product's."""
_KINDS: Mapping[Kind, re.Pattern[str]] = {
    "batch-size": re.compile(r"(?<![a-z])(batch.?sizes?|bs)(?![a-z])", re.IGNORECASE),
    "throughput": re.compile("throughput", re.IGNORECASE),
}
"""The words in a file's name that tell its kind."""
THEIRS: Mapping[str, Mapping[str, object]] = {
    "bert_base_squad": {"layers": 12, "width": 768, "sequence": 384},
    "bert_large_squad": {"layers": 24, "width": 1024, "sequence": 384},
    "gnmt": {"hidden": 1024, "count": "tokens"},
    "maskrcnn": {"height": 800, "width": 1344},
    "ncf": {"factors": 64, "dropout": 0.5},
    "resnet50": {"arch": "resnet50", "size": 224},
    "ssd": {"backbone": "resnet50"},
    "tacotron2": {"encoder": 512, "units": 1024},
    "transformerxlbase": {"layers": 16, "width": 512, "target": 192, "optim": "lamb"},
    "transformerxllarge": {"layers": 18, "width": 1024, "target": 256, "optim": "adam"},
    "waveglow": {"steps": 12, "units": 512},
}
"""The models that the published families train, as the arguments of our jobs that train the same."""

Row = tuple[int, Mapping[str, object]]


def foreign_lines(path: Path, kind: Kind, ours: Iterable[Line] = ()) -> list[Line]:
    """Return a line per system of the file, named as foreign; an entry is in the column of our equal work.

    Several devices of a foreign system train one model together. Rows with one name and number of devices are one line,
    in which the first row's values count. Raises CotenantError, with the line's number, if the file is no such table,
    or of the other kind by its name.
    """
    named = next((table for table, words in _KINDS.items() if words.search(path.stem)), kind)
    if named != kind:
        raise CotenantError(
            f"{path} is a table of {named}, by its name.", f"Use --table {named}, or name a file of {kind} otherwise."
        )
    works = {work for line in ours for work in line.entries}
    lines: dict[tuple[str, int], Line] = {}
    for number, row in _rows(path):
        if row.get(INDEX):
            line = _line(path, number, row, kind, works)
            first = lines.setdefault((line.system.name, line.members), line)
            first.entries = line.entries | first.entries
    if not lines:
        raise CotenantError(f"{path} has no system.", f"Its first column, {INDEX}, names one in each row.")
    names = Counter(name for name, _ in lines)
    for (name, devices), line in lines.items():
        if names[name] > 1:
            line.name = f"{devices}x {line.name}"
    return [*lines.values()]


def _rows(path: Path) -> list[Row]:
    """Return the rows that are not blank, with their line numbers, or their places in a JSON list."""
    text = read_foreign(path)
    try:
        if text.lstrip().startswith("["):
            objects: list[Any] = json.loads(text)
            if all(isinstance(row, dict) and isinstance(row.get(INDEX), str) for row in objects):
                return list(enumerate(objects, 1))
            raise CotenantError(f"{path} is no list of systems.", f'Each is an object with "{INDEX}" and its families.')
        reader = csv.reader(text.splitlines())
        # Not enumerated: line_num counts blank lines, which the reader skips.
        lines = [(reader.line_num, cells) for cells in reader if cells]
    except (csv.Error, ValueError, RecursionError) as error:
        raise CotenantError(f"{path}: {error}.", REMEDY) from None
    header = lines[0][1] if lines else []
    if header[:1] == [UNNAMED]:
        header[0] = INDEX
    if INDEX not in header:
        raise CotenantError(
            f"{path} has no column {INDEX}.", f"Its header is {INDEX},{','.join(OF_SYSTEM)},<families>."
        )
    # Cells beyond the header have no name and are dropped.
    return [(number, dict(zip(header, cells, strict=False))) for number, cells in lines[1:]]


def read_foreign(path: Path) -> str:
    """Return the text of a published file. Raises CotenantError if it cannot be read."""
    try:
        return content_of(path, follow=True).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CotenantError(f"{path} cannot be read: {error}.", REMEDY) from None


def _line(path: Path, number: int, row: Mapping[str, object], kind: Kind, works: Iterable[ColumnWork]) -> Line:
    numbers = {name.strip(): _number(path, number, name, value) for name, value in row.items() if name != INDEX}
    counted, watt, price = (numbers.pop(column, None) for column in OF_SYSTEM)
    name = str(row[INDEX]).strip()
    named = _DEVICES.findall(name)
    devices = int(named[-1]) if named else int(counted or 1)
    system, whole = System(name, "", devices, watt, price), devices > 1
    entries = {
        _work(family, whole, works): Entry(value, None, None)
        if kind == "throughput"
        else Entry(math.nan, round(value), None)
        for family, value in numbers.items()
        if value is not None
    }
    return Line(system, {}, entries, f"{name} (foreign: {path.name})", whole, devices)


def _work(family: str, whole: bool, works: Iterable[ColumnWork]) -> ColumnWork:
    """Return the column of a published family: our column with the same model, else one of its own."""
    theirs = THEIRS.get(family, {})
    of_family = (work for work in works if (work.family, work.whole) == (family, whole))
    same = [work for work in of_family if work.arguments.items() >= theirs.items()]
    if same and (theirs or len(same) == 1):
        return same[0]
    return ColumnWork(family, json.dumps(theirs, sort_keys=True) if theirs else "", whole)


def _number(path: Path, number: int, name: str, value: object) -> float | None:
    """Return a number above 0; None for an empty cell, and for 0 and NaN, which mean the same."""
    text = "" if value is None else str(value)
    try:
        seen = float(text.strip() or 0)
    except ValueError:
        seen = -1.0
    if math.isnan(seen):
        return None
    if not 0 <= seen < math.inf:
        raise CotenantError(f"{path}, line {number}: {name} is {text!r}, no number.", "Empty cells are not known.")
    return seen or None
