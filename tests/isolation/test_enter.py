"""Entering without cgroups: bindings, checks and refusals, and the environment that the benchmark gets."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cotenant.isolation import entry as product
from cotenant.isolation.backend import NotIsolatedError, SliceEntry
from cotenant.isolation.entry import entry_of, entry_words, own_shm_can_be_had
from isolation.entering import AFFINITY, MIB, eventually, in_python, is_dead, numbers, slice_of, started

FREE = SliceEntry()
OWN = tuple(sorted(os.sched_getaffinity(0)))


def test_processors_that_are_as_planned_are_left_alone() -> None:
    """Those that are bound, and a tenant without a plan, are in test_unenforced.py."""
    with started(SliceEntry(processors=OWN), *AFFINITY) as entering:
        assert entering.run() == (0, f"{list(OWN)}\n")


def test_a_slice_that_cannot_be_entered_runs_nothing(tmp_path: Path) -> None:
    some, all_and_more = f"[{OWN[0]}, 4095]", [*OWN, 4095]
    reasons = {
        SliceEntry(processors=(4095,), set_affinity=True): "processors [4095] cannot be had: Invalid argument",
        # The kernel takes such a mask, and silently drops processors that do not exist.
        SliceEntry(
            processors=(OWN[0], 4095), set_affinity=True
        ): f"planned on processors {some}, but finds itself on [{OWN[0]}]",
        SliceEntry(processors=(*OWN, 4095)): f"planned on processors {all_and_more}, but finds itself on {list(OWN)}",
    }
    # The last is as a cpuset without processors answers.
    for path, why in {
        "/none/x": "No such file or directory",
        "/": "Is a directory",
        "/dev/full": "No space left on device",
    }.items():
        reasons[SliceEntry(procs_files=(Path(path),))] = f"{path} cannot be entered: {why}"
    for entry, reason in reasons.items():
        with started(entry, "touch", tmp_path / "ran") as entering:
            assert entering.says() == reason
            assert entering.result() == (125, "")
    assert not (tmp_path / "ran").exists()


def test_without_a_runner_and_without_its_word_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The channel may end before our word, after it, and before it was read: then the kernel says ECONNRESET."""
    for waits, is_read in ((False, False), (True, False), (True, True)):
        with started(FREE, "touch", tmp_path / "ran") as entering:
            if waits:
                eventually(lambda entering=entering: entering.channel.recv(1, 2), "a word")  # MSG_PEEK
            if is_read:
                assert entering.says() == "in"
            entering.channel.close()
            assert entering.result() == (125, "")
    monkeypatch.setattr(product, "entry_words", lambda entry, channel, runner: entry_words(entry, channel, runner + 1))
    with started(FREE, "touch", tmp_path / "ran") as entering:
        assert entering.says() == "the runner is gone"
        assert entering.result() == (125, "")
    assert not (tmp_path / "ran").exists()


def test_nothing_runs_before_release_and_procs_files_get_zero(tmp_path: Path) -> None:
    files = tuple(tmp_path / name for name in ("a", "b"))
    for file in files:
        file.write_text("x")
    with started(SliceEntry(procs_files=files), "touch", tmp_path / "ran") as entering:
        assert entering.says() == "in"
        assert "enter.py" in Path(f"/proc/{entering.process.pid}/cmdline").read_text()
        assert not (tmp_path / "ran").exists()
        entering.release()
        assert entering.says() == ""
        assert entering.result() == (0, "")
    assert (tmp_path / "ran").exists()
    assert [file.read_text() for file in files] == ["0", "0"]


def test_a_command_that_cannot_be_executed(tmp_path: Path) -> None:
    plain, odd = tmp_path / "plain", tmp_path / "odd"
    plain.write_text("#!/bin/sh\n")
    odd.write_text("?")
    odd.chmod(0o755)
    reasons = {
        tmp_path / "none": (127, "No such file or directory"),
        plain: (126, "Permission denied"),
        odd: (126, "Exec format error"),
    }
    for command, (status, reason) in reasons.items():
        with started(FREE, command) as entering:
            entering.go()
            assert entering.says() == reason
            assert entering.result() == (status, "")


def test_words_and_variables_arrive_as_they_are() -> None:
    """Bytes that are no text, too, and no variable of Python's own: it adds LC_CTYPE in the C locale."""
    name = os.fsdecode(b"\xe9\xff")
    for given in ({"A": name}, {"LC_ALL": "C", "A": name}, {"PYTHONPATH": "/none", "LC_ALL": "C.UTF-8", "A": name}):
        script = 'printf "%s|" "$@"; exec env -0'
        with started(FREE, "/bin/sh", "-c", script, "a b", "", "--", "$HOME", "*", name, environment=given) as entering:
            entering.go()
            printed = entering.output.buffer.read()
        words, *_ = printed.split(b"\0")[0].rpartition(b"|")
        assert words == b"|--|$HOME|*|\xe9\xff"
        variables = dict(line.split(b"=", 1) for line in printed.rpartition(b"|")[2].split(b"\0") if line)
        assert {key: value for key, value in variables.items() if key not in (b"PWD", b"_", b"SHLVL", b"OLDPWD")} == {
            os.fsencode(key): os.fsencode(value) for key, value in given.items()
        }


def test_a_child_has_its_own_session_and_no_extra_descriptors() -> None:
    look = ["sh", "-c", "echo $PPID; ps -o sid= -p $$; exec ls /proc/self/fd"]
    with started(FREE, "sleep", "1000") as neighbour, started(FREE, *look) as entering:
        assert neighbour.says() == "in"
        code, printed = entering.run()
    assert code == 0
    # The fourth is the directory that ls reads.
    assert printed.split() == [str(os.getpid()), str(entering.process.pid), "0", "1", "2", "3"]


def test_a_broken_pipe_ends_the_benchmark_as_under_a_shell() -> None:
    """Python ignores SIGPIPE, and an ignored signal stays ignored across exec."""
    with started(FREE, "grep", "^Sig\\(Ign\\|Blk\\)", "/proc/self/status") as entering:
        blocked, ignored = (
            int(line.split()[1], 16)
            for line in Path("/proc/self/status").read_text().splitlines()
            if line.startswith(("SigBlk", "SigIgn"))
        )
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            ignored &= ~(1 << (number - 1))
        assert entering.run() == (0, f"SigBlk:\t{blocked:016x}\nSigIgn:\t{ignored:016x}\n")


RUNNER = """
import socket, sys, time
from cotenant.isolation.backend import SliceEntry
from cotenant.isolation.entry import start_entry
ours, theirs = socket.socketpair()
start_entry(SliceEntry(), theirs.fileno(), 2, sys.argv[1:], {"PATH": "/usr/bin:/bin"})
ours.recv(9)
ours.send(b"1")
time.sleep(1000)
"""


def test_the_tenant_dies_with_its_runner(tmp_path: Path) -> None:
    """Also one that would not listen to SIGTERM, and without any word of the runner."""
    noted = tmp_path / "pid"
    script = f"trap '' TERM; echo $$ > {noted}.part; mv {noted}.part {noted}; while :; do sleep 1; done"
    with subprocess.Popen([sys.executable, "-c", RUNNER, "/bin/sh", "-c", script]) as process:
        eventually(lambda: numbers(noted) or process.poll() is not None, "the user's pid")
        (pid,) = numbers(noted)
        try:
            assert not is_dead(pid)
            process.send_signal(signal.SIGKILL)
            eventually(lambda: is_dead(pid), "its death")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_what_cannot_be_started_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotIsolatedError, match="no user can be started: illegal environment variable name"):
        product.start_entry(FREE, 0, 1, ["/bin/true"], {"A=B": "c"})
    monkeypatch.setattr(sys, "executable", "/none/python")
    with pytest.raises(NotIsolatedError, match=r"no user can be started: .*'/none/python'"):
        product.start_entry(FREE, 0, 1, ["/bin/true"], {})


@pytest.fixture
def mounting() -> None:
    """Skips a test where mount namespaces cannot be made, but in CI it fails."""
    if not own_shm_can_be_had():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("a mount namespace cannot be made here")


@pytest.mark.usefixtures("mounting")
def test_each_child_has_its_own_dev_shm_and_host_mounts_stay() -> None:
    before, name = Path("/proc/self/mountinfo").read_text(), f"cotenant-test-{os.getpid()}"
    entry = entry_of(slice_of(0, OWN, memory_bytes=3 * MIB))
    assert entry.shm_bytes == 3 * MIB
    # Not more than a few MiB: where it went wrong this would be the machine's own /dev/shm.
    fill = f"head -c {4 * MIB} /dev/zero 2>&- > /dev/shm/{name}; stat -c %s /dev/shm/{name}"
    try:
        with (
            started(entry, "sh", "-c", f"ls -A /dev/shm; stat -c %a /dev/shm; {fill}") as first,
            started(entry, "ls", "-A", "/dev/shm") as second,
        ):
            assert first.run() == (0, f"1777\n{3 * MIB}\n")
            assert second.run() == (0, "")
        assert not Path("/dev/shm", name).exists()
    finally:
        Path("/dev/shm", name).unlink(missing_ok=True)
    assert Path("/proc/self/mountinfo").read_text() == before


ON_A_SHARED_HOST = """
import socket
from pathlib import Path
from cotenant.isolation.backend import SliceEntry
from cotenant.isolation.entry import start_entry
before = Path("/proc/self/mountinfo").read_text()
assert " shared:" in before
ours, theirs = socket.socketpair()
process = start_entry(SliceEntry(shm_bytes=4096), theirs.fileno(), 2, ["/bin/true"], {})
assert ours.recv(9) == b"in\\n"
assert Path("/proc/self/mountinfo").read_text() == before
assert process.pid and Path(f"/proc/{process.pid}/mountinfo").read_text() != before
ours.send(b"1")
assert process.wait() == 0
"""


@pytest.mark.usefixtures("mounting")
def test_nothing_is_mounted_on_a_host_whose_mounts_are_shared() -> None:
    """As under systemd: but for a slave's propagation the host would get the tenant's /dev/shm."""
    ended = in_python(ON_A_SHARED_HOST, before=("unshare", "--mount", "--propagation", "shared"))
    assert (ended.returncode, ended.stderr) == (0, "")


def test_where_it_is_refused_the_machines_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refusing = tmp_path / "enter.py"
    refusing.write_text(Path(product.enter.__file__).read_text().replace('SHM = "/dev/shm"', 'SHM = "/none"'))
    monkeypatch.setattr(product.enter, "__file__", str(refusing))
    with started(SliceEntry(shm_bytes=MIB), "true") as entering:
        assert entering.says() in (
            "mount is refused: No such file or directory",
            "unshare is refused: Operation not permitted",
        )
        assert entering.result() == (125, "")
    own_shm_can_be_had.cache_clear()
    try:
        assert not own_shm_can_be_had()
        assert entry_of(slice_of(0, OWN)).shm_bytes == 0
    finally:
        own_shm_can_be_had.cache_clear()
