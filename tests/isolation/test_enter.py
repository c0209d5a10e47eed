"""The shim without cgroups: what it binds, checks and refuses, and what it hands on to the benchmark."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cotenant.isolation import shim as product
from cotenant.isolation.backend import Entry, NotIsolatedError
from cotenant.isolation.shim import START, ForkServer, server_command, shim_words
from isolation.shim import eventually, is_dead, numbers, started

FREE = Entry()
LOOK = ["sh", "-c", "echo $PPID; ps -o sid= -p $$; exec ls /proc/self/fd"]
AFFINITY = [sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]
OWN = tuple(sorted(os.sched_getaffinity(0)))


def test_set_binds() -> None:
    with started(Entry(processors=OWN[-1:], set_affinity=True), *AFFINITY) as shim:
        assert shim.run() == (0, f"[{OWN[-1]}]\n")


def test_set_refuses_a_processor_that_is_not_there(tmp_path: Path) -> None:
    with started(Entry(processors=(4095,), set_affinity=True), "touch", tmp_path / "ran") as shim:
        assert shim.says() == "processors [4095] cannot be had: Invalid argument"
        assert shim.result() == (125, "")
    assert not (tmp_path / "ran").exists()


def test_set_refuses_processors_that_are_there_in_part(tmp_path: Path) -> None:
    """The kernel takes such a mask, and drops what is not there without a word."""
    with started(Entry(processors=(OWN[0], 4095), set_affinity=True), "touch", tmp_path / "ran") as shim:
        assert shim.says() == f"planned on processors [{OWN[0]}, 4095], but finds itself on [{OWN[0]}]"
        assert shim.result() == (125, "")
    assert not (tmp_path / "ran").exists()


def test_check_takes_what_is_planned() -> None:
    with started(Entry(processors=OWN), *AFFINITY) as shim:
        assert shim.run() == (0, f"{list(OWN)}\n")


def test_check_refuses_and_binds_nothing(tmp_path: Path) -> None:
    with started(Entry(processors=(*OWN, 4095)), "touch", tmp_path / "ran") as shim:
        assert shim.says() == f"planned on processors {[*OWN, 4095]}, but finds itself on {list(OWN)}"
        assert shim.result() == (125, "")
    assert not (tmp_path / "ran").exists()


def test_free_leaves_alone() -> None:
    with started(FREE, *AFFINITY) as shim:
        assert shim.run() == (0, f"{list(OWN)}\n")


def test_every_procs_file_gets_a_zero(tmp_path: Path) -> None:
    files = tuple(tmp_path / name for name in ("a", "b"))
    for file in files:
        file.write_text("x")
    with started(Entry(procs_files=files), "true") as shim:
        assert shim.run() == (0, "")
    assert [file.read_text() for file in files] == ["0", "0"]


@pytest.mark.parametrize(("place", "reason"), [("gone/cgroup.procs", "No such file or directory"), (".", "Is a dir")])
def test_a_slice_that_cannot_be_entered(place: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / place
    with started(Entry(procs_files=(file,)), "touch", tmp_path / "ran") as shim:
        assert shim.says().startswith(f"{file} cannot be entered: {reason}")
        assert shim.result() == (125, "")
    assert not (tmp_path / "ran").exists()


def test_a_full_device_names_the_file() -> None:
    """The kernel's refusal of the write, ENOSPC as for a cpuset without processors."""
    with started(Entry(procs_files=(Path("/dev/full"),)), "true") as shim:
        assert shim.says() == "/dev/full cannot be entered: No space left on device"
        assert shim.result() == (125, "")


def test_the_runner_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "shim_words", lambda entry, runner: shim_words(entry, runner + 1))
    with started(FREE, "touch", tmp_path / "ran") as shim:
        assert shim.says() == "the runner is gone"
        assert shim.result() == (125, "")
    assert not (tmp_path / "ran").exists()


def test_the_end_of_the_channel_is_no_word_to_start(tmp_path: Path) -> None:
    with started(FREE, "touch", tmp_path / "ran") as shim:
        assert shim.says() == "in"
        shim.channel.close()
        assert shim.result() == (125, "")
    assert not (tmp_path / "ran").exists()


def test_a_channel_that_was_never_read(tmp_path: Path) -> None:
    """The other end closes with our word unread: the kernel says ECONNRESET, and no traceback may follow."""
    with started(FREE, "touch", tmp_path / "ran") as shim:
        eventually(lambda: shim.channel.recv(1, 2), "a word")  # MSG_PEEK
        shim.channel.close()
        assert shim.result() == (125, "")
    assert not (tmp_path / "ran").exists()


def test_a_channel_that_is_closed_from_the_start(tmp_path: Path) -> None:
    with started(FREE, "touch", tmp_path / "ran") as shim:
        shim.channel.close()
        assert shim.result() == (125, "")
    assert not (tmp_path / "ran").exists()


def test_nothing_runs_before_the_word(tmp_path: Path) -> None:
    with started(FREE, "touch", tmp_path / "ran") as shim:
        assert shim.says() == "in"
        command = Path(f"/proc/{shim.process.pid}/cmdline").read_text()
        assert START in command
        assert not (tmp_path / "ran").exists()
        shim.release()
        assert shim.says() == ""
        assert shim.result() == (0, "")
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("command", ["/none/such", "no-such-program"])
def test_a_command_that_is_not_there(command: str) -> None:
    with started(FREE, command) as shim:
        assert shim.says() == "in"
        shim.release()
        assert shim.says() == "No such file or directory"
        assert shim.result() == (127, "")


@pytest.mark.parametrize(
    ("mode", "text", "reason"), [(0o644, "#!/bin/sh\n", "Permission denied"), (0o755, "?", "Exec")]
)
def test_a_command_that_cannot_be_executed(mode: int, text: str, reason: str, tmp_path: Path) -> None:
    command = tmp_path / "run.sh"
    command.write_text(text)
    command.chmod(mode)
    with started(FREE, command) as shim:
        assert shim.says() == "in"
        shim.release()
        assert shim.says().startswith(reason)
        assert shim.result() == (126, "")


def test_arguments_arrive_as_they_are() -> None:
    with started(FREE, "printf", "%s|", "a b", "", "--", "$HOME", "*") as shim:
        assert shim.run() == (0, "a b||--|$HOME|*|")


def test_the_environment_is_the_runners_own() -> None:
    given = {"PATH": os.environ["PATH"], "PYTHONPATH": "/none", "LC_ALL": "C.UTF-8"}
    with started(FREE, "env", environment=given) as shim:
        assert dict(line.split("=", 1) for line in shim.run()[1].splitlines()) == given


def test_no_descriptor_leaks_into_the_benchmark() -> None:
    with started(FREE, "ls", "/proc/self/fd") as shim:
        # The fourth is the directory that ls reads.
        assert shim.run() == (0, "0\n1\n2\n3\n")


def test_a_broken_pipe_ends_the_benchmark_as_under_a_shell() -> None:
    """Python ignores SIGPIPE, and what is ignored stays so across exec."""
    with started(FREE, "grep", "^Sig\\(Ign\\|Blk\\)", "/proc/self/status") as shim:
        blocked, ignored = (
            int(line.split()[1], 16)
            for line in Path("/proc/self/status").read_text().splitlines()
            if line.startswith(("SigBlk", "SigIgn"))
        )
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            ignored &= ~(1 << (number - 1))
        assert shim.run() == (0, f"SigBlk:\t{blocked:016x}\nSigIgn:\t{ignored:016x}\n")


RUNNER = """
import socket, sys, time
from cotenant.isolation.backend import Entry
from cotenant.isolation.shim import ForkServer
ours, theirs = socket.socketpair()
forks = ForkServer()
forks.start(Entry(), theirs.fileno(), 2, sys.argv[1:], {"PATH": "/usr/bin:/bin"})
print(*forks.pids, flush=True)
ours.recv(9)
ours.send(b"1")
time.sleep(1000)
"""


def test_the_tenant_and_the_fork_server_die_with_their_runner(tmp_path: Path) -> None:
    """Also one that would not listen to SIGTERM, and without any word of the runner."""
    noted = tmp_path / "pid"
    tenant = [
        "/bin/sh",
        "-c",
        f"trap '' TERM; echo $$ > {noted}.part; mv {noted}.part {noted}; while :; do sleep 1; done",
    ]
    with subprocess.Popen([sys.executable, "-c", RUNNER, *tenant], stdout=subprocess.PIPE, text=True) as process:
        eventually(lambda: numbers(noted), "the tenant's pid")
        (pid,) = numbers(noted)
        assert process.stdout is not None
        server = int(process.stdout.readline())
        try:
            assert not is_dead(pid)
            assert not is_dead(server)
            process.send_signal(signal.SIGKILL)
            eventually(lambda: is_dead(pid) and is_dead(server), "the death of both")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_it_imports_next_to_nothing() -> None:
    """Every page of the fork server is copied for every tenant, and its start delays the first."""
    line = [sys.executable, "-I", "-S", "-X", "importtime", *server_command(0, 0)[3:]]
    # 0 is no runner: it ends right after its imports.
    said = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert said.returncode != 0
    assert "the runner is gone" in said.stderr
    modules = {row.rpartition("|")[2].strip().partition(".")[0] for row in said.stderr.splitlines()}
    assert {"_ctypes", "_signal", "_socket", "marshal", "posix"} <= modules
    heavy = {"ctypes", "enum", "os", "signal"} | {
        "argparse",
        "asyncio",
        "contextlib",
        "dataclasses",
        "json",
        "pathlib",
        "re",
    }
    heavy |= {"site", "socket", "subprocess", "tempfile", "threading", "traceback", "typing", "cotenant"}
    assert not modules & heavy
    assert len(modules) < 40


def test_one_server_forks_all(tmp_path: Path) -> None:
    """Each is a child of ours, of its own session, and of nobody's descriptors but its own."""
    with closing(ForkServer()) as forks:
        with started(FREE, "sleep", "1000", forks=forks) as first, started(FREE, *LOOK, forks=forks) as second:
            (server,) = forks.pids
            assert first.says() == "in"
            first.release()
            code, printed = second.run()
        assert forks.pids == {server}
    assert code == 0
    assert printed.split() == [str(os.getpid()), str(second.process.pid), "0", "1", "2", "3"]
    assert is_dead(server)


def test_a_killed_server_is_replaced() -> None:
    with closing(ForkServer()) as forks:
        with started(FREE, "true", forks=forks) as shim:
            assert shim.run() == (0, "")
        (server,) = forks.pids
        os.kill(server, signal.SIGKILL)
        eventually(lambda: is_dead(server), "the server's death")
        with started(FREE, "true", forks=forks) as shim:
            assert shim.run() == (0, "")
        assert forks.pids != {server}


def test_a_server_that_dies_over_an_order_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next order starts another."""
    with closing(ForkServer()) as forks:
        monkeypatch.setattr(product, "server_command", lambda channel, runner: ["/bin/sh", "-c", f"read x <&{channel}"])
        with pytest.raises(NotIsolatedError, match="no tenant can be started: "), started(FREE, "true", forks=forks):
            pass
        monkeypatch.undo()
        with started(FREE, "true", forks=forks) as shim:
            assert shim.run() == (0, "")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("CLONE.clear()", f"clone(2) has no known number on {os.uname().machine}"),
        ("CLONE.update(dict.fromkeys(forkserver.CLONE, -1))", "the kernel refuses another process"),
    ],
)
def test_a_shim_that_cannot_be_forked_is_a_sentence(change: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "START", START.replace("sys.exit", f"forkserver.{change}; sys.exit"))
    with closing(ForkServer()) as forks, pytest.raises(NotIsolatedError) as caught, started(FREE, "true", forks=forks):
        pass
    assert str(caught.value) == f"no tenant can be started: {reason}"


def test_a_server_that_cannot_be_started_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "PYTHON", "/none/python")
    with closing(ForkServer()) as forks, pytest.raises(NotIsolatedError, match="/none/python"):
        forks.start(FREE, 0, 1, ["/bin/true"], {})


def test_why_a_server_ended_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "START", "import none")
    with closing(ForkServer()) as forks, pytest.raises(NotIsolatedError, match="No module named 'none'"):
        forks.start(FREE, 0, 1, ["/bin/true"], {})


@pytest.mark.parametrize("environment", [{"A=B": "c"}, {"": "c"}])
def test_an_environment_that_is_none(environment: dict[str, str]) -> None:
    with started(FREE, "true", environment=environment) as shim:
        assert shim.says() == "in"
        shim.release()
        assert shim.says() == "illegal environment variable name"
        assert shim.result() == (126, "")


def test_bytes_arrive_as_they_are() -> None:
    name = os.fsdecode(b"\xe9\xff")
    with started(FREE, "printf", "%s|%s", name, environment={"LC_ALL": "C", "A": name}) as shim:
        assert shim.says() == "in"
        shim.release()
        assert shim.output.buffer.read() == b"\xe9\xff|"
