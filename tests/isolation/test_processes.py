"""Processes by their marker: who is found, who is killed, and whose runs are left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cotenant.isolation import processes, runs
from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.processes import await_reapers, families, kill_marked, marked, sweep_marked
from cotenant.isolation.runs import RunName, pid_namespace
from cotenant.procfs import start_ticks
from cotenant.protocol.messages import REAPER_VARIABLE, RUN_VARIABLE, TENANT_VARIABLE
from isolation.conftest import in_its_own_namespace
from isolation.entering import eventually, in_python, is_dead, numbers, sleeper
from patience import HANG_S
from tenants.suites import CGROUPS, has_v1

FAMILY = """
import os, sys, time
notes = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
if not os.fork():
    os.setsid()
    if os.fork():
        sys.exit()
    os.write(notes, f"{os.getpid()} ".encode())
    time.sleep(1000)
os.write(notes, f"{os.getpid()} ".encode())
time.sleep(1000)
"""


def environment(run: object, tenant: int = 0) -> dict[str, str]:
    return {**os.environ, RUN_VARIABLE: str(run), TENANT_VARIABLE: str(tenant)}


@pytest.fixture
def run() -> str:
    """A run of this test's own: its runner lives, so that nobody else's sweep ends it."""
    return str(RunName())


@pytest.fixture
def dead_run(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunName]:
    """A run that this process alone takes for dead, so that nobody else's sweep is first."""
    with subprocess.Popen(["sleep", "1000"]) as runner:
        name = RunName(runner.pid, start_ticks(runner.pid) or 0)
        monkeypatch.setattr(runs, "start_ticks", lambda pid: None if pid == runner.pid else start_ticks(pid))
        yield name
        runner.kill()


def test_marked_finds_a_run_and_its_tenants(run: str) -> None:
    with sleeper(environment(run, 0)) as first, sleeper(environment(run, 1)) as second, sleeper():
        assert sorted(marked(run)) == sorted([first.pid, second.pid])
        assert marked(run, 1) == [second.pid]
        assert marked(run, 11) == []
        assert marked(run[:-1]) == []
        assert marked(f"{run}0") == []
        second.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, second.pid, os.WEXITED | os.WNOWAIT)
        assert Path(f"/proc/{second.pid}").exists()
        assert marked(run) == [first.pid]


def test_kill_meets_grandchildren_that_have_another_parent(run: str, tmp_path: Path) -> None:
    noted = tmp_path / "pids"
    line = [sys.executable, "-c", FAMILY, str(noted)]
    with subprocess.Popen(line, env=environment(run, 0)) as parent, sleeper(environment(run, 1)) as neighbour:
        eventually(lambda: len(numbers(noted)) == 2, "parent and grandchild")
        (grandchild,) = set(numbers(noted)) - {parent.pid}
        kill_marked(run, 0)
        eventually(lambda: is_dead(parent.pid) and is_dead(grandchild), "the death of both")
        assert neighbour.poll() is None
        kill_marked(run)
        assert neighbour.wait(HANG_S) == -signal.SIGKILL
    assert marked(run) == []


def test_a_process_unseen_for_a_moment_is_still_killed(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, number: int) -> None:
        raise PermissionError

    with sleeper(environment(run)) as process:
        with monkeypatch.context() as patch:
            patch.setattr(processes, "KILL_WAIT_S", 0.01)
            patch.setattr(signal, "pidfd_send_signal", refuse)
            with pytest.raises(NotIsolatedError, match=rf"processes {process.pid} of run {run} cannot be killed"):
                kill_marked(run)
        blinks = [[]]
        monkeypatch.setattr(processes, "marked", lambda *who: blinks.pop() if blinks else marked(*who))
        kill_marked(run)
        assert process.wait(HANG_S) == -signal.SIGKILL


def test_a_process_that_reuses_a_dead_ones_number_is_not_killed(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with sleeper() as stranger:
        found = [[stranger.pid], [], []]
        monkeypatch.setattr(processes, "marked", lambda *who: found.pop(0))
        kill_marked(run)
        assert found == []
        assert stranger.poll() is None


def test_sweep_ends_dead_runs_only_and_leaves_other_words_alone(run: str, dead_run: RunName) -> None:
    names = {run, "yesterday", "1-2"}
    with sleeper(environment(dead_run)) as left, ExitStack() as stack:
        others = [stack.enter_context(sleeper(environment(name))) for name in names]
        others.append(stack.enter_context(sleeper()))
        assert str(dead_run) in sweep_marked()
        assert left.wait(HANG_S) == -signal.SIGKILL
        assert not {*names, str(dead_run)} & set(sweep_marked())
        assert [process.poll() for process in others] == [None] * 4


def test_sweep_leaves_a_run_alone_whose_runner_cannot_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be seen by this process alone: others see that it lives, so that nobody's sweep ends it."""
    with in_its_own_namespace(tmp_path / "up") as runner:
        name = RunName(1, start_ticks(runner) or 0, pid_namespace(runner))
        monkeypatch.setattr(runs, "FIRST_NAMESPACE", 0)
        monkeypatch.setattr(runs, "_numbered_below", lambda number: [])
        assert name.alive is None
        with sleeper(environment(name)) as process:
            assert str(name) not in sweep_marked()
            assert process.poll() is None


@pytest.mark.v1
def test_sweep_ends_a_dead_runs_process_frozen_in_another_base(dead_run: RunName) -> None:
    """The freezer of cgroup v1 keeps SIGKILL until a thaw."""
    if not has_v1():
        pytest.skip("v1 cgroups cannot be made here")
    base = CGROUPS / "freezer" / f"cotenant-test-left.{os.getpid()}"
    base.mkdir()
    try:
        with sleeper(environment(dead_run)) as left:
            try:
                (base / "cgroup.procs").write_text(str(left.pid))
                (base / "freezer.state").write_text("FROZEN")
                eventually(lambda: (base / "freezer.state").read_text().strip() == "FROZEN", "it is frozen")
                assert str(dead_run) in sweep_marked()
                assert left.wait(HANG_S) == -signal.SIGKILL
            finally:
                (base / "freezer.state").write_text("THAWED")
    finally:
        base.rmdir()


def test_reapers_of_dead_runs_are_waited_for_but_not_for_ever(
    run: str, dead_run: RunName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise their clearing beyond a sweep would be lost, and two would clear at once."""
    of_the_dead = {**os.environ, REAPER_VARIABLE: str(dead_run)}
    with (
        subprocess.Popen(["sleep", "0.3"], env=of_the_dead) as at_work,
        sleeper({**os.environ, REAPER_VARIABLE: run}) as idle,
    ):
        await_reapers()
        assert is_dead(at_work.pid)
        assert idle.poll() is None
    monkeypatch.setattr(processes, "REAPER_WAIT_S", 0.05)
    with sleeper(of_the_dead) as stopped:
        stopped.send_signal(signal.SIGSTOP)
        await_reapers()
        assert stopped.wait(HANG_S) == -signal.SIGKILL


def test_a_runner_started_inside_a_tenant_does_not_end_itself(run: str) -> None:
    program = f"from cotenant.isolation.processes import kill_marked; kill_marked('{run}')"
    said = in_python(program, environment=environment(run))
    assert (said.returncode, said.stderr) == (0, "")


def test_sweep_ends_a_dead_runs_process_in_a_pid_namespace(dead_run: RunName, tmp_path: Path) -> None:
    with in_its_own_namespace(tmp_path / "up", {RUN_VARIABLE: str(dead_run)}) as inner:
        assert marked(str(dead_run)) == [inner]
        assert str(dead_run) in sweep_marked()
        assert is_dead(inner)


def test_a_runner_in_a_child_namespace_is_known_by_its_number(tmp_path: Path) -> None:
    with in_its_own_namespace(tmp_path / "up") as inner:
        name = RunName(1, start_ticks(inner) or 0, pid_namespace(inner))
        assert name.is_elsewhere
        assert name.alive
        assert not RunName(2, name.start_ticks, name.namespace).alive
        # The clock of a time namespace of its own may say otherwise.
        assert RunName(1, name.start_ticks + 1, name.namespace).alive
    eventually(lambda: not name.alive, "its end")


def test_processes_that_come_and_go_while_they_are_listed(run: str) -> None:
    with subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"]) as churn:
        for _ in range(50):
            assert marked(run) == []
        churn.kill()


ORPHANS = """
import os, subprocess, sys, time
import psutil
from cotenant.isolation.processes import adopt_orphans, children, end_orphans, now_ticks
from cotenant.procfs import process_of

earlier = subprocess.Popen(["sleep", "1000"])
assert adopt_orphans() == {earlier.pid}
kept = subprocess.Popen(["sleep", "1000"])
orphan = "import subprocess; print(subprocess.Popen(['sleep', '1000'], stdout=-3).pid)"
stranger = int(subprocess.run([sys.executable, "-c", orphan], stdout=-1, check=True).stdout)
assert stranger in children()
time.sleep(0.05)
since_ticks = now_ticks()
daemon = "import os, time; os.fork() and os._exit(0); os.setsid(); os.fork(); os.fork(); time.sleep(1000)"
dead = subprocess.Popen(["true"])
subprocess.run([sys.executable, "-c", daemon], env={}, check=True)
quick = "import os; pid = os.fork(); print(pid or '', flush=True); os._exit(0)"
over = int(subprocess.run([sys.executable, "-c", quick], stdout=-1, check=True).stdout)
while process_of(over).state != "Z" or len(psutil.Process().children(recursive=True)) < 9:
    time.sleep(0.01)
ended = end_orphans({earlier.pid, kept.pid}, since_ticks)
assert len(ended) == 4 and dead.pid not in ended, ended
assert all(name.startswith(f"pid {pid} (python") for pid, name in ended.items()), ended
assert children() == {earlier.pid, kept.pid, stranger}, children()
assert earlier.poll() is kept.poll() is None
for process in (earlier, kept):
    process.kill()
    process.wait()
end_orphans(set(), 0)
assert not children()
print("ended")
"""


def test_unmarked_daemons_end_but_earlier_processes_live() -> None:
    """In a process of its own: a subreaper stays one, and the test run has children enough."""
    ended = in_python(ORPHANS)
    assert ended.stdout == "ended\n", ended.stderr


def test_a_family_has_session_marked_and_descended_processes(run: str, tmp_path: Path) -> None:
    """The first leader's variables are kept, and the second's are cleared."""
    files = [tmp_path / "kept", tmp_path / "cleared"]
    lines = [[sys.executable, "-c", FAMILY, str(file)] for file in files]
    with (
        subprocess.Popen(lines[0], env=environment(run, 1), start_new_session=True) as kept,
        subprocess.Popen(lines[1], env={}, start_new_session=True) as cleared,
        subprocess.Popen(["sleep", "1000"], start_new_session=True) as neighbour,
        sleeper(),
    ):
        try:
            eventually(lambda: [len(numbers(file)) for file in files] == [2, 2], "parents and grandchildren")
            # Who has left session and parent is known by its marker alone.
            (grandchild,) = set(numbers(files[0])) - {kept.pid}
            leaders = {0: neighbour.pid, 1: kept.pid, 2: cleared.pid}
            # The child between them may be on its way out.
            expected = {0: {neighbour.pid}, 1: {kept.pid, grandchild}, 2: {cleared.pid}}
            eventually(lambda: families(leaders, run) == expected, "the families")
        finally:
            for pid in [neighbour.pid, *numbers(files[0]), *numbers(files[1])]:
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("error", [None, PermissionError])
def test_orphans_that_cannot_be_killed_are_named(error: type[OSError] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Orphans of another user, as sudo starts them, or in the midst of a system call that does not end."""

    def kill(pid: int, number: int) -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(processes, "KILL_WAIT_S", 0.01)
    monkeypatch.setattr(processes, "children", lambda: {9})
    monkeypatch.setattr(processes, "_is_older", lambda pid, ticks: False)
    monkeypatch.setattr(os, "kill", kill)
    with pytest.raises(NotIsolatedError, match=r"processes 9 that users left cannot be killed"):
        processes.end_orphans(set(), 0)
