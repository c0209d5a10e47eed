"""Jobs beside neighbours of known pressure, through the real runner: pairs in the records, a curve from them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from commands.calling import Capture, call
from tenants.suites import Suites, errors


def reported(suites: Suites, capsys: Capture, *words: str) -> dict[str, Any]:
    status, printed, errors = call(capsys, "report", suites.output, *words, "--format", "json")
    assert status == 0, errors
    document: dict[str, Any] = json.loads(printed)
    return document


@pytest.mark.slow
def test_a_launch_yields_a_curve_and_the_records_of_its_pairs(loose: Suites, capsys: Capture) -> None:
    words = ("--jobs", "cpu", "--name", "vae", "--pressure", "cpu:50,100", "--budget", 20)
    loose.run(None, *words, limit_s=500, status=0)
    records = {record["name"]: record for record in loose.records()}
    pairs = [f"vae+pressure_cpu_{level}" for level in (50, 100)]
    assert records.keys() == {f"{label}.in.{pair}" for pair in pairs for label in pair.split("+")}
    for record in records.values():
        assert record["kept"]["n"] >= 6
        assert record["blocks"]["residents"] == 3
        assert {row["kind"] for row in record["observations"] if row["kept"]} == {"all", "only"}
        assert not errors(record)
    half, full = (records[f"pressure_cpu_{level}.in.vae+pressure_cpu_{level}"] for level in (50, 100))
    assert 0.3 < half["statistics"]["median"] / full["statistics"]["median"] < 0.8
    levels = reported(loose, capsys, "--table", "pressure")["rows"]
    assert [row["level"] for row in levels] == [50, 100]
    assert None not in {row["kept_low"] for row in levels}
    assert reported(loose, capsys)["rows"] == []
