"""Users under a running daemon of MPS: a program that stands in for NVIDIA's is the daemon."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cotenant.isolation.entry import own_shm_can_be_had
from cotenant.machine.nvidia import mps_daemon
from launch.mps_daemon import running
from tenants.suites import TENANTS, Suites, errors, job


def run(suites: Suites, status: int, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a suite of four clients on an invented device."""
    words = suites.line([job("client.py", "--repeat", 5)], "--users", 4, "--share", "mps:25")
    line = [sys.executable, str(TENANTS / "with_device.py"), "1", *words[2:], "--settle", "0", "--at-least", "0"]
    return suites.typed(line, 120, status, **env)


def test_without_a_daemon_the_command_that_starts_one_is_said(loose: Suites) -> None:
    ended = run(loose, 2, CUDA_MPS_PIPE_DIRECTORY=str(loose.folder))
    assert "Start it: nvidia-cuda-mps-control -d" in ended.stderr


@pytest.mark.slow
@pytest.mark.v1
def test_users_are_clients_of_the_daemon_and_leave_it_alone(v1: Suites) -> None:
    with running(v1.folder / "pipes") as variables:
        run(v1, 0, **variables)
        assert mps_daemon(Path("/"), os.environ | variables)
    for left in Path("/dev/shm").glob("of-tenant-*"):
        left.unlink()
    assert v1.outcomes() == ["completed"] * 4
    for record in v1.records():
        # They and the daemon pass messages through one /dev/shm.
        assert record["metrics"] == {"daemon": 1, "neighbours": 4, "percent": 25}
        assert record["share"]["asked"] == "mps:25"
        # Nothing tells the multiprocessors of a device that is not there, so that its share was not seen.
        assert record["share"]["seen"] == "mps"
        assert "share_not_seen" in errors(record)


def test_beside_a_daemon_nobody_has_a_dev_shm_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_shm_can_be_had.cache_clear()
    with running(tmp_path / "pipes") as variables:
        monkeypatch.setenv(*next(iter(variables.items())))
        assert not own_shm_can_be_had()
    own_shm_can_be_had.cache_clear()
