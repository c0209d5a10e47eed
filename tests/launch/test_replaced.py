"""What a tenant puts in the place of its log, or removes of the run's directories, ends itself and no suite."""

import os
from pathlib import Path

import pytest

from cotenant.files import Directory
from cotenant.launch.tenant import log_end
from tenants.suites import Suites, job

DEEDS = ("fifo-for-a-log", "remove-directories")


def test_a_replaced_log_and_removed_directories_end_their_tenant(shared: Suites) -> None:
    rogues = [job("rogue.py", "--who", 0, "--at", "observed", "--do", deed, name=deed) for deed in DEEDS]
    shared.run([*rogues, job(name="after")], "--users", 2, limit_s=60, status=1)
    records = shared.by_job()
    for deed in DEEDS:
        assert [record["outcome"] for record in records[deed]] == ["failed", "completed"], deed
        assert records[deed][0]["message"].startswith("It ended with exit status 3. "), deed
    assert [record["outcome"] for record in records["after"]] == ["completed", "completed"]


@pytest.mark.parametrize("kind", ["fifo", "link", "directory"])
def test_the_end_of_what_is_no_log_is_nothing(tmp_path: Path, kind: str) -> None:
    log, other = tmp_path / "log", tmp_path / "other"
    other.write_text("somebody else's")
    {"fifo": lambda: os.mkfifo(log), "link": lambda: log.symlink_to(other), "directory": log.mkdir}[kind]()
    with Directory(tmp_path) as logs:
        assert log_end(logs, "log", 100) == ""
        assert log_end(logs, "other", 6) == "else's"
