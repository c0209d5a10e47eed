"""The record's schema follows from the code, and written records obey it."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
from hypothesis import given
from hypothesis import strategies as st

import cotenant.results.schema
from cotenant.results.record import Outcome, Record, encode_record, plain_record
from cotenant.results.schema import TYPES, meanings
from results.made import VALIDATOR, a_lost_record, a_part, a_record, check_schema, observed

FILE = Path(cotenant.results.schema.__file__).with_name("record.schema.json")


def test_the_file_is_what_the_code_says() -> None:
    command = [sys.executable, "-m", "cotenant.results.schema"]
    source = str(Path(cotenant.results.schema.__file__).parents[2])
    printed = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONPATH": source})
    assert FILE.read_text() == printed.stdout, f"python -m cotenant.results.schema > {FILE}"


def test_the_schema_is_valid_and_describes_every_field() -> None:
    schema = json.loads(FILE.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    body = schema["$defs"]["Record"]
    assert "arguments" not in body["properties"]
    assert set(body["required"]) == set(Record.__struct_fields__) - {"arguments"}
    for name, definition in schema["$defs"].items():
        assert definition["description"], name
    for of in TYPES:
        fields = set(getattr(of, "__struct_fields__", of.__annotations__)) - {"arguments"}
        assert {name for name, meaning in meanings(of).items() if meaning} == fields


def test_every_outcome_writes_a_valid_record() -> None:
    for outcome in msgspec.json.schema(Outcome)["enum"]:
        assert check_schema(encode_record(a_record(outcome=outcome)))["outcome"] == outcome
        check_schema(encode_record(a_lost_record(outcome, "")))


def test_the_schema_refuses_what_is_no_record() -> None:
    wrong = {"train": 0, "schema": "cotenant-record-2", "outcome": "well", "findings": [{"rule": "x"}], "vcd": None}
    fields = plain_record(a_record())
    assert VALIDATOR.is_valid(fields)
    for field, value in wrong.items():
        assert not VALIDATOR.is_valid(fields | {field: value})
        assert not VALIDATOR.is_valid({name: value for name, value in fields.items() if name != field})


def test_what_is_not_finite_becomes_null_everywhere() -> None:
    part = a_part(
        batch_loss=[math.nan, math.inf, 1.0],
        epoch_loss=[-math.inf],
        metrics={"accuracy": math.nan},
        observed={"deep": [{"er": math.inf}]},
        audited=False,
        arguments={"lr": math.inf},
    )
    record = a_record(told={"part": part}, outcome="nan")
    fields = check_schema(encode_record(record))
    assert fields == plain_record(record)
    shown = {"batch_loss": [None, None, 1.0], "epoch_loss": [None], "metrics": {"accuracy": None}, "lr": None}
    assert fields | shown | {"observed": {"deep": [{"er": None}]}} == fields
    json.dumps(plain_record(record), allow_nan=False)


def test_undecodable_bytes_of_a_path_are_escaped() -> None:
    record = a_record(place={"suite": "s\udcff", "log": "/x/\udce9.log", "command": ["\udc80"]})
    fields = check_schema(encode_record(record))
    assert (fields["suite"], fields["log"], fields["command"]) == ("s\\udcff", "/x/\\udce9.log", ["\\udc80"])


numbers = st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
flags = st.text(min_size=1).filter(lambda name: name not in Record.__struct_fields__)


@given(
    arguments=st.dictionaries(flags, json_values, max_size=4),
    durations_ms=st.lists(st.floats(0.001, 1e6), max_size=12),
    items=st.floats(0, 1e12),
    skip=st.integers(0, 3),
    outcome=st.sampled_from(["completed", "nan", "failed"]),
    message=st.text(),
)
def test_a_record_comes_back_equal(
    arguments: dict[str, Any], durations_ms: list[float], items: float, skip: int, outcome: str, message: str
) -> None:
    told = {"observations": observed(durations_ms, items), "skip": skip, "part": a_part(arguments=arguments)}
    record = a_record(told=told, outcome=outcome, message=message)
    fields = check_schema(encode_record(record))
    flat = {name: fields.pop(name) for name in list(fields) if name not in Record.__struct_fields__}
    assert msgspec.convert({"arguments": flat, **fields}, Record) == record
