"""A reader that leaves (`| head`) changes no exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from cotenant.cli import main
from cotenant.results.store import write_record
from report.making import launch, solo
from results.made import NOON


def status_without_a_reader(*words: object) -> tuple[int, str]:
    """Return the exit status of a command whose standard output nobody reads any more, and what it says elsewhere."""
    left, output = os.pipe()
    os.close(left)
    try:
        entry = [sys.executable, "-c", "from cotenant.cli import entry; entry()", *map(str, words)]
        ended = subprocess.run(entry, stdout=output, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    finally:
        os.close(output)
    return ended.returncode, ended.stderr


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    """Five launches, and a day later five that are a fifth slower; tenants were alone in their slices, too."""
    found = [tmp_path / "a", tmp_path / "b"]
    for place, mean_ms, days in zip(found, (500.0, 600.0), (0, 1), strict=True):
        place.mkdir()
        for uid in range(5):
            started = NOON + timedelta(days=days, minutes=uid)
            for record in (*launch("vae", uid, mean_ms=mean_ms, started=started), *solo("vae", uid, started=started)):
                write_record(place, record, started)
    return found


def test_the_status_is_what_it_would_be(places: list[Path], tmp_path: Path) -> None:
    store = tmp_path / "history.jsonl"
    assert main(["history", "add", str(places[0]), "--store", str(store)]) == 0
    assert status_without_a_reader("history", "show", "--store", store) == (0, "")
    assert status_without_a_reader("report", places[0], "--table", "interference") == (0, "")
    assert status_without_a_reader("compare", *places) == (0, "")
    assert status_without_a_reader("compare", *places, "--fail-on", "slower") == (3, "")
