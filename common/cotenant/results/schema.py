"""The record's JSON Schema, made from the record's types:

python -m cotenant.results.schema > common/cotenant/results/record.schema.json
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from itertools import pairwise
from typing import Any

import msgspec

from cotenant.finding import Finding
from cotenant.results.record import (
    Attested,
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
    for struct in TYPES:
        for name, meaning in meanings(struct).items():
            definitions[struct.__name__]["properties"][name]["description"] = meaning
    body = definitions["Record"]
    del body["properties"]["arguments"]
    body["required"] = list(body["properties"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **reference, "$defs": definitions}


def meanings(struct: type) -> dict[str, str]:
    """Return the docstring below each field of a type, by the field's name."""
    (body,) = ast.parse(inspect.getsource(struct)).body
    assert isinstance(body, ast.ClassDef)
    meanings_of = meanings(Attested) if struct is Record else {}
    for field, below in pairwise(body.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(meaning))):
                meanings_of[name] = " ".join(meaning.split())
    return meanings_of


def schema_text() -> str:
    """Return the content of the committed schema file."""
    return json.dumps(record_schema(), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
