"""`list` as people call it: facts of a benchmark's source, and of the last launches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from commands.calling import Capture, call, write
from cotenant.finding import Finding
from cotenant.report.catalogue import CatalogueEntry, catalogue_view
from cotenant.results.last import last_launches
from report.making import launch, solo, text_of
from tenants.suites import TENANTS, job

TASK = '''"""Learns nothing (Nobody 2026):
a benchmark that no table names.

More of it.
"""
from cotenant.bench import Benchmark

class Nothing(Benchmark):
    item = "nap"
'''


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BASE", str(tmp_path))
    (tmp_path / "main.py").write_text(TASK)
    (tmp_path / "run.sh").write_text("exec python main.py")
    (tmp_path / "run.sh").chmod(0o755)
    data = {"--data": "$DATA_DIRECTORY/ImageNet/train", "--other": "${DATA_DIRECTORY}"}
    listed = [
        {"name": "ours", "cmd": "./run.sh", "args": data},
        {"name": "cells", "cmd": "./run.sh", "args": {"--x": [1, 2]}},
        job("echo.py", name="foreign"),
        {"name": "gone", "cmd": "./gone.sh"},
    ]
    path = tmp_path / "baselines.json"
    path.write_text(json.dumps(listed))
    return path


def listed(capsys: Capture, *words: object) -> list[dict[str, Any]]:
    status, said, errors = call(capsys, "list", "--json", *words)
    assert (status, errors) == (0, "")
    document = json.loads(said)
    assert (document["schema"], document["view"]) == ("cotenant-view-1", "list")
    rows: list[dict[str, Any]] = document["rows"]
    assert {row["suite"] for row in rows} == {"baselines"}
    return rows


def test_a_benchmark_in_no_table_is_listed_by_its_source(jobs: Path, capsys: Capture) -> None:
    ours, cells, foreign, gone = listed(capsys, "--jobs", jobs)
    trains = "Learns nothing (Nobody 2026): a benchmark that no table names."
    assert (ours["trains"], ours["item"], ours["data"]) == (trains, "nap", "ImageNet/train, .")
    assert (ours["parameters"], ours["seconds"]) == (None, None)
    assert (cells["cells"], cells["data"]) == (2, "")
    assert (foreign["trains"], foreign["cmd"], gone["item"]) == ("", f"{TENANTS}/echo.py", "")
    _, said, _ = call(capsys, "list", "--jobs", jobs, "--name", "ours")
    assert "seconds" not in said.splitlines()[1]
    assert "known after a run" in said


def test_seconds_and_parameters_are_those_of_the_last_launches(jobs: Path, tmp_path: Path, capsys: Capture) -> None:
    def times(begin: str, end: str, **more: Any) -> dict[str, Any]:
        return {"start_time": f"2026-03-{begin}+00:00", "end_time": f"2026-03-{end}+00:00", **more}

    def ran(name: str, *spans: dict[str, Any]) -> list[Any]:
        records = launch(name, 0, tenants=len(spans))
        return [replace(record, **span) for record, span in zip(records, spans, strict=True)]

    trained = {"observed": {"optimizers": [{"parameters": 40}, {"parameters": 2}]}}
    failed = {"completed": False, "outcome": "failed"}
    records = [
        *ran("ours", times("01T10:00:00", "01T11:00:00"), times("01T10:00:00", "01T11:00:00")),
        *ran("ours", times("02T10:00:00", "02T10:00:20", **trained), times("02T10:00:00", "02T10:00:21.5", **trained)),
        *ran("ours", times("03T10:00:00", "03T10:05:00", **failed)),
        *(replace(record, **times("04T10:00:00", "04T10:00:03")) for record in solo("ours", tenants=1)),
        *(replace(record, suite="cpu", **times("05T10:00:00", "05T10:00:04")) for record in ran("ours", {})),
        *ran("cells.c1", times("02T10:00:00", "02T10:01:00")),
    ]
    write(tmp_path / "output", records)
    ours, cells, *_ = listed(capsys, "--jobs", jobs)
    assert (ours["seconds"], ours["parameters"]) == (21.5, 42)
    # One of its two cells was never launched.
    assert (cells["seconds"], cells["parameters"]) == (None, None)
    _, said, _ = call(capsys, "list", "--jobs", jobs)
    assert said.splitlines()[1].split()[:6] == ["job", "cells", "item", "parameters", "data", "seconds"]
    assert "last launches in " + str(tmp_path / "output") in said
    write(tmp_path / "elsewhere", ran("cells.c2", times("02T10:00:00", "02T10:00:05")) + records[-1:])
    assert listed(capsys, "--jobs", jobs, "--outdir", tmp_path / "elsewhere")[1]["seconds"] == 65


def test_a_launch_that_lacked_blocks_still_counts_as_by_blocks() -> None:
    lacking = Finding("no_blocks", "info", "There were none.", "")
    by_blocks = [replace(record, findings=[*record.findings, lacking]) for record in launch("blocks")]
    records = [*by_blocks, *launch("without")]
    found = last_launches(records, records[0].suite)
    assert {name: each.by_blocks for name, each in found.items()} == {"blocks": True, "without": False}


def test_a_mix_is_listed_with_its_jobs(jobs: Path, capsys: Capture) -> None:
    entries = json.loads(jobs.read_text())
    mix = {"name": "lab", "mix": ["foreign", "foreign"]}
    jobs.write_text(json.dumps([*entries, mix]))
    assert [row["job"] for row in listed(capsys, "--jobs", jobs)] == ["ours", "cells", "foreign", "gone", "lab"]
    (lab,) = listed(capsys, "--jobs", jobs, "--name", "lab")
    assert (lab["trains"], lab["cells"], lab["cmd"]) == ("foreign, foreign beside each other", 1, "")


def test_a_job_has_one_line_on_a_terminal() -> None:
    trains = "Image classification by any classifier of torchvision; ResNet-101 (He et al. 2015) where none is named."
    names = {"convnet_distributed_fp16": "image", "recom": "(user, item) sample", "toy_reg": "example"}
    entries = [
        CatalogueEntry(name, "student", 1, item, 123_456_789, "ImageNet/train", 20.0, trains, "x")
        for name, item in names.items()
    ]
    for width in (80, 120):
        lines = text_of(catalogue_view("cpu", entries, "output"), width=width).splitlines()
        rows = lines[2 : 2 + len(names)]
        assert [row[:4] for row in rows] == [name[:4] for name in names]
        assert all(row.endswith("…") and len(row) <= width for row in rows)
