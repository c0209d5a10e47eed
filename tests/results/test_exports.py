"""Exported rows: rows that were written are read back, and damaged ones are named and counted."""

from __future__ import annotations

import csv
import json
import math
import re
import weakref
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commands.calling import refusal
from cotenant.errors import CotenantError
from cotenant.results.columns import OBSERVATION_COLUMNS, schema
from cotenant.results.export_form import OBSERVATIONS, ROWS
from cotenant.results.exports import CHANGED, UNSEALED, WRITERS, broken_seal, seal, write_parquet, write_rows
from cotenant.results.read import Records, observation_frames, read_drawn, read_records, read_tables
from cotenant.results.record import Record, encode_record
from cotenant.results.skipped import NAMED
from cotenant.results.table import Rows, Table
from report.making import BUSY, launch, lost, scaling
from results.tabled import frame_of

SCHEMA, OBSERVATION_SCHEMA = schema(), schema(OBSERVATION_COLUMNS)


def records() -> list[Record]:
    return [*launch("vae", 0, findings=(BUSY,)), *launch("vae", 1), *lost("vae", 2), scaling(2)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with the records and a file that is no record."""
    directory = tmp_path / "output"
    directory.mkdir()
    for number, one in enumerate(records()):
        (directory / f"{number}.json").write_bytes(encode_record(one))
    (directory / "foreign.json").write_text("{}")
    return directory


def exported(place: Path, form: str) -> Path:
    path = place.with_name(f"rows.{form}")
    write_rows((one.frame for one in read_tables([place]) if isinstance(one, Table)), SCHEMA, path, form)
    return path


def reasons(found: Records) -> list[str]:
    return [one.reason for one in found.skipped]


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_what_is_exported_comes_back(place: Path, form: str) -> None:
    whole = read_records([place])
    found = read_records([exported(place, form)])
    assert [one.path for one in whole.skipped] == [str(place / "foreign.json")]
    assert found.skipped == ()
    rules = ["at", "rule", "severity"]
    assert found.table.findings.select(rules).equals(whole.table.findings.select(rules))
    assert read_drawn(Rows.all(found.table)) == []
    assert found.frame.select(list(SCHEMA)).equals(whole.frame.select(list(SCHEMA)))


def test_other_programs_read_typed_columns_and_nulls(place: Path) -> None:
    frame = pl.read_parquet(exported(place, "parquet"))
    assert frame.schema == SCHEMA
    assert frame["schema"].unique().to_list() == [ROWS]
    assert frame.filter(~pl.col("completed")).select("rate_items_s", "findings").rows() == [(None, None)] * 2
    assert frame["model"].to_list()[-1] == "resnet50"
    lines = pd.read_json(exported(place, "jsonl"), lines=True)
    table = pd.read_csv(exported(place, "csv"))
    for other in (lines, table):
        assert list(other.columns) == list(SCHEMA)
        assert other["rate_items_s"].tolist() == pytest.approx(frame["rate_items_s"].fill_null(math.nan), nan_ok=True)
        assert other["n"].dropna().tolist() == frame["n"].drop_nulls().to_list()


def test_any_text_comes_through_csv(tmp_path: Path) -> None:
    texts = ['a"b,c', "two\nlines", "a\rb", "  blank ", "=1+2", "@x", "-1", "\tx", "'x", "é<\x00>"]
    texts += ["\x1b[31m=red", "\x1b]0;t\x07\x9b1m"]
    path = tmp_path / "rows.csv"
    row = frame_of(records()[:1])
    write_rows([row.with_columns(message=pl.lit(text)) for text in texts], SCHEMA, path, "csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    plain = [re.sub("[\x00\x07\x1b\x9b]", "?", text.removeprefix("\x1b[31m")) for text in texts]
    assert [row["message"] for row in rows] == ["'" + text if text[0] in "=+-@\t\r" else text for text in plain]
    assert not {"\x1b", "\x07", "\x9b"} & {*path.read_text()}
    assert {row["name"] for row in rows} == {"vae"}


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_observations_are_rows_of_their_own(place: Path, form: str) -> None:
    path = place.with_name(f"observations.{form}")
    batches = [one for one in observation_frames([place]) if isinstance(one, pl.DataFrame)]
    write_rows(batches, OBSERVATION_SCHEMA, path, form)
    table = {"parquet": pl.read_parquet, "csv": pd.read_csv, "jsonl": pl.read_ndjson}[form](path)
    made = [one for record in records() for one in record.observations]
    assert list(table["start_ns"]) == [one.start_ns for one in made]
    assert list(table["data_wait_ns"]) == [one.data_wait_ns for one in made]
    rates = [one.items / (one.end_ns - one.start_ns) * 1e9 for one in made if one.items]
    assert list(table["rate_items_s"]) == pytest.approx(rates)
    assert list(table["kept"])[:6] == [False] * 5 + [True]
    assert set(table["schema"]) == {OBSERVATIONS}
    if form != "csv":
        found = read_records([path])
        assert reasons(found) == ["it holds observations; export again without --observations"]
        assert found.frame.height == 0


def test_an_impossible_observation_has_no_rate(tmp_path: Path) -> None:
    fields = msgspec.json.decode(encode_record(records()[0]))
    fields["observations"][0] |= {"items": None}
    fields["observations"][1] |= {"end_ns": fields["observations"][1]["start_ns"]}
    (tmp_path / "x.json").write_text(json.dumps(fields))
    (frame,) = observation_frames([tmp_path])
    assert isinstance(frame, pl.DataFrame)
    assert frame["observation"].to_list() == list(range(25))
    assert frame["rate_items_s"].is_null().to_list() == [True, True] + [False] * 23


def test_damaged_lines_are_named_and_the_others_kept(place: Path) -> None:
    path = exported(place, "jsonl")
    lines = path.read_text().splitlines()
    fields = json.loads(lines[0])
    bad = ["{", '"text"', "\udcff", json.dumps(fields | {"n": "many"}), json.dumps(fields | {"run_id": 2**63})]
    bad += ["[" * 10**5, json.dumps({name: value for name, value in fields.items() if name != "name"}), lines[1][:50]]
    path.write_bytes("\n".join([lines[0], "", *bad, *lines[1:]]).encode(errors="surrogateescape"))
    read = read_records([path])
    assert read.frame.height == len(lines)
    assert [reason.partition(":")[0] for reason in reasons(read)] == [f"line {3 + i}" for i in range(len(bad))]
    assert "`$.n`" in reasons(read)[3]
    with path.open("a") as file:
        file.write("\n" + "{\n" * NAMED)
    many = reasons(read_records([path]))
    assert (len(many), many[-1]) == (NAMED + 1, f"{len(bad)} more lines are damaged")


def test_damaged_and_foreign_parquet_is_named(place: Path) -> None:
    path = exported(place, "parquet")
    content = path.read_bytes()
    mixed = content[:200] + bytes(400) + content[600:]
    length = len(content).to_bytes(4, "little")
    for reason, contents in (
        (CHANGED, (mixed, content[:-20], content[:-8] + length + b"PAR1")),
        (UNSEALED, (content[:100], b"PAR1", b"", length + b"PAR1")),
    ):
        for damaged in contents:
            path.write_bytes(damaged)
            assert reasons(read_records([path])) == [reason]
    pl.DataFrame({"a": [1]}).write_parquet(path)
    assert reasons(read_records([path])) == [UNSEALED]
    write_parquet(pl.LazyFrame({"a": [1]}), path)
    assert reasons(read_records([path])) == ["it holds no exported records: there is no column 'name'"]


def test_what_cannot_be_is_not_known(place: Path) -> None:
    path = exported(place, "parquet")
    odd = {"rate_items_s": math.inf, "rate_mean_items_s": -1.0, "sd_s": math.nan, "overlap": 2.0, "world_size": -3}
    frame = pl.read_parquet(path).with_columns(**{name: pl.lit(value) for name, value in odd.items()})
    write_parquet(frame.with_columns(name=pl.when(pl.col("run_id") == 1).then("name")).lazy(), path)
    found = read_records([path])
    assert reasons(found) == ["5 rows lack one of name, run_id, completed, outcome, path"]
    assert found.frame.select(*odd).row(0) == (None,) * len(odd)
    assert found.frame["rate_items_s"][0] is None


def test_an_export_among_records_is_not_read_twice(place: Path) -> None:
    exported(place, "jsonl").rename(place / "rows.jsonl")
    found = read_records([place])
    assert found.frame.height == len(records())
    assert "it is an export, which report, compare and mlbench-report read where it is named itself" in reasons(found)
    both = read_records([place, place / "rows.jsonl"])
    assert both.frame.height == 2 * len(records())
    assert len(read_drawn(Rows.all(both.table))) == len(records())


@pytest.mark.parametrize("form", list(WRITERS))
def test_batches_are_written_one_after_the_other(tmp_path: Path, form: str) -> None:
    """No more than a few of sixty batches are in memory at a time."""
    frame = frame_of(records())
    alive: set[int] = set()
    most = 0

    def batches() -> Iterator[pl.DataFrame]:
        nonlocal most
        for number in range(60):
            batch = frame.clone()
            alive.add(number)
            weakref.finalize(batch, alive.discard, number)
            most = max(most, len(alive))
            yield batch
            del batch

    write_rows(batches(), SCHEMA, tmp_path / "rows", form)
    assert most < 20
    if form == "parquet":
        assert pl.scan_parquet(tmp_path / "rows").select(pl.len()).collect().item() == 60 * frame.height


@pytest.mark.parametrize("form", list(WRITERS))
def test_what_fails_leaves_no_file(tmp_path: Path, form: str) -> None:
    frame = frame_of(records())

    def batches() -> Iterator[pl.DataFrame]:
        yield frame
        raise CotenantError("It ended.")

    (tmp_path / "rows").write_text("before")
    assert refusal(write_rows, batches(), SCHEMA, tmp_path / "rows", form) == "It ended."
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]
    assert (tmp_path / "rows").read_text() == "before"


SEALED = pl.DataFrame({"name": ["vae", "gan"] * 50, "rate": [1.5, 2.5] * 50})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_parquet(SEALED.lazy(), tmp_path / "rows.parquet")
    assert broken_seal(tmp_path / "rows.parquet") is None
    assert pl.read_parquet(tmp_path / "rows.parquet").equals(SEALED)
    return tmp_path / "rows.parquet"


@settings(suppress_health_check=list(HealthCheck), database=None)
@given(st.data())
def test_another_byte_fewer_and_more_bytes_break_a_seal(path: Path, data: st.DataObject) -> None:
    content = path.read_bytes()
    at, length = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(1, 60))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[at]))
    changed = content[:at] + bytes([other]) + content[at + 1 :]
    for damaged in (changed, content[:at] + content[at + length :], content[:at] + bytes(length) + content[at:]):
        path.write_bytes(damaged)
        assert broken_seal(path) in (CHANGED, UNSEALED)
    path.write_bytes(content)


def test_only_what_was_made_for_it_is_sealed(tmp_path: Path) -> None:
    SEALED.write_parquet(tmp_path / "plain.parquet")
    with pytest.raises(ValueError, match="without METADATA"):
        seal(tmp_path / "plain.parquet")
    assert broken_seal(tmp_path / "plain.parquet") == UNSEALED
