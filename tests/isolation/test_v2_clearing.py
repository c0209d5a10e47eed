"""How backend v2 ends a run: who is killed and in which order, and what goes before what."""

from __future__ import annotations

import os
import signal

import pytest

from cotenant.isolation import v2tree
from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.leftovers import clear
from cotenant.isolation.runs import RunName
from cotenant.isolation.v2tree import LEAF
from cotenant.protocol.messages import RUN_VARIABLE
from isolation.entering import PATIENCE_S, sleeper, slice_of
from isolation.fakev2 import FakeV2, opened, run_of

BOTH = [slice_of(tenant, [tenant]) for tenant in (0, 1)]


def test_a_slice_that_its_tenant_has_divided_is_no_obstacle(v2_kernel: FakeV2) -> None:
    """As podman does, or a suite inside a suite: the run could not take its controllers back before."""
    backend = opened(v2_kernel)
    backend.create(BOTH[0])
    slice_ = run_of(v2_kernel) / "t0"
    for level in (slice_, slice_ / "theirs"):
        (level / "theirs").mkdir()
        v2_kernel.hand_down(level, ("memory", "pids"))
    v2_kernel.enter(slice_ / "theirs/theirs", 4000001)
    backend.close()
    assert v2_kernel.directories() == []
    assert v2_kernel.place_of(os.getpid()) == [v2_kernel.own]
    assert v2_kernel.handed(v2_kernel.own) == []


def test_all_slices_are_killed_before_the_end_of_one_is_waited_for(v2_kernel: FakeV2) -> None:
    backend = opened(v2_kernel)
    for number, slice_ in enumerate(BOTH):
        backend.create(slice_)
        v2_kernel.enter(run_of(v2_kernel) / f"t{number}", 4000001 + number)
    v2_kernel.calls.clear()
    clear(backend.location(), run_of(v2_kernel).name)
    files = [call.rpartition("/")[2] for call in v2_kernel.calls if call.startswith("open")]
    assert files[:2] == ["cgroup.kill"] * 2
    assert "cgroup.kill" not in files[2:]
    backend.close()


def test_one_that_survives_saves_no_other(v2_kernel: FakeV2, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a kernel without cgroup.kill, where they are killed one by one."""
    monkeypatch.setattr("cotenant.isolation.group.KILL_WAIT_S", 0.01)
    monkeypatch.setattr("cotenant.isolation.group.AT_ONCE_S", 0.01)
    backend = opened(v2_kernel)
    v2_kernel.lacks("cgroup.kill")
    places = [run_of(v2_kernel) / f"t{slice_.tenant}" for slice_ in BOTH]
    for number, slice_ in enumerate(BOTH):
        backend.create(slice_)
        v2_kernel.enter(places[number], 4000001 + number)
    first, second = sorted(places, key=[path for path in run_of(v2_kernel).iterdir() if path in places].index)
    immortal = int((first / "cgroup.procs").read_text())

    def killed(pid: int, number: int) -> None:
        if pid == immortal:
            raise PermissionError
        v2_kernel.enter(second)

    monkeypatch.setattr(os, "kill", killed)
    with pytest.raises(NotIsolatedError, match=rf"processes {immortal} in {first} cannot be killed"):
        clear(backend.location(), run_of(v2_kernel).name)
    assert (second / "cgroup.procs").read_text().strip() == ""
    v2_kernel.enter(first)
    backend.close()


def test_who_came_with_our_shell_goes_back_and_what_the_run_has_started_ends(
    v2_kernel: FakeV2, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the reaper finds the leaf of a runner that was killed: its shell's children are nobody's but the shell's."""
    backend = opened(v2_kernel)
    monkeypatch.setattr(v2tree, "is_ours", lambda pid: pid == os.getpid())
    with sleeper() as shells, sleeper({**os.environ, RUN_VARIABLE: str(RunName())}) as of_the_run:
        v2_kernel.enter(run_of(v2_kernel) / LEAF, os.getpid(), shells.pid, of_the_run.pid)
        backend.close()
        assert of_the_run.wait(PATIENCE_S) == -signal.SIGKILL
        assert shells.poll() is None
        assert v2_kernel.place_of(shells.pid) == v2_kernel.place_of(os.getpid()) == [v2_kernel.own]
    assert v2_kernel.directories() == []


def test_who_does_not_leave_is_named(v2_kernel: FakeV2, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotenant.isolation.v2tree.LEAVE_WAIT_S", 0.01)
    backend = opened(v2_kernel)
    monkeypatch.setattr("cotenant.isolation.v2tree._move", lambda pids, target: None)
    with pytest.raises(NotIsolatedError, match=rf"pid {os.getpid()} \(.*\) do not leave .*/{LEAF}"):
        backend.close()
