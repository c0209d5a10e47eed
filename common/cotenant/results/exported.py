"""Reading exported rows: Parquet, or JSON lines, in tables of some ten thousand rows at a time.

Lines are decoded by themselves, so a damaged one is named and the others are kept; a Parquet file is whole or none.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl

from cotenant.results.columns import COLUMNS, OBSERVATIONS, ROWS
from cotenant.results.seal import broken_seal
from cotenant.results.skipped import NAMED, Skipped
from cotenant.results.table import SCHEMA, plausible

BATCH_ROWS = 20_000
_PARQUET = b"PAR1"
_HEAD_BYTES = 1 << 16
_NEEDED = ("name", "run_id", "completed", "outcome", "path")

_Whole = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


def _field(name: str, kind: Any) -> tuple[str, Any] | tuple[str, Any, None]:
    of = _Whole if kind is int else kind
    return (name, of) if name in _NEEDED else (name, of | None, None)


_Line = msgspec.defstruct("_Line", [_field(one.name, one.kind) for one in COLUMNS], kw_only=True, gc=False)
_LINES = msgspec.json.Decoder(_Line)


def is_export(path: Path) -> bool:
    """Whether this file holds exported rows or observations, by its first bytes."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return _is_parquet(path, head) or any(_says(head, of) for of in (ROWS, OBSERVATIONS))


def frames(path: Path) -> Iterator[pl.DataFrame | Skipped]:
    """Yield what an exported file holds, and what of it is damaged."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if _says(head, OBSERVATIONS):
        yield Skipped(str(path), _NOT_ROWS)
    elif _is_parquet(path, head):
        yield from _parquet(path)
    else:
        yield from _lines(path)


_NOT_ROWS = "it holds observations; export again without --observations"


def _is_parquet(path: Path, head: bytes) -> bool:
    return head.startswith(_PARQUET) or path.suffix == ".parquet"


def _says(head: bytes, schema: str) -> bool:
    return re.search(rb'"schema"\s*:\s*"' + schema.encode() + b'"', head) is not None


def _lines(path: Path) -> Iterator[pl.DataFrame | Skipped]:
    damaged = 0
    with path.open("rb") as file:
        numbered = enumerate(file, 1)
        while batch := list(itertools.islice(numbered, BATCH_ROWS)):
            rows = []
            for number, line in batch:
                try:
                    rows.append(_LINES.decode(line))
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    if not line.strip():
                        continue
                    damaged += 1
                    if damaged <= NAMED:
                        yield Skipped(str(path), f"line {number}: {str(error) or 'nested too deeply'}")
            if rows:
                yield plausible(_frame(rows).lazy()).collect()
    if damaged > NAMED:
        yield Skipped(str(path), f"{damaged - NAMED} more lines are damaged")


def _frame(rows: Sequence[Any]) -> pl.DataFrame:
    return pl.DataFrame({name: list(map(attrgetter(name), rows)) for name in SCHEMA}, SCHEMA)


def _parquet(path: Path) -> Iterator[pl.DataFrame | Skipped]:
    try:
        if broken := broken_seal(path):
            yield Skipped(str(path), broken)
            return
        lazy = pl.scan_parquet(path)
        schema = lazy.collect_schema()
        if "observation" in schema:
            yield Skipped(str(path), _NOT_ROWS)
            return
        if missing := [name for name in _NEEDED if name not in schema]:
            yield Skipped(str(path), f"it holds no exported records: there is no column '{missing[0]}'")
            return
        known = [
            pl.col(name).cast(of) if name in schema else pl.lit(None, of).alias(name) for name, of in SCHEMA.items()
        ]
        whole = plausible(lazy.select(known).drop_nulls(_NEEDED)).collect(engine="streaming")
        lost = lazy.select(pl.len()).collect().item() - whole.height
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        yield Skipped(str(path), f"it cannot be read ({_first_line(error)})")
        return
    if lost:
        yield Skipped(str(path), f"{lost} rows lack one of {', '.join(_NEEDED)}")
    yield whole


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
