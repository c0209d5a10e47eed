"""The records that a score expects of a job file: their names, with weights."""

from __future__ import annotations

import json
from pathlib import Path

from cotenant.commands.records import expected_jobs

SIZES = {"--batch-size": [64, 128]}


def job(name: str, **fields: object) -> dict[str, object]:
    return {"name": name, "cmd": "./vae/run.sh", "cgroup": "student", "args": {}} | fields


def test_cells_are_expected_by_their_records_names_and_share_the_weight(tmp_path: Path) -> None:
    jobs = [job("vae", weight=3), job("wlm", args=SIZES), job("scaling", args=SIZES), job("vae")]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(jobs))
    assert expected_jobs(str(path), {"scaling": 1.0, "vae": 1.0}) == {
        "vae": 3.0,
        "wlm.c1": 0.5,
        "wlm.c2": 0.5,
        "scaling": 1.0,
        "vae-2": 1.0,
    }
