"""Every command line of the pages that launches does so as it stands there, with stand-ins for the benchmarks.

Slices, barrier, observations, records and tables are real; only the work is invented, and takes some hundredths of a
second. So a suite of an hour takes some seconds, and the promises of a page can be checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pages import LAUNCHING, OTHERS, ROOT
from tenants.standin import REPEAT
from tenants.suites import TENANTS, has_v1

pytestmark = pytest.mark.slow
LIMIT_S = 900
"""The longest line launches 190 times: two minutes where nothing else runs."""
LACKING = {
    " exec ": "needs programs of a reader's own: tests/launch/test_exec.py has them",
    " capacity ": "launches for minutes: tests/commands/test_capacity_command.py",
    "srun ": "needs a cluster with Slurm",
    "docker ": "needs Docker and an image",
    "--nnodes": "needs several hosts: tests/nodes has two",
    "--out tweaked.json": "searches for half an hour: tests/questions/test_tune.py has a search",
    "fleet run": "needs a Ray cluster: tests/fleet has three nodes",
    "VENV=/opt/": "needs an environment that an administrator has made",
}
"""Reasons why this machine cannot run a line, by a part of the line."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout whose entry scripts start the stand-in, and which has no data to make."""
    copy = tmp_path_factory.mktemp("pages") / "cotenant"
    shutil.copytree(
        ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "workspace", "tests", "__pycache__", ".*_cache")
    )
    for script in copy.glob("tasks/*/*/pytorch/run*.sh"):
        script.write_text(f'#!/bin/sh\nexec python "{TENANTS / "standin.py"}" "$@"\n')
    for maker in copy.glob("tasks/*/*/download_dataset.sh"):
        maker.unlink()
    return copy


@pytest.fixture
def environment(checkout: Path, tmp_path: Path) -> dict[str, str]:
    """The variables of a shell after this checkout's set-up, with a lock of the test's own."""
    venv = tmp_path / "venv"
    venv.mkdir()
    for part in Path(sys.prefix).iterdir():
        (venv / part.name).symlink_to(part)
    stamp = venv / ".cotenant-run"
    stamp.unlink(missing_ok=True)
    stamp.write_text(f"{hashlib.sha256((checkout / 'requirements.txt').read_bytes()).hexdigest()}  requirements.txt\n")
    ours = ("BASE", "DATA_DIRECTORY", "OUTPUT_DIRECTORY", "PYTHONPATH", "TORCH_BUILD")
    inherited = {name: value for name, value in os.environ.items() if name not in ours}
    return inherited | {"VENV": str(venv), "COTENANT_LOCK": str(tmp_path / "lock")}


@pytest.fixture
def workplace(checkout: Path) -> Iterator[Path]:
    """The copy as it was made, and in it the job file that the tutorial has its reader write."""
    before = {*checkout.iterdir()}
    shutil.copy(checkout / "profiles/cpu.json", checkout / "tweaked.json")
    yield checkout
    for made in {*checkout.iterdir()} - before:
        shutil.rmtree(made) if made.is_dir() else made.unlink()


@pytest.mark.parametrize("place", LAUNCHING)
def test_a_line_launches_as_it_stands(place: str, workplace: Path, environment: dict[str, str]) -> None:
    line = LAUNCHING[place]
    skip_where_lacking(line)
    printed = typed(line, workplace, environment)
    named = re.search(r"--outdir (\S+)", line)
    output = workplace / (named[1] if named else "workspace/output")
    starts, records = planned(output), measured(output)
    # A tenant that met several others in one launch has a record of each.
    logs = {Path(record["log"]).name for record in records}
    assert Counter(log.rpartition(".T")[0] for log in logs) == starts, printed
    assert re.search(r"^(user +rate|duet +uid|job +slices +pressure) ", printed, re.M), printed
    together = {record["name"] for record in records if not record["solo"]}
    for job in {shown(name) for name in together if not name.startswith("pressure_")}:
        assert re.search(rf"^{re.escape(job)}  ", printed, re.M), (job, printed)
    assert {record["isolation"]["backend"] == "none" for record in records} == {"--isolation none" in line}


@pytest.mark.parametrize("place", OTHERS)
def test_a_line_of_another_command_ends_well(place: str, workplace: Path, environment: dict[str, str]) -> None:
    line = OTHERS[place]
    skip_where_lacking(line)
    if "archive" in line or "verify" in line:
        typed("./run.sh --name vae --outdir night", workplace, environment)
        typed("mkdir -p workspace && cp -r night workspace/output", workplace, environment)
    if "verify" in line:
        typed("./run.sh archive -o run.tar.zst", workplace, environment)
    assert typed(line, workplace, environment)


def shown(name: str) -> str:
    """Return the label of the row that a record belongs to: of a duet's sides and of a curve's pairs there is one."""
    return re.sub(r"\.duet\.[AB]$", ".duet", re.sub(r"(\.in\.\w+)?\+pressure_\w+$", "", name))


def skip_where_lacking(line: str) -> None:
    lacking = LACKING | ({} if has_v1() else {"--isolation require": "needs cgroups that may be written"})
    if reason := next((reason for part, reason in lacking.items() if part in line), ""):
        pytest.skip(reason)


def typed(line: str, place: Path, environment: dict[str, str]) -> str:
    """Run a line in a shell that has to end well; return its output."""
    ended = subprocess.run(
        ["bash", "-c", line], cwd=place, env=environment, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def planned(output: Path) -> Counter[str]:
    """Return how many tenants each launch was to have, of the suites whose records lie in a directory."""
    tenants: Counter[str] = Counter()
    for path in output.glob("*.resolved"):
        uid = path.suffixes[-2]
        for start in json.loads(path.read_text()):
            tenants[f"{start['label']}{uid}"] += len(start["tenants"])
    return tenants


def measured(output: Path) -> list[dict[str, Any]]:
    """Return the records in a directory, each of a tenant that made its observations from the GO of its launch on."""
    records = [json.loads(path.read_text()) for path in sorted(output.glob("*.json"))]
    go_ns: dict[str, int] = {}
    for record in records:
        assert record["outcome"] == "completed", (record["name"], record["message"])
        # Beside a neighbour of known pressure that one's blocks say how long a job observes.
        pressed = any(name.startswith("pressure_") for name in record["neighbours"])
        assert len(record["observations"]) >= (1 if pressed else REPEAT), record["name"]
        t0_ns = record["rendezvous"]["t0_ns"]
        assert go_ns.setdefault(record["start_time"], t0_ns) == t0_ns <= record["observations"][0]["start_ns"]
    return records
