"""A launch in this process: slices that cannot be had, limits, messages in pieces, and descriptors left open."""

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cotenant.files import Directory
from cotenant.isolation.backend import Counters, NotIsolatedError, ReadBack
from cotenant.launch import limits
from cotenant.launch.events import Events
from cotenant.launch.limits import Limits
from cotenant.launch.tenant import Tenant, start_tenant
from launch.turning import outcomes
from patience import HANG_S
from tenants.fakes import FakeBackend, FakeSlice, launched, specs
from tenants.once import once

PYTHON = (sys.executable, "-c")
SLEEP = ("/bin/sleep", "1000")
SLOW_SPEAKER = """
import os, socket, time
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["COTENANT_SOCKET"])
hello = b'{"kind":"hello","tenant":%s,"rank":0,"world":1,"pid":1}\\n' % os.environ["COTENANT_TENANT"].encode()
ready = b'{"kind":"ready","number":1,"repeat":1,"skip":0,"warm_up_ns":[]}\\n'
for piece in (hello[:7], hello[7:] + ready[:9], ready[9:]):
    s.sendall(piece)
    time.sleep(0.1)
print(s.recv(4096).decode())
"""
LAST_WORDS = """
import os, socket, time
time.sleep(1.3)
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["COTENANT_SOCKET"])
s.sendall(b'{"kind":"hello","tenant":%s,"rank":0,"world":1,"pid":1}\\n' % os.environ["COTENANT_TENANT"].encode())
s.sendall(b'{"kind":"failed","outcome":"missing_package","message":"pip install it"}\\n')
os._exit(1)
"""

ONE_AFTER_THE_OTHER = """
first = Path(os.environ["COTENANT_SOCKET"]).with_name("first")
if tenant == "0":
    first.with_suffix(".part").write_text(str(os.getpid()))
    first.with_suffix(".part").rename(first)
else:
    while not first.exists() or Path("/proc", first.read_text()).exists():
        time.sleep(0.01)
"""
"""The second tenant's observation ends when the runner has seen the first one's end."""


HANGS = """
if tenant == "1":
    runner.failed("failed", "a driver's call")
    time.sleep(1000)
"""


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Fails a test that leaves a descriptor open."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    yield
    assert len(list(Path("/proc/self/fd").iterdir())) == before


class Counting(FakeSlice):
    """Its counters show how often it was killed before they were read."""

    def kill(self) -> None:
        self._deeds.append("killed")

    def counters(self) -> Counters:
        killed = self._deeds.count("killed")
        return Counters(processor_ns=killed, pids=killed, memory_peak_bytes=killed)


def test_counters_are_read_before_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Running counters are read before the killing, peaks at the end."""
    monkeypatch.setattr("tenants.fakes.FakeSlice", Counting)
    backend = FakeBackend()
    (ending,) = launched(specs(tmp_path, *SLEEP, tenants=1), backend, Limits(timeout_s=0.5)).tenants
    assert ending.outcome == "timeout"
    assert backend.deeds[0] == "killed"
    assert (ending.after.processor_ns, ending.after.pids) == (0, 0)
    assert ending.after.memory_peak_bytes == 1


@pytest.mark.usefixtures("descriptors")
def test_a_slice_that_cannot_be_entered_ends_the_launch_at_once(tmp_path: Path) -> None:
    backend = FakeBackend(refused=1)
    result = launched(specs(tmp_path, *SLEEP, tenants=3), backend)
    assert outcomes(result) == ["aborted", "not_isolated", "aborted"]
    assert result.tenants[1].message == "the kernel says no."
    assert "User 1 could not be isolated" in result.tenants[0].message
    assert backend.deeds == ["removed 0"]
    backend = FakeBackend(tmp_path / "no/procs")
    result = launched(specs(tmp_path, *SLEEP, tenants=1), backend)
    assert outcomes(result) == ["not_isolated"]
    assert str(tmp_path / "no/procs") in result.tenants[0].message
    assert backend.deeds == ["removed 0"]


@pytest.mark.usefixtures("descriptors")
def test_an_error_while_starting_undoes_what_was_begun(tmp_path: Path) -> None:
    backend, planned = FakeBackend(), specs(tmp_path, *SLEEP)
    (tmp_path / "no-directory").touch()
    planned[1] = replace(planned[1], temporary=tmp_path / "no-directory")
    (tmp_path / "log0").mkdir()  # which a tenant of an earlier launch may have made
    result = launched(planned, backend)
    assert outcomes(result) == ["aborted", "failed"]
    assert result.tenants[1].message == f"{tmp_path / 'no-directory'}: File exists."
    assert backend.deeds == ["removed 1", "removed 0"]
    assert not list(tmp_path.glob("t?"))


class Changed(FakeSlice):
    """A slice that has changed since the plan; notes the times of questions."""

    def changes(self, pids: Collection[int]) -> list[str]:
        self._deeds.append(f"asked {time.perf_counter_ns()}")
        return [f"slice {self._tenant} has grown"]


@pytest.mark.parametrize("done", ["time.sleep(0.5)", ""], ids=["DONE is read first", "the end is seen first"])
def test_slices_are_verified_after_the_last_done_message(
    done: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenants.fakes.FakeSlice", Changed)
    backend = FakeBackend(tmp_path / "procs")
    (tmp_path / "procs").touch()
    result = launched(specs(tmp_path, *PYTHON, once(work=ONE_AFTER_THE_OTHER, done=done)), backend)
    assert outcomes(result) == ["completed", "completed"]
    assert result.changes == ("slice 0 has grown", "slice 1 has grown")
    observed_ns = [ending.ranks[0].observations[-1].end_ns for ending in result.tenants]
    asked_ns = [int(deed.split()[1]) for deed in backend.deeds if deed.startswith("asked")]
    # The first has ended before the last DONE: it is not asked beside a neighbour that is measured.
    assert len(asked_ns) == 3
    assert max(observed_ns) < result.stop_ns < asked_ns[0]


def stuck(part: object) -> None:
    """Stand for a process that no signal ends, as one in a driver's call may be."""
    raise NotIsolatedError("process 7 cannot be killed")


@pytest.mark.parametrize("deed", ["remove", "kill"])
def test_failing_to_clean_up_a_slice_costs_no_measurement(
    deed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeSlice, deed, stuck)
    result = launched(specs(tmp_path, *PYTHON, once()))
    assert outcomes(result) == ["completed", "completed"]
    assert result.left_behind == "process 7 cannot be killed"


@pytest.mark.parametrize(
    ("program", "timeout_s", "ended"),
    [(SLEEP, 1.0, ["timeout", "timeout"]), ((*PYTHON, once(work=HANGS)), 30.0, ["completed", "failed"])],
    ids=["before GO", "after GO"],
)
def test_a_tenant_that_cannot_be_killed_is_waited_for_no_longer(
    program: tuple[str, ...], timeout_s: float, ended: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill, left = Tenant.kill, set[subprocess.Popen[bytes]]()

    def killed(tenant: Tenant) -> None:
        if tenant.index == 0:
            kill(tenant)
            return
        left.add(tenant.process)
        stuck(tenant)

    monkeypatch.setattr(Tenant, "kill", killed)
    monkeypatch.setattr(limits, "GRACE_S", 0.2)
    result = launched(specs(tmp_path, *program), limits=Limits(timeout_s=timeout_s))
    (process,) = left
    process.kill()
    process.wait()
    assert outcomes(result) == ended
    assert result.left_behind == "process 7 cannot be killed"


TRACED = """
import ctypes, os, signal, time
if not os.fork():
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(1000)
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (("/bin/sh", "-c", "kill -STOP $$"), r"with --timeout. Its process pid \d+ \(\w+\) was stopped \(state T\): "),
        ((*PYTHON, TRACED), r"Its process pid \d+ \(.+\) was traced by pid \d+ \(.+\): detach that from it.$"),
    ],
)
def test_a_user_held_by_another_program_is_named_at_timeout(
    tmp_path: Path, program: tuple[str, ...], said: str
) -> None:
    (ended,) = launched(specs(tmp_path, *program, tenants=1), limits=Limits(timeout_s=1)).tenants
    assert ended.outcome == "timeout"
    assert re.search(said, ended.message), ended.message
    assert len(re.findall("Its process", ended.message)) == 1


def test_a_socket_that_was_removed_or_replaced_is_named(tmp_path: Path) -> None:
    for deed, how in (("", ""), ("; touch $COTENANT_SOCKET", "replaced"), ("", "removed")):
        line = f"rm $COTENANT_SOCKET{deed}; exit 1" if how else "exit 1"
        (ended,) = launched(specs(tmp_path, "/bin/sh", "-c", line, tenants=1)).tenants
        named = f" Its socket {tmp_path}/t0 was {how}: find the program that changes this directory." if how else ""
        assert ended.message == f"It ended with exit status 1. Its log is empty.{named}"


def test_a_taken_port_is_answered_by_how_to_have_another(tmp_path: Path) -> None:
    line = "echo 'OSError: [Errno 98] Address already in use' >&2; exit 1"
    (ended,) = launched(specs(tmp_path, "/bin/sh", "-c", line, tenants=1)).tenants
    assert ended.message == (
        "It ended with exit status 1. Its port was taken: give each user its own, by $MASTER_PORT or {user}, as in "
        "--port 2950{user}. Its log ends: OSError: [Errno 98] Address already in use"
    )


@pytest.mark.usefixtures("descriptors")
def test_words_in_pieces_are_words(tmp_path: Path) -> None:
    result = launched(specs(tmp_path, *PYTHON, SLOW_SPEAKER))
    assert outcomes(result) == ["failed", "failed"]
    assert result.gos
    for tenant in range(2):
        assert '"kind":"go"' in (tmp_path / f"log{tenant}").read_text()


@pytest.mark.usefixtures("descriptors")
def test_last_words_are_heard(tmp_path: Path) -> None:
    """Its connection, its words and its end all lie there before the runner looks."""
    planned = specs(tmp_path, sys.executable, "-I", "-S", "-c", LAST_WORDS, tenants=1)
    (ending,) = launched(planned, upkeep=lambda: time.sleep(0.8)).tenants
    assert (ending.outcome, ending.message) == ("missing_package", "pip install it")


def test_a_user_that_is_not_ready_in_time_is_ended(tmp_path: Path) -> None:
    hello = SLOW_SPEAKER.replace("hello[7:] + ready[:9], ready[9:]", "hello[7:]")
    limited = Limits(timeout_s=HANG_S, ready_limit_s=0.5)
    result = launched(specs(tmp_path, *PYTHON, hello, tenants=1), limits=limited)
    assert outcomes(result) == ["timeout"]
    assert result.tenants[0].message == "It was not ready within 0.5 s. Give it longer with --ready-timeout."
    assert result.gos == {}
    # Shorter than the timeout: were it not for --ready-timeout, these would end by themselves.
    assert outcomes(launched(specs(tmp_path, "/bin/sleep", "9"), limits=limited)) == ["timeout", "timeout"]


def test_a_forgotten_descriptor_is_not_called_when_reused() -> None:
    events, called = Events(), []
    pairs = [socket.socketpair() for _ in range(2)]
    fresh: list[socket.socket] = []

    def first(own: int) -> None:
        called.append(own)
        other = pairs[1 - own][0]
        number = other.fileno()
        events.forget(other)
        other.close()
        fresh.extend(socket.socketpair())
        assert number in {end.fileno() for end in fresh}
        for end in fresh:
            events.on_readable(end, called.append, 9)

    for own in range(2):
        pairs[own][1].send(b"x")
        events.on_readable(pairs[own][0], first, own)
    events.turn(1.0)
    assert len(called) == 1
    events.close()
    for end in [*fresh, *pairs[0], *pairs[1]]:
        end.close()


@pytest.mark.usefixtures("descriptors")
def test_a_long_step_in_progress_is_given_time_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch may take longer than any fixed limit: the limit follows from the batches seen so far."""
    monkeypatch.setattr(limits, "STOP_LIMIT_S", 0.1)
    slow = once(work="time.sleep(0.8)", done="time.sleep(0.9)")
    assert outcomes(launched(specs(tmp_path, *PYTHON, slow, tenants=1))) == ["completed"]


def test_kill_meets_one_that_has_not_entered_its_slice_yet(tmp_path: Path) -> None:
    """It has just been started."""
    (spec,) = specs(tmp_path, *SLEEP, tenants=1)
    with Directory(tmp_path) as logs:
        for _ in range(20):
            tenant = start_tenant(spec, FakeSlice(0, (), Counters(), []), ReadBack(), logs)
            # Before `leave` closes the channel: one that sees that first ends by itself.
            tenant.kill()
            tenant.leave()
            assert tenant.status == -signal.SIGKILL
