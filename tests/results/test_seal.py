"""The digest in an exported file: every other byte is seen, and any reader of Parquet reads the file."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cotenant.results.exporting import write_parquet
from cotenant.results.seal import CHANGED, METADATA, UNSEALED, broken_seal, seal

ROWS = pl.DataFrame({"name": ["vae", "gan"] * 50, "rate": [1.5, 2.5] * 50})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_parquet(ROWS.lazy(), tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def test_a_sealed_file_is_parquet(path: Path) -> None:
    assert broken_seal(path) is None
    assert pl.read_parquet(path).equals(ROWS)


@settings(suppress_health_check=list(HealthCheck), database=None)
@given(st.data())
def test_one_other_byte_breaks_it(path: Path, data: st.DataObject) -> None:
    content = path.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[at]))
    path.write_bytes(content[:at] + bytes([other]) + content[at + 1 :])
    assert broken_seal(path) in (CHANGED, UNSEALED)
    path.write_bytes(content)


@settings(suppress_health_check=list(HealthCheck), database=None)
@given(st.data())
def test_fewer_and_more_bytes_break_it(path: Path, data: st.DataObject) -> None:
    content = path.read_bytes()
    at, length = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(1, 60))
    for damaged in (content[:at] + content[at + length :], content[:at] + bytes(length) + content[at:]):
        path.write_bytes(damaged)
        assert broken_seal(path) in (CHANGED, UNSEALED)
    path.write_bytes(content)


def test_only_what_was_made_for_it_is_sealed(tmp_path: Path) -> None:
    ROWS.write_parquet(tmp_path / "plain.parquet")
    with pytest.raises(ValueError, match="without METADATA"):
        seal(tmp_path / "plain.parquet")
    assert broken_seal(tmp_path / "plain.parquet") == UNSEALED


def test_the_digest_is_of_all_chunks(tmp_path: Path) -> None:
    """A file of more than one chunk, changed near its beginning, in its middle and at its end."""
    path = tmp_path / "large.parquet"
    rows = pl.DataFrame({"number": range(500_000)}).sample(fraction=1, shuffle=True, seed=1)
    rows.write_parquet(path, compression="uncompressed", metadata=METADATA)
    seal(path)
    assert path.stat().st_size > 3_000_000
    content = path.read_bytes()
    for at in (10, len(content) // 2, len(content) - 2000):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert broken_seal(path) == CHANGED
