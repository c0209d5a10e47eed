"""`record.schema.json`, generated from the record's types:

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
from cotenant.results.record import Enclosed, Meeting, Observed, Record, Train, TrainItem
from cotenant.stats.budget import Amount
from cotenant.stats.describe import Description

TYPES: tuple[type, ...] = (Record, Train, TrainItem, Observed, Description, Meeting, Enclosed, Amount, Finding)


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
    """Return what the text below each field of a type says of it."""
    (body,) = ast.parse(inspect.getsource(of)).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for one, below in pairwise(body.body):
        match one, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(meaning))):
                found[name] = meaning
    return found


def text() -> str:
    """Return the schema as the committed file has it."""
    return json.dumps(record_schema(), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
