"""Records as rows of the table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import polars as pl

from cotenant.results.record import Record, encode_record, record_of
from cotenant.results.record_files import record_in
from cotenant.results.table import table_of, table_of_records
from results.made import NOON, a_record

Row = dict[str, Any]


def fields_of(**changes: Any) -> dict[str, Any]:
    """The fields of a record's file, with these changes."""
    fields: dict[str, Any] = msgspec.json.decode(encode_record(a_record()))
    return fields | changes


def record_with(**changes: Any) -> Record:
    """The record that is read from a file with these changes."""
    return record_of(fields_of(**changes))


def row_of(fields: dict[str, Any], path: str = "x.json") -> Row:
    return table_of([record_in(fields, path)]).frame.row(0, named=True)


def rows_of(records: Sequence[Record]) -> list[Row]:
    return table_of_records(records).frame.to_dicts()


def frame_of(records: Sequence[Record]) -> pl.DataFrame:
    return table_of_records(records).frame


def launch(name: str = "vae", uid: int = 0, tenants: int = 2, day: float = 0, **place: Any) -> list[Record]:
    """A launch of a job of two tenants."""
    of_all = {"name": name, "run_id": uid, "tenants": 2} | place
    common = {"started": NOON + timedelta(days=day)}
    return [a_record(of_all | {"tenant": at, "vcd": str(at)}, common=common) for at in range(tenants)]
