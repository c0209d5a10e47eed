"""How a process ended that is not our child: by its kernel's own word."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cotenant.files import Directory
from cotenant.launch.endings import Ending
from cotenant.launch.events import Life
from cotenant.launch.inbox import FailedMessage
from cotenant.launch.outcome import failure, rank_death
from cotenant.launch.rank import Rank, RankPhase
from cotenant.launch.rendezvous import peer_of
from cotenant.launch.tenant import Tenant, log_end
from cotenant.protocol.messages import rank_log
from tenants.suites import until


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def test_its_end_is_seen_and_how(sleeper: "subprocess.Popen[bytes]") -> None:
    life = Life(sleeper.pid)
    assert (life.ended, life.status()) == (False, None)
    sleeper.kill()
    until(lambda: life.ended, "it has ended")
    assert life.status() == -signal.SIGKILL
    sleeper.wait()
    assert (life.ended, life.status()) == (True, None)
    life.close()


def test_an_exit_status_is_known_and_who_is_gone_has_no_life() -> None:
    for status in (0, 7):
        process = subprocess.Popen(["sh", "-c", f"read line; exit {status}"], stdin=subprocess.PIPE)
        life = Life(process.pid)
        assert process.stdin is not None
        process.stdin.close()
        until(lambda life=life: life.ended, "it has ended")
        assert life.status() == status
        process.wait()
        life.close()
        with pytest.raises(OSError):
            Life(process.pid)


def test_who_has_connected_is_known(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        code = "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); time.sleep(1000)"
        with subprocess.Popen([sys.executable, "-S", "-c", code, str(tmp_path / "s")]) as process:
            connection, _ = listener.accept()
            life = Life.of(peer_of(connection)[0])
            process.kill()
        connection.close()
    assert life is not None
    assert life.pid == process.pid
    life.close()


def test_a_rank_of_several_lives_until_its_process_ends(sleeper: "subprocess.Popen[bytes]") -> None:
    rank = Rank(cast("Any", None), 1, 2, Life(sleeper.pid))
    assert rank.lives
    assert not Rank(cast("Any", None), 0, 1).lives
    sleeper.kill()
    until(lambda: not rank.lives, "it has ended")
    assert rank.life is not None
    rank.life.close()


@pytest.fixture
def tenant(tmp_path: Path) -> Iterator[Tenant]:
    """A tenant whose rank 1 writes its own log, and rank 2 none."""
    log = tmp_path / "job.R0.T0.log"
    log.write_text("of all\n")
    rank_log(log, 1).write_text("of one\nagain\n")
    with Directory(tmp_path) as logs:
        made = SimpleNamespace(spec=SimpleNamespace(log=log, follows=None), logs=logs, is_killed=False)
        made.log_tail = partial(Tenant.log_tail, made)
        yield cast("Tenant", made)


def test_what_a_death_is_to_a_tenant(tenant: Tenant) -> None:
    record: dict[str, Any] | None
    for number, status, record, sentence in [
        (1, -9, None, "Rank 1 of 3 was killed by SIGKILL before its record was complete. Its log ends: of one | again"),
        (0, 0, None, "Rank 0 of 3 ended with exit status 0 before its record was complete. Its log ends: of all"),
        (2, None, None, "Rank 2 of 3 ended before its record was complete. Its log ends: of all"),
        (1, -11, {}, "Rank 1 of 3 was killed by SIGSEGV. Its log ends: of one | again"),
        (1, 0, {}, None),
        (1, None, {}, None),
        (1, -15, None, None),
    ]:
        rank = Rank(cast("Any", None), number, 3, record=record)
        assert rank_death(tenant, rank, status) == (None if sentence is None else Ending("failed", sentence))


def test_what_a_rank_reports_names_it(tenant: Tenant) -> None:
    rank = Rank(cast("Any", None), 1, 3)
    alone = Rank(cast("Any", None), 0, 1)
    for process, outcome, said, message in (
        (rank, "unsupported", "No fp16. Use bf16.", "Rank 1 of 3: No fp16. Use bf16."),
        (rank, "failed", "KeyError: 1", "Rank 1 of 3: KeyError: 1. Its log ends: of one | again"),
        (alone, "failed", "KeyError: 1", "KeyError: 1"),
    ):
        assert failure(tenant, process, FailedMessage(outcome, said)) == Ending(outcome, message, process)


def test_a_failed_rank_or_killed_tenant_gives_no_other_reason(tenant: Tenant) -> None:
    rank = Rank(cast("Any", None), 1, 3)
    for owner, name, value in [(rank, "phase", RankPhase.FAILED), (tenant, "is_killed", True)]:
        assert rank_death(tenant, rank, -9) is not None
        before = getattr(owner, name)
        setattr(owner, name, value)
        assert rank_death(tenant, rank, -9) is None, name
        setattr(owner, name, before)


@pytest.mark.parametrize("kind", ["fifo", "link", "directory"])
def test_the_end_of_what_is_no_log_is_nothing(tmp_path: Path, kind: str) -> None:
    log, other = tmp_path / "log", tmp_path / "other"
    other.write_text("somebody else's")
    {"fifo": lambda: os.mkfifo(log), "link": lambda: log.symlink_to(other), "directory": log.mkdir}[kind]()
    with Directory(tmp_path) as logs:
        assert log_end(logs, "log", 100) == ""
        assert log_end(logs, "other", 6) == "else's"
