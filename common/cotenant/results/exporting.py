"""Writing rows for other programs: Parquet, CSV or JSON lines, a batch after the other, and whole or not at all."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from polars.io.plugins import register_io_source

from cotenant.results.detail import detail_of
from cotenant.results.exported import frames
from cotenant.results.observations import observations_of
from cotenant.results.read import exports_among, read_as
from cotenant.results.seal import METADATA, seal
from cotenant.results.skipped import Skipped
from cotenant.results.store import whole
from cotenant.results.table import OBSERVATION_SCHEMA, frame_of

T = TypeVar("T")
BATCH_RECORDS = 500
ROW_GROUP = 100_000
OTHER_FILE = "--out names another file."
_FORMULA = r"^[=+\-@\t\r]"
"""What a spreadsheet takes for a formula at the beginning of a text (CWE-1236)."""


def row_frames(places: list[Path]) -> Iterator[pl.DataFrame | Skipped]:
    """Yield the rows of all records in batches, exported ones as well. Raises CotenantError for a missing place."""
    exports, others = exports_among(places)
    yield from _batches(read_as(others, detail_of), frame_of)
    for path in exports:
        yield from frames(path)


def observation_frames(places: list[Path]) -> Iterator[pl.DataFrame | Skipped]:
    """Yield a row per observation of all records in batches. Raises CotenantError for a missing place."""

    def together(records: list[list[tuple[Any, ...]]]) -> pl.DataFrame:
        return pl.DataFrame(list(itertools.chain.from_iterable(records)), OBSERVATION_SCHEMA, orient="row")

    yield from _batches(read_as(places, observations_of), together)


def write_parquet(rows: pl.LazyFrame, path: Path) -> None:
    """Write sealed Parquet: reports read no other."""
    rows.sink_parquet(path, row_group_size=ROW_GROUP, metadata=METADATA)
    seal(path)


def write_csv(rows: pl.LazyFrame, path: Path) -> None:
    """Write CSV; a text that a spreadsheet would compute gets an apostrophe before it."""
    texts = pl.col(pl.String)
    rows.with_columns(texts.str.replace(_FORMULA, "'$0")).sink_csv(path)


def write_jsonl(rows: pl.LazyFrame, path: Path) -> None:
    rows.sink_ndjson(path)


WRITERS: dict[str, Callable[[pl.LazyFrame, Path], None]] = {
    "parquet": write_parquet,
    "csv": write_csv,
    "jsonl": write_jsonl,
}


def write(batches: Iterable[pl.DataFrame], schema: pl.Schema, path: Path, form: str) -> None:
    """Write batches of rows to `path`, which is there when all are written. What is not known is null.

    polars takes the batches one by one while it writes (its streaming engine), so no more than a few are in memory.
    Raises CotenantError where the file cannot be kept.
    """

    found = iter(batches)
    # Taken before polars begins: where this raises, polars might make its file after ours was taken away.
    first = list(itertools.islice(found, 1))

    def source(*_: object) -> Iterator[pl.DataFrame]:
        for batch in itertools.chain(first, found):
            yield batch.with_columns(pl.col(pl.String).replace("", None))

    with whole(path, OTHER_FILE) as temporary:
        WRITERS[form](register_io_source(source, schema=schema), temporary)


def _batches(found: Iterable[T | Skipped], made: Callable[[list[T]], pl.DataFrame]) -> Iterator[pl.DataFrame | Skipped]:
    batch: list[T] = []
    for one in found:
        if isinstance(one, Skipped):
            yield one
            continue
        batch.append(one)
        if len(batch) == BATCH_RECORDS:
            yield made(batch)
            batch = []
    if batch:
        yield made(batch)
