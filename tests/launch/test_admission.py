"""Admission of tenants: connections of strangers are closed without a word, and harm nobody else."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cotenant.isolation.backend import SliceEntry
from cotenant.launch.admission import claim, is_within, most_connections, owner_of
from cotenant.launch.outcome import LaunchResult
from cotenant.launch.rendezvous import Claim, Link
from cotenant.launch.tenant import Tenant
from cotenant.protocol.messages import ProtocolError
from launch.turning import outcomes
from patience import HANG_S
from tenants.fakes import launched, specs
from tenants.fixtures import folder_of
from tenants.garbage import GARBAGE
from tenants.once import once
from tenants.suites import until

NOBODY = 65534
HOSTS_PYTHON = shutil.which("python3", path="/usr/bin:/bin")
RUN = "cotenant-test-admission"
UNTIL_ATTACKED = """
while not Path(os.environ["ATTACKED"]).exists():
    time.sleep(0.01)
"""
HELLO = GARBAGE["hello-again"].replace(b'"tenant":0', b'"tenant":1')
INTRUDES = """
if tenant == "0":
    intruder = socket.socket(socket.AF_UNIX)
    intruder.connect(os.environ["COTENANT_SOCKET"].replace("t0", "t1"))
    try:
        intruder.sendall(b"nonsense\\n")
    except BrokenPipeError:
        pass
    time.sleep(60)
"""
AGAIN = """
try:
    Rendezvous.from_environment().await_go()
except RunnerGoneError as error:
    print(error, flush=True)
"""


def attacked(folder: Path, attack: Callable[[Path], None], deed: str = "", joined_deed: str = "") -> LaunchResult:
    """Launch two tenants, and attack the socket of tenant 1 before they are ready."""
    go = folder / "attacked"
    added = {"ATTACKED": str(go), "COTENANT_RUN": RUN}
    program = once(begin=deed + UNTIL_ATTACKED, joined=joined_deed)
    made = [
        replace(spec, environment=spec.environment | added) for spec in specs(folder, sys.executable, "-c", program)
    ]

    def attacker() -> None:
        try:
            until((folder / "t1").exists, "user 1 has a socket")
            attack(folder / "t1")
        finally:
            go.touch()

    thread = threading.Thread(target=attacker)
    thread.start()
    result = launched(made)
    thread.join()
    return result


def closed_without_a_word(path: Path, words: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(path))
        with contextlib.suppress(ConnectionError):
            stranger.sendall(words)
            assert stranger.recv(1) == b""


def every_attack(path: Path) -> None:
    for words in (b"", b"nonsense\n", HELLO, HELLO * 2, b"x" * (1 << 20)):
        closed_without_a_word(path, words)
    held = [socket.socket(socket.AF_UNIX) for _ in range(300)]
    for one in held:
        one.connect(str(path))
    for one in held:
        one.close()


def as_user(user: int, function: Callable[[], Any]) -> Any:
    """Return a function's result, passed through JSON, from a child process of this user.

    The child runs the host's Python: that of the tests may lie where no other user can reach it.
    """
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            sys.executable = HOSTS_PYTHON or sys.executable
            os.write(write, json.dumps(function()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer)


def test_a_stranger_is_disconnected_silently_without_harm(tmp_path: Path) -> None:
    assert outcomes(attacked(tmp_path, every_attack)) == ["completed", "completed"]


@pytest.mark.skipif(os.geteuid() != 0 or not HOSTS_PYTHON, reason="needs root, and a Python of the host's")
def test_nor_does_it_where_an_ordinary_user_runs_the_launch() -> None:
    with folder_of(NOBODY) as folder:
        assert as_user(NOBODY, lambda: outcomes(attacked(folder, every_attack))) == ["completed", "completed"]


def test_a_tenant_on_a_neighbours_socket_loses_its_own_place(tmp_path: Path) -> None:
    result = attacked(tmp_path, lambda path: None, deed=INTRUDES)
    assert outcomes(result) == ["failed", "aborted"]
    assert "has connected to the socket of user 1" in result.tenants[0].message


def test_a_second_hello_costs_the_process_that_said_it(tmp_path: Path) -> None:
    assert outcomes(attacked(tmp_path, lambda path: None, joined_deed=AGAIN)) == ["completed", "completed"]
    for log in ("log0", "log1"):
        assert "refused this process: a second hello as rank 0" in (tmp_path / log).read_text()


FORGER = """
import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode())
print("sent", flush=True)
s.recv(1) if len(sys.argv) > 3 else time.sleep(0.2)
"""


@pytest.mark.parametrize("words", [HELLO, HELLO + GARBAGE["not-json"], HELLO + b'{"kind":"failed",%s}\n'])
def test_a_forged_marker_gives_way_to_the_tenants_own_process(tmp_path: Path, words: bytes) -> None:
    """Nothing that it says is the tenant's: neither its failure, nor its nonsense, nor its hello."""
    said = words.replace(b"%s", b'"outcome":"failed","message":"not me"')
    environment = {"COTENANT_RUN": RUN, "COTENANT_TENANT": "1"}
    forgers: list[subprocess.Popen[bytes]] = []

    def forge(path: Path) -> None:
        waiting = [] if said != HELLO else ["until it is closed"]
        command = [sys.executable, "-S", "-c", FORGER, str(path), said.decode(), *waiting]
        forgers.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE))
        assert forgers[0].stdout is not None
        assert forgers[0].stdout.readline() == b"sent\n"
        if not waiting:
            forgers[0].wait(HANG_S)

    assert outcomes(attacked(tmp_path, forge)) == ["completed", "completed"]
    forgers[0].communicate(timeout=HANG_S)
    assert forgers[0].returncode == 0


def tenant_of(index: int, pid: int, *procs: Path) -> Tenant:
    spec = SimpleNamespace(environment={"COTENANT_RUN": RUN})
    live = SimpleNamespace(entry=SliceEntry(procs, None))
    made = SimpleNamespace(index=index, process=SimpleNamespace(pid=pid), alive=True, live=live, spec=spec)
    return cast(Tenant, made)


@pytest.fixture
def sleepers() -> Iterator[list[int]]:
    """Two leaders of sessions."""
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(2):
            process = stack.enter_context(subprocess.Popen(["sleep", "1000"], start_new_session=True))
            stack.callback(process.kill)
            made.append(process.pid)
        yield made


def test_session_and_ancestry_decide_ownership_before_the_slice(tmp_path: Path, sleepers: list[int]) -> None:
    first, second = (tenant_of(index, pid) for index, pid in enumerate(sleepers))
    user = os.geteuid()
    assert claim(first, [first, second], sleepers[0], user) is Claim.OWN
    assert claim(first, [first, second], sleepers[1], user) is Claim.STRANGER
    assert owner_of([second], sleepers[1]) is second
    assert claim(first, [first, second], 0, user) is Claim.UNPROVEN
    assert claim(first, [first, second], 0, user + 1) is Claim.STRANGER
    assert claim(first, [first, second], os.getpid(), user) is Claim.STRANGER
    procs = tmp_path / "cgroup.procs"
    sliced = tenant_of(2, sleepers[0], procs)
    procs.write_text(f"{os.getpid()}\n")
    assert is_within(sliced, os.getpid())
    assert claim(sliced, [sliced], os.getpid(), user) is Claim.OWN
    assert owner_of([first, sliced], os.getpid()) is sliced
    procs.write_text("")
    assert claim(sliced, [sliced], os.getpid(), user) is Claim.STRANGER
    # Its marker helps nobody out of the slice, nor does its place in the slice a neighbour's child.
    procs.write_text(f"{sleepers[1]}\n")
    assert claim(sliced, [sliced, second], sleepers[1], user) is Claim.STRANGER


def test_what_a_connection_may_say_in_all_is_limited() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        link = Link(ours)
        theirs.sendall(b"x" * 5000)
        with pytest.raises(ProtocolError, match="5000 bytes"):
            link.receive()
        assert not link.open


def test_tenants_leave_descriptors_for_each_other() -> None:
    assert most_connections(1) >= most_connections(2) >= most_connections(100) >= 1
