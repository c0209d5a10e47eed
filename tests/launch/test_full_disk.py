"""A disk without room, in a mount namespace of its own: refused before a launch, and named after one that filled it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenants.suites import ROOT, rogue

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root, which can mount a small disk"
)
SCRIPT = 'mount -t tmpfs -o "size=$1" none "$2" && shift 2 && "$@"; status=$?; ls -R "$BASE"; exit $status'


def on_a_disk(size: str, folder: Path, *jobs: dict[str, object]) -> "subprocess.CompletedProcess[str]":
    """Run a suite whose base is a disk of this size; the files that lie there at the end are printed last."""
    path, disk = folder / "jobs.json", folder / "disk"
    path.write_text(json.dumps(list(jobs)))
    disk.mkdir()
    line = [sys.executable, str(ROOT / "run.py"), "--jobs", str(path), "--users", "2", "--isolation", "none"]
    environment = os.environ | {"BASE": str(disk / "base"), "COTENANT_LOCK": str(folder / "lock")}
    for name in ("OUTPUT_DIRECTORY", "DATA_DIRECTORY"):
        environment.pop(name, None)
    command = ["unshare", "--mount", "sh", "-c", SCRIPT, "sh", size, str(disk), *line]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_full_disk_is_refused_before_anything_starts(tmp_path: Path) -> None:
    ended = on_a_disk("40m", tmp_path, rogue("never", "go", "exit", 0))
    assert ended.returncode == 2, ended.stderr
    assert "where records and data and temporary files go, has 40 MiB free" in ended.stderr
    assert "never" not in ended.stdout
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_disk_that_fills_in_the_midst_loses_no_record_and_is_a_failure(tmp_path: Path) -> None:
    ended = on_a_disk("150m", tmp_path, rogue("fills", "go", "fill-disk"), rogue("never", "go", "exit", 0))
    assert ended.returncode == 1, ended.stderr
    assert "No space left on device. Free some space there." in ended.stderr
    assert "--resume goes on" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert [f"fills.R0.D{tenant}." in ended.stdout for tenant in (0, 1)] == [True, True]
    assert "never.R0" not in ended.stdout
