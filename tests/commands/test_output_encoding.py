"""A terminal or a pipe of another encoding than UTF-8 shows what it can, and ends no command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cotenant.results.store import write_record
from report.making import launch
from results.made import NOON


@pytest.mark.parametrize(
    "words",
    [
        ["report"],
        ["report", "--format", "md"],
        ["mlbench-report", "--reports"],
        ["history", "add", "--store", "{store}"],
    ],
)
def test_a_name_in_another_encoding(tmp_path: Path, words: list[str]) -> None:
    records, store = tmp_path / "ré", tmp_path / "hé.jsonl"
    records.mkdir()
    for record in launch("vaé"):
        write_record(records, record, NOON)
    given = [*(word.format(store=store) for word in words), str(records)]
    ended = subprocess.run(
        [sys.executable, "-c", "from cotenant.cli import entry; entry()", *given],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, "Traceback" in ended.stderr) == (0, False)
    assert "h?.jsonl" in ended.stdout or "va?" in ended.stdout
