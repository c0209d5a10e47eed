"""Whatever stands in the files, every command ends with 0 or with a sentence, and names each file that is no record.

The slow tier has more than 10,000 examples, the fast one some dozens.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commands.calling import Capture, call
from cotenant.cli import main
from cotenant.results.columns import schema
from cotenant.results.exports import write_rows
from cotenant.results.read import read_records, read_tables
from cotenant.results.record import encode_record
from cotenant.results.table import Table
from report.making import BUSY, launch, lost, power, scaling

SCRIPT = "<script>alert(1)</script>"
MARKUP = ['"><img src=x onerror=1>', "[red]", "[/]", "{{ 7 }}", "a|b", "=1+1", "\x1b[31m", "\x00", "\n\r\t"]
MARKUP += ["\ud800", "\u202e", "$x$"]
ODD = st.one_of(
    st.sampled_from([SCRIPT, *MARKUP]),
    st.none() | st.booleans() | st.integers() | st.integers(-(2**70), 2**70) | st.floats(),
    st.sampled_from(
        [1e308, -1e308, 5e-324, 2**63, 2**63 - 1, -(2**63), "0,1", [], {}, [[]], [None], "9" * 50, "1" * 5000, 10**400]
    ),
    st.text(max_size=12),
    st.recursive(st.none(), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner)),
)


def sample() -> list[dict[str, Any]]:
    records = [*launch("vae", 0, meters=power([300, 200]), findings=(BUSY,)), *launch("vae", 1)]
    records += [*lost("vae", 2), scaling(1), scaling(2)]
    return [json.loads(encode_record(one)) for one in records]


WHOLE = [json.dumps(one).encode() for one in sample()]


def exported_lines() -> list[bytes]:
    with tempfile.TemporaryDirectory() as directory:
        for number, content in enumerate(WHOLE):
            (Path(directory) / f"{number}.json").write_bytes(content)
        frames = (one.frame for one in read_tables([Path(directory)]) if isinstance(one, Table))
        path = Path(directory, "rows.jsonl")
        write_rows(frames, schema(), path, "jsonl")
        return path.read_bytes().splitlines()


LINES = exported_lines()
WORDS = [
    line.split()
    for line in (
        *(f"report {{}} --format {form}" for form in ("text", "md", "csv", "json")),
        *(
            f"report {{}} --table {table}"
            for table in ("throughput", "batch-size", "speed-up", "scaling", "interference", "pressure")
        ),
        "report {} --table scaling --format json",
        "report {} --table interference --format csv",
        "report {} --save-target {}.out.csv",
        "report {} --html {}.out.html",
        "mlbench-report --reports {} --classic",
        "mlbench-report --reports {} --html {}.out.html --csv {}.out.csv",
        *(f"compare {{}} {{}} --format {form}" for form in ("text", "md", "json", "junit")),
        *(f"export {{}} --out {{}}.out.{form}" for form in ("csv", "jsonl")),
        "export {} --observations --out {}.out.parquet",
    )
]


def said_by(words: list[str], place: Path) -> tuple[int, str, str]:
    """Run a command, whose output has to be UTF-8."""
    out, errors = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=how) for how in ("strict", "backslashreplace")
    )
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main([word.replace("{}", str(place)) for word in words])
    texts = []
    for stream in (out, errors):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    return status, *texts


def check(place: Path, words: list[str]) -> None:
    """Run a command on a place, and assert that each file there was read, or is named with a reason."""
    status, said, errors = said_by(words, place)
    assert status in (0, 2), words
    assert "Traceback" not in errors
    assert "\x1b" not in said
    if status == 2:
        assert errors.splitlines()[-1].startswith("cotenant: ")
    if words[-1] == "json" and status == 0:
        json.loads(said, parse_constant=pytest.fail)
    found = read_records([place])
    for one in found.skipped:
        assert f"{one.path}: {one.reason}; skipped." in errors
    if place.is_dir():
        of_files = {*found.frame["path"]} | {one.path for one in found.skipped}
        assert of_files == {str(path) for path in place.iterdir()}


def examples(fast: int, slow: int) -> Any:
    return pytest.mark.parametrize("count", [fast, pytest.param(slow, marks=pytest.mark.slow)])


def explore(count: int, strategy: st.SearchStrategy[Any], of: Callable[[Path, Any], None]) -> None:
    """Call `of` with `count` examples, each with a new directory."""

    @settings(max_examples=count, suppress_health_check=list(HealthCheck), database=None)
    @given(strategy)
    def each(example: Any) -> None:
        with tempfile.TemporaryDirectory() as directory:
            of(Path(directory), example)

    each()


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Return the content with a few places overwritten or cut out, or with its end cut off."""
    found = bytearray(content)
    for _ in range(draw(st.integers(0, 3))):
        at, length = draw(st.integers(0, len(found))), draw(st.integers(0, 60))
        odd = draw(
            st.binary(max_size=6) | st.sampled_from([b"NaN", b"[", b'"', b"{}", b"1e999", b"\xff", b"null", b"\\ud800"])
        )
        found[at : at + length] = odd
    return bytes(found[: draw(st.integers(0, len(found)))]) if draw(st.integers(0, 4)) == 0 else bytes(found)


@st.composite
def odd_trees(draw: st.DrawFn) -> list[Any]:
    """Return some records with odd values anywhere in them."""
    trees = [json.loads(draw(st.sampled_from(WHOLE))) for _ in range(draw(st.integers(1, 4)))]
    for tree in trees:
        for _ in range(draw(st.integers(0, 3))):
            value: Any = tree
            while isinstance(value, (dict, list)) and value:
                key = draw(
                    st.sampled_from(sorted(value)) if isinstance(value, dict) else st.integers(0, len(value) - 1)
                )
                if draw(st.booleans()):
                    value[key] = draw(ODD)
                    break
                value = value[key]
    return trees


def check_files(directory: Path, contents: list[bytes], words: list[str]) -> None:
    place = directory / "output"
    place.mkdir()
    for number, content in enumerate(contents):
        (place / f"s.R{number}.D0.json").write_bytes(content)
    check(place, words)


CONTENTS = st.one_of(
    st.lists(st.sampled_from(WHOLE).flatmap(damaged), min_size=1, max_size=4),
    odd_trees().map(lambda trees: [json.dumps(tree).encode() for tree in trees]),
)


@examples(12, 8000)
def test_records_of_any_content(count: int) -> None:
    explore(count, st.tuples(CONTENTS, st.sampled_from(WORDS)), lambda place, one: check_files(place, *one))


@examples(8, 2500)
def test_damaged_exports(count: int) -> None:
    """The first line stays whole: nothing else tells that the file is an export."""

    def of(directory: Path, example: tuple[list[bytes], list[str]]) -> None:
        lines, words = example
        path = directory / "rows.jsonl"
        path.write_bytes(b"\n".join([LINES[0], *lines]))
        check(path, words)

    @st.composite
    def odd_line(draw: st.DrawFn) -> bytes:
        fields = json.loads(draw(st.sampled_from(LINES)))
        for name in draw(st.lists(st.sampled_from(sorted(fields)), max_size=3)):
            fields[name] = draw(ODD)
        return json.dumps(fields).encode()

    lines = st.lists(st.sampled_from(LINES).flatmap(damaged) | odd_line(), max_size=4)
    explore(count, st.tuples(lines, st.sampled_from(WORDS[:-1])), of)


def test_pages_show_markup_as_text(tmp_path: Path) -> None:
    (place := tmp_path / "output").mkdir()
    texts = [SCRIPT, *MARKUP]
    for number, content in enumerate(WHOLE):
        fields = json.loads(content)
        for at, name in enumerate(("suite", "name", "hostname", "gpu", "unit", "message", "precision", "vcd")):
            fields[name] = texts[(at + number) % len(texts)]
        for finding in fields["findings"]:
            finding |= {"sentence": SCRIPT, "remedy": MARKUP[0], "rule": SCRIPT}
        (place / f"{number}.json").write_text(json.dumps(fields))
    page = tmp_path / "output.html"
    for words in ("report {} --html {}.html --targets V100", "mlbench-report --reports {} --html {}.html"):
        check(place, words.split())
        assert not {one for one in (SCRIPT, MARKUP[0]) if one in page.read_text()}
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.read_text()


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, capsys: Capture) -> None:
    """A pipe would wait for a writer, and a device may have no end."""
    for number, content in enumerate(WHOLE):
        (tmp_path / f"{number}.json").write_bytes(content)
    os.mkfifo(pipe := tmp_path / "pipe")
    for place in (pipe, Path("/dev/zero")):
        for words in (
            ("report", place),
            ("export", place, "--out", tmp_path / "rows.csv"),
            ("compare", place, tmp_path),
            ("compare", tmp_path, tmp_path, "--noise", place),
            ("mlbench-report", "--reports", place),
            ("mlbench-report", "--reports", tmp_path, "--jobs", place),
            ("mlbench-report", "--reports", tmp_path, "--gpu-model", place),
            ("report", tmp_path, "--table", "throughput", "--systems", place),
            ("run", "--jobs", place),
        ):
            status, _, errors = call(capsys, *words)
            assert status == 2, words
            assert "it is no regular file" in errors or "There is no file" in errors, words
