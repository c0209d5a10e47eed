"""Exported rows: writes Parquet, CSV or JSON lines, whole or not at all; reads Parquet and JSON lines.

A Parquet file contains its own digest, which is checked before anything decodes the file: polars writes no page
checksums, and from wrong bytes its decoder may return wrong values or broken columns, or end the process. The digest is
the SHA-256 of the file with zeros in the digest's place, and an entry of the key-value metadata, so that every Parquet
reader can read the file.

Lines are decoded one by one: a damaged line is named, the others are kept. A damaged Parquet file is not read at all.
"""

from __future__ import annotations

import hashlib
import itertools
import mmap
import re
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from cotenant.decoding import Whole, decoded
from cotenant.errors import CotenantError
from cotenant.frames import pl, register_io_source
from cotenant.results import columns
from cotenant.results.columns import schema
from cotenant.results.export_form import export_form
from cotenant.results.openmetrics import write_openmetrics
from cotenant.results.skipped import NAMED, Skipped
from cotenant.results.store import written_whole
from cotenant.results.table import Table, table_of_rows
from cotenant.text import FORMULA_BEGINNINGS, many, verb

BATCH_ROWS = 20_000
ROW_GROUP = 100_000
OTHER_FILE = "--out names another file."
_FORMULA = f"^[{re.escape(FORMULA_BEGINNINGS)}]"
_ESCAPE = r"\x1b\[[0-?]*[ -/]*[@-~]"
_CONTROL = r"[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]--[\t\n\r]]"
"""Characters that control a terminal or reverse the order of letters, except tabs and line ends."""

_MARK = b"cotenant.sha256:"
_ZEROS = b"0" * 64
METADATA = {"cotenant.seal": (_MARK + _ZEROS).decode()}
"""The metadata of a file that is to be sealed."""
UNSEALED = (
    "it has no seal: it is cut off, or not of the command `export` (rows of other programs are read as JSON lines)"
)
CHANGED = "its seal says that it was changed or cut off after it was exported"
NOT_ROWS = "it holds observations; export again without --observations"

# Writing


def write_parquet(rows: pl.LazyFrame, path: Path) -> None:
    """A row per record, sealed, which `report` reads; `help records` explains the columns."""
    rows.sink_parquet(path, row_group_size=ROW_GROUP, metadata=METADATA)
    seal(path)


def write_csv(rows: pl.LazyFrame, path: Path) -> None:
    """The same for spreadsheets; texts that one would compute get an apostrophe in front."""
    texts = pl.col(pl.String).str.replace_all(_ESCAPE, "").str.replace_all(_CONTROL, "?")
    rows.with_columns(texts.str.replace(_FORMULA, "'$0")).sink_csv(path)


def write_jsonl(rows: pl.LazyFrame, path: Path) -> None:
    """The same as lines of JSON."""
    rows.sink_ndjson(path)


WRITERS: dict[str, Callable[[pl.LazyFrame, Path], None]] = {
    "parquet": write_parquet,
    "csv": write_csv,
    "jsonl": write_jsonl,
    "openmetrics": write_openmetrics,
}


def write_rows(batches: Iterable[pl.DataFrame], types: pl.Schema, path: Path, form: str) -> None:
    """Write batches of rows to `path`, which exists once all are written. Unknown values are null.

    polars' streaming engine takes the batches one by one while it writes, so that only a few are in memory. Raises
    CotenantError if the file cannot be written.
    """
    rest = iter(batches)
    # Take the first batch before polars begins: if it raised later, polars might make its file after ours was removed.
    first = list(itertools.islice(rest, 1))

    broken: list[Exception] = []

    def source(*_: object) -> Iterator[pl.DataFrame]:
        try:
            for batch in itertools.chain(first, rest):
                yield batch.select(list(types)).with_columns(pl.col(pl.String).replace("", None))
        except Exception as error:
            # End the rows here, so that polars closes its file before we remove it.
            broken.append(error)

    if form == "parquet" and path.exists() and not path.is_file():
        raise CotenantError(f"{path} is no regular file, and a Parquet file's digest is written into it.", OTHER_FILE)
    with written_whole(path, OTHER_FILE) as temporary:
        try:
            WRITERS[form](register_io_source(source, schema=types), temporary)
        except pl.exceptions.PolarsError as error:
            raise CotenantError(f"{path} cannot be written: {str(error).partition(chr(10))[0]}.", OTHER_FILE) from None
        if broken:
            raise broken[0]


# Reading


def read_export(path: Path) -> Iterator[Table | Skipped]:
    """Yield the rows of an exported file, of JSON lines in tables of at most BATCH_ROWS, and its damaged parts."""
    form = export_form(path)
    parts: Iterable[Table | str]
    parts = [NOT_ROWS] if form == "observations" else _parquet(path) if form == "parquet" else _lines(path)
    for part in parts:
        yield Skipped(str(path), part) if isinstance(part, str) else part


def _line_decoder() -> msgspec.json.Decoder[Any]:
    fields: list[Any] = []
    for column in columns.COLUMNS:
        kind: Any = Whole if column.kind is int else column.kind
        fields.append((column.name, kind) if column.needed else (column.name, kind | None, None))
    return msgspec.json.Decoder(msgspec.defstruct("ExportedRow", fields, kw_only=True, gc=False))


def _lines(path: Path) -> Iterator[Table | str]:
    """Yield the tables of a file, and a clause on each of its damaged parts."""
    decoder, types, damaged = _line_decoder(), schema(), 0
    with path.open("rb") as file:
        numbered = enumerate(file, 1)
        while batch := list(itertools.islice(numbered, BATCH_ROWS)):
            rows = []
            for number, line in batch:
                try:
                    rows.append(decoded(decoder, line))
                except msgspec.DecodeError as error:
                    if not line.strip():
                        continue
                    damaged += 1
                    if damaged <= NAMED:
                        yield f"line {number}: {error}"
            if rows:
                yield table_of_rows(pl.LazyFrame({name: list(map(attrgetter(name), rows)) for name in types}, types))
    if damaged > NAMED:
        yield f"{damaged - NAMED} more lines are damaged"


def _parquet(path: Path) -> Iterator[Table | str]:
    """Yield the table of a file, and a clause on its fault."""
    needed = [column.name for column in columns.COLUMNS if column.needed]
    try:
        if broken := broken_seal(path):
            yield broken
            return
        lazy = pl.scan_parquet(path)
        there = lazy.collect_schema()
        if "observation" in there:
            yield NOT_ROWS
            return
        if missing := [name for name in needed if name not in there]:
            yield f"it holds no exported records: there is no column '{missing[0]}'"
            return
        typed = [
            pl.col(name).cast(kind) if name in there else pl.lit(None, kind).alias(name)
            for name, kind in schema().items()
        ]
        table = table_of_rows(lazy.select(typed).drop_nulls(needed))
        lost = lazy.select(pl.len()).collect().item() - len(table)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        first_line = next(iter(str(error).splitlines()), type(error).__name__)
        yield f"it cannot be read ({first_line})"
        return
    if lost:
        yield f"{many(lost, 'row')} {verb(lost, 'lacks', 'lack')} one of {', '.join(needed)}"
    yield table


# The seal


def seal(path: Path) -> None:
    """Write a file's digest into its METADATA. Raises OSError, and ValueError if it has no METADATA."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        at = content.rfind(_MARK + _ZEROS) + len(_MARK)
        if at < len(_MARK):
            raise ValueError(f"{path} was written without METADATA")
        content[at : at + len(_ZEROS)] = hashlib.sha256(content).hexdigest().encode()


def broken_seal(path: Path) -> str | None:
    """Return the fault of a Parquet file's seal, or None if it is intact. Raises OSError."""
    if not path.stat().st_size:
        return UNSEALED
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = content.rfind(_MARK) + len(_MARK)
        if at < len(_MARK):
            return UNSEALED
        with memoryview(content) as parts:
            digest = hashlib.sha256(parts[:at])
            digest.update(_ZEROS)
            digest.update(parts[at + len(_ZEROS) :])
        return None if content[at : at + len(_ZEROS)] == digest.hexdigest().encode() else CHANGED
