"""The directory of a suite: writes that the disk refuses, a full disk, and foreign files in the place of its own."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from cotenant.errors import CotenantError, UnwrittenError
from cotenant.files import Directory
from cotenant.launch.output import Output
from cotenant.results import last
from cotenant.results.journal import FILE, Ended, read_journal
from patience import HANG_S
from results.made import NOON, a_record, hashes
from tenants.suites import OURS, ROOT, rogue

ENTRY = Ended(suite="s", uid=0, time="t")
RECORDS = [a_record(place={"tenant": tenant, "vcd": str(tenant)}) for tenant in range(3)]


@pytest.fixture
def output(tmp_path: Path) -> Iterator[Output]:
    with closing(Output(tmp_path / "output")) as output:
        yield output


def refuse(monkeypatch: pytest.MonkeyPatch, output: Output, name: str) -> None:
    """From here on the disk is full until the room held back is free, and files of this name are never written."""
    write = Directory.write

    def written(place: Directory, to: str, content: bytes, *, new: bool = False) -> None:
        if name in to:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        if os.fstat(output._reserve._held.fileno()).st_blocks:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(place, to, content, new=new)

    monkeypatch.setattr(Directory, "write", written)


def test_a_record_that_cannot_be_kept_takes_no_other_with_it(output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    output.check()
    refuse(monkeypatch, output, ".D1.")
    kept = output.keep(RECORDS, NOON)
    assert [name.split(".D")[1][0] for name in kept] == ["0", "2"]
    assert kept == hashes(output.directory.path.glob("*.json"))
    with pytest.raises(UnwrittenError, match=r"No space left on device\. Free some space there\. .* --resume goes on"):
        output.check()


def test_refused_output_is_wrong_input_only_before_the_start(output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, output, "resolved")
    with pytest.raises(CotenantError) as early:
        output.write("resolved", b"")
    output.journal(ENTRY)
    with pytest.raises(CotenantError) as late:
        output.write("resolved", b"")
    assert (early.value.exit_status, late.value.exit_status) == (2, 1)


@pytest.mark.parametrize("deed", ["removed", "junk", "shorter", "another"])
def test_a_journal_that_a_tenant_changed_stands_there_anew(deed: str, output: Output) -> None:
    output.journal(ENTRY)
    output.journal(ENTRY)
    path = output.directory.path / FILE
    whole = path.read_bytes()
    {
        "removed": path.unlink,
        "junk": lambda: path.write_bytes(whole + b"junk\n"),
        "shorter": lambda: path.write_bytes(whole.splitlines(keepends=True)[0]),
        "another": lambda: path.write_bytes(b""),
    }[deed]()
    found = output.put_right()
    assert [finding.rule for finding in found] == ["file_replaced"] * (deed != "removed")
    assert path.read_bytes() == whole
    output.journal(ENTRY)
    assert len(read_journal(output.directory.path).entries) == 3
    assert output.put_right() == ()


@pytest.mark.parametrize("depth", [0, 600, 5000])
def test_a_suite_begins_although_an_old_record_is_unreadable(depth: int, tmp_path: Path) -> None:
    """How long each launch took is read before it."""
    path = tmp_path / "s.vae.R0.D0.1.json"
    if depth:
        path.write_bytes(b'{"suite": "s", "x":' + b"[" * depth + b"]" * depth + b"}")
    else:
        os.mkfifo(path)
    assert last.last_in(tmp_path, "s") == {}


@pytest.mark.parametrize("suite", ["baselines", "my suite (1)", ".hidden", "[a]*"])
def test_last_launches_are_found_whatever_the_suite_is_called(suite: str, output: Output) -> None:
    output.keep([a_record(place={"suite": suite})], NOON)
    assert set(last.last_in(output.directory.path, suite)) == {"vae"}


def test_a_record_is_hashed_as_it_was_written(output: Output) -> None:
    losses = msgspec.structs.replace(RECORDS[0], batch_loss=[float("nan"), None, 1.0])
    assert output.keep([losses], NOON) == hashes(output.directory.path.glob("*.json"))


# ---- a small disk, in a mount namespace of its own

needs_a_disk = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root, which can mount a small disk"
)
SCRIPT = 'mount -t tmpfs -o "size=$1" none "$2" && shift 2 && "$@"; status=$?; ls -R "$BASE"; exit $status'


def on_a_disk(size: str, folder: Path, *jobs: dict[str, object]) -> subprocess.CompletedProcess[str]:
    """Run a suite whose base is a disk of this size; the files that lie there at the end are printed last."""
    path, disk = folder / "jobs.json", folder / "disk"
    path.write_text(json.dumps(list(jobs)))
    disk.mkdir()
    line = [sys.executable, str(ROOT / "run.py"), "--jobs", str(path), "--users", "2", "--isolation", "none"]
    own = {"BASE": str(disk / "base"), "COTENANT_LOCK": str(folder / "lock")}
    environment = {name: value for name, value in os.environ.items() if name not in OURS} | own
    command = ["unshare", "--mount", "sh", "-c", SCRIPT, "sh", size, str(disk), *line]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False)


@needs_a_disk
def test_a_full_disk_is_refused_before_anything_starts(tmp_path: Path) -> None:
    ended = on_a_disk("40m", tmp_path, rogue("never", "go", "exit", 0))
    assert ended.returncode == 2, ended.stderr
    assert "where records and data and temporary files go, has 40 MiB free" in ended.stderr
    assert "never" not in ended.stdout
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
@needs_a_disk
def test_a_disk_that_fills_during_a_suite_loses_no_record(tmp_path: Path) -> None:
    ended = on_a_disk("150m", tmp_path, rogue("fills", "go", "fill-disk"), rogue("never", "go", "exit", 0))
    assert ended.returncode == 1, ended.stderr
    assert "No space left on device. Free some space there." in ended.stderr
    assert "--resume goes on" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert [f"fills.R0.D{tenant}." in ended.stdout for tenant in (0, 1)] == [True, True]
    assert "never.R0" not in ended.stdout
