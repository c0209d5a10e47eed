"""The daemon of MPS: a program that stands in for NVIDIA's really lives, serves and ends. Nothing may be left of it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cotenant.errors import CotenantError
from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.processes import marked
from cotenant.isolation.runs import RunName
from cotenant.launch import mps
from cotenant.launch.mps import MpsDaemon
from cotenant.protocol.messages import DAEMON_VARIABLE
from machine.invented import device
from tenants.suites import TENANTS, Suites, errors, job, until

PROGRAM = Path(__file__).with_name("mps")
RUN = f"{RunName()}.mps"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PATH", f"{PROGRAM}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_MPS_LOG", str(tmp_path / "log"))
    yield tmp_path / "log"
    assert not marked(RUN, variable=DAEMON_VARIABLE)
    Path("/dev/shm/of-the-daemon").unlink(missing_ok=True)


def test_a_daemon_is_up_before_its_clients_and_gone_after_them(log: Path, tmp_path: Path) -> None:
    daemon = MpsDaemon(RUN, tmp_path / "mps", [device(0), device(1)], 0)
    daemon.start()
    assert (tmp_path / "mps/control").is_fifo()
    assert len(marked(RUN, variable=DAEMON_VARIABLE)) == 2  # It, and its server.
    assert daemon.shm_of is None
    daemon.stop()
    assert not (tmp_path / "mps").exists()
    assert log.read_text().splitlines() == ["starting", "up GPU-00000000,GPU-00000001 outside", "quit with 0 clients"]


def test_one_that_does_not_start_or_end_is_killed(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("START_LIMIT_S", "QUIT_LIMIT_S"):
        monkeypatch.setattr(mps, name, 1.0)
    for stuck, why in {"fails": "ended with status 1: no device", "start": "timed out", "quit": ""}.items():
        monkeypatch.setenv("FAKE_MPS_STUCK", stuck)
        daemon = MpsDaemon(RUN, tmp_path / "mps", [device(0)], 0)
        with pytest.raises(NotIsolatedError, match=why) if why else contextlib.nullcontext():
            daemon.start()
        daemon.stop()
        assert not marked(RUN, variable=DAEMON_VARIABLE)
        assert not (tmp_path / "mps").exists()
    monkeypatch.setenv("PATH", "/none")
    with pytest.raises(CotenantError, match="needs nvidia-cuda-mps-control, which is not on PATH"):
        mps.control_program()


def start(suites: Suites, *flags: object, stuck: str = "", repeat: int = 5, sees: str = "mps") -> subprocess.Popen[str]:
    """Start a suite of four clients on an invented device."""
    words = suites.line([job("client.py", "--repeat", repeat, "--sees", sees)], "--users", 4, "--share", "mps:25")
    words = [*words, "--settle", 0, "--at-least", 0, *flags]
    environment = suites.environment | {"FAKE_MPS_STUCK": stuck}
    environment |= {"FAKE_MPS_LOG": str(suites.folder / "log"), "PATH": f"{PROGRAM}{os.pathsep}{os.environ['PATH']}"}
    line = [sys.executable, str(TENANTS / "with_device.py"), "1", *map(str, words[2:])]
    with (suites.folder / "stdout").open("w") as out, (suites.folder / "stderr").open("w") as err:
        return subprocess.Popen(line, env=environment, cwd=suites.folder, stdout=out, stderr=err, text=True)


def events(suites: Suites) -> list[str]:
    log = suites.folder / "log"
    return log.read_text().splitlines() if log.exists() else []


@pytest.mark.slow
@pytest.mark.v1
def test_clients_share_one_shm_with_their_daemon_which_ends_after_them(v1: Suites) -> None:
    assert start(v1).wait(120) in (0, 1), v1.said()
    assert events(v1) == ["starting", "up GPU-00000000 outside", "quit with 0 clients"]
    assert v1.outcomes() == ["completed"] * 4, v1.said()
    for record in v1.records():
        assert record["metrics"] == {"daemon": 1, "daemon_shm": 1, "neighbours": 4, "percent": 25}
        assert record["share"]["asked"] == "mps:25"
        # Nothing tells the multiprocessors of a device that is not there, so that its share was not seen.
        assert record["share"]["seen"] == "mps"
        assert "share_not_seen" in errors(record)
    assert not Path("/dev/shm/of-the-daemon").exists()
    v1.gone(5)


@pytest.mark.slow
@pytest.mark.v1
@pytest.mark.parametrize("suites", ["v1", "loose"], indirect=True)
@pytest.mark.parametrize(
    ("phase", "awaited"),
    [("start", "starting"), ("measured", "up GPU-00000000 outside"), ("quit", "quit with 0 clients")],
)
def test_a_killed_runner_leaves_no_daemon(suites: Suites, phase: str, awaited: str) -> None:
    runner = start(suites, stuck=phase if phase != "measured" else "", repeat=5 if phase == "quit" else 10**6)
    until(lambda: awaited in events(suites), awaited, 60, suites.said)
    if phase == "measured":
        until(lambda: len(suites.processes()) >= 8, "tenants", 60, suites.said)
    runner.kill()
    runner.wait()
    suites.gone(20)
    for left in Path("/dev/shm").glob("of-*"):
        left.unlink()


@pytest.mark.slow
@pytest.mark.v1
def test_one_killed_client_ends_alone(v1: Suites) -> None:
    runner = start(v1, repeat=100)
    until(lambda: len(v1.inhabitants()) >= 4, "users are in", 60, v1.said)
    victim = min(v1.inhabitants())
    until(lambda: v1.inhabitants() and _measured(v1), "measured", 60, v1.said)
    os.kill(victim, 9)
    assert runner.wait(120) == 1
    assert sorted(v1.outcomes()) == ["completed"] * 3 + ["failed"], v1.said()
    assert events(v1)[-1] == "quit with 0 clients"
    v1.gone(5)


def _measured(suites: Suites) -> bool:
    """Have tenants used processor time that only their load takes?"""
    ticks = [int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11]) for pid in suites.inhabitants()]
    return len(ticks) >= 4 and min(ticks) > 50
