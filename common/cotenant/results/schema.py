"""The record's schema and docs/records.md, generated from the record's types and the table's columns:

python -m cotenant.results.schema record > common/cotenant/results/record.schema.json
python -m cotenant.results.schema page > docs/records.md
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from collections.abc import Iterable
from itertools import pairwise, starmap
from pathlib import Path
from typing import Any

import msgspec

from cotenant.finding import Finding
from cotenant.results import columns
from cotenant.results.record import (
    Blocks,
    DuetPart,
    Enclosed,
    Meeting,
    Observed,
    Record,
    SharedDevice,
    Train,
    TrainItem,
)
from cotenant.stats.budget import Amount
from cotenant.stats.describe import Description
from cotenant.stats.duet import DuetRatio
from cotenant.stats.kept import Kept, Spent

TEMPLATE = Path(__file__).with_name("records.template.md")
TYPES: tuple[type, ...] = (
    Record,
    Train,
    TrainItem,
    Observed,
    Description,
    Meeting,
    Enclosed,
    SharedDevice,
    Blocks,
    Spent,
    Kept,
    DuetPart,
    DuetRatio,
    Amount,
    Finding,
)


def record_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) that every record obeys; its arguments are additional properties."""
    (reference,), definitions = msgspec.json.schema_components([Record], ref_template="#/$defs/{name}")
    for of in TYPES:
        for name, meaning in meanings(of).items():
            definitions[of.__name__]["properties"][name]["description"] = meaning
    body = definitions["Record"]
    del body["properties"]["arguments"]
    body["required"] = list(body["properties"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **reference, "$defs": definitions}


def meanings(of: type) -> dict[str, str]:
    """Return the docstring below each field of a type, by the field's name."""
    (body,) = ast.parse(inspect.getsource(of)).body
    assert isinstance(body, ast.ClassDef)
    meanings_of = {}
    for field, below in pairwise(body.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(meaning))):
                meanings_of[name] = " ".join(meaning.split())
    return meanings_of


def schema_text() -> str:
    """Return the content of the committed schema file."""
    return json.dumps(record_schema(), indent=2) + "\n"


def page_text() -> str:
    """Return the content of docs/records.md: its template with the tables."""
    schema = record_schema()
    of_types = []
    for of in TYPES:
        definition = schema["$defs"][of.__name__]
        if of is not TYPES[0]:
            of_types.append(f"### {of.__name__}\n\n{_paragraphs(definition['description'])}\n")
        fields = definition["properties"].items()
        of_types.append(_table("field", ((name, _kind(field), _meaning(field)) for name, field in fields)))
    tables = {
        "TYPES": "\n".join(of_types),
        "COLUMNS": _columns(columns.COLUMNS),
        "EQUAL": textwrap.fill(", ".join(starmap(_equal, columns.equal_columns().items())), 120),
        "OBSERVATIONS": _columns(columns.OBSERVATION_COLUMNS),
    }
    page = TEMPLATE.read_text(encoding="utf-8")
    for name, table in tables.items():
        page = page.replace(f"@{name}@", table.rstrip("\n"))
    return page


def _equal(word: str, column: columns.RecordColumn) -> str:
    return f"`{word}`" if word == column.name else f"`{word}` (`{column.name}`)"


def _columns(declared: Iterable[columns.RecordColumn]) -> str:
    return _table("column", ((column.name, column.kind.__name__, column.meaning) for column in declared))


def _table(what: str, lines: Iterable[tuple[str, str, str]]) -> str:
    rows = [
        (what, "type", "meaning"),
        ("---", "---", "---"),
        *((f"`{name}`", kind, meaning) for name, kind, meaning in lines),
    ]
    return "".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |\n" for row in rows)


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _meaning(field: dict[str, Any]) -> str:
    meaning = str(field.get("description", ""))
    return f"{meaning} One of: {', '.join(map(str, field['enum']))}." if "enum" in field else meaning


def _kind(field: dict[str, Any]) -> str:
    """Return a field's type in words: `list of Observed`, `number or null`."""
    if "anyOf" in field:
        return " or ".join(map(_kind, field["anyOf"]))
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if field.get("type") == "array":
        return f"list of {_kind(field['items'])}" if field["items"] else "two numbers"
    if field.get("type") == "object":
        inner = field.get("additionalProperties")
        return f"object of {_kind(inner)}" if isinstance(inner, dict) and inner else "object"
    kind = str(field.get("type", "text"))
    return {"integer": "whole number", "boolean": "true or false", "string": "text"}.get(kind, kind)


if __name__ == "__main__":
    sys.stdout.write({"record": schema_text, "page": page_text}[sys.argv[1]]())
