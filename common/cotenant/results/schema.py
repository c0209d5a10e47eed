"""`record.schema.json`, generated from the record's types:

python -m cotenant.results.schema > common/cotenant/results/record.schema.json
"""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec

from cotenant.results.record import Record


def record_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) that every record obeys; its arguments are additional properties."""
    (reference,), definitions = msgspec.json.schema_components([Record], ref_template="#/$defs/{name}")
    body = definitions["Record"]
    del body["properties"]["arguments"]
    body["required"] = list(body["properties"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **reference, "$defs": definitions}


def text() -> str:
    """Return the schema as the committed file has it."""
    return json.dumps(record_schema(), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
