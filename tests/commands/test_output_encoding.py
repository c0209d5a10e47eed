"""A terminal or a pipe of another encoding than UTF-8, and a reader that leaves (`| head`), end no command."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from commands.calling import write
from cotenant.cli import main
from cotenant.commands.output import note
from patience import HANG_S
from report.making import launch, solo
from results.made import NOON


def test_a_name_in_another_encoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    records = write(tmp_path / "ré", launch("vaé"))
    for words, shown in (
        (["report"], b"va?"),
        (["report", "--format", "md"], b"va?"),
        (["mlbench-report", "--reports"], b"va?"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
            assert main([*words, str(records)]) == 0
            sys.stdout.flush()
            said = sys.stdout.buffer.getvalue()  # type: ignore[attr-defined]
        assert shown in said, words
    assert "Traceback" not in capsys.readouterr().err


def status_without_a_reader(*words: object) -> tuple[int, str]:
    """Return the exit status and the standard error of a command whose standard output nobody reads any more."""
    left, output = os.pipe()
    os.close(left)
    try:
        entry = [sys.executable, "-c", "from cotenant.__main__ import entry; entry()", *map(str, words)]
        ended = subprocess.run(entry, stdout=output, stderr=subprocess.PIPE, text=True, check=False, timeout=HANG_S)
    finally:
        os.close(output)
    return ended.returncode, ended.stderr


@pytest.mark.slow
def test_without_a_reader_the_status_is_what_it_would_be(tmp_path: Path) -> None:
    """The commands print tables, a plan, and a verdict on launches that are a fifth slower than the day before."""
    places = [tmp_path / "a", tmp_path / "b"]
    for place, mean_ms, days in zip(places, (500.0, 600.0), (0, 1), strict=True):
        for uid in range(5):
            started = NOON + timedelta(days=days, minutes=uid)
            write(place, launch("vae", uid, mean_ms=mean_ms, started=started))
            write(place, solo("vae", uid, started=started))
    assert status_without_a_reader("report", places[0], "--table", "interference") == (0, "")
    assert status_without_a_reader("compare", *places, "--fail-on", "slower") == (3, "")
    assert status_without_a_reader("plan", "--json", "--isolation", "none") == (0, "")


def test_notes_that_nobody_reads_end_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    left, errors = os.pipe()
    os.close(left)
    with open(errors, "w") as stream, monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", stream)
        note("of the first launch")
        note("of the second")
        assert os.fstat(stream.fileno()).st_rdev == Path(os.devnull).stat().st_rdev
