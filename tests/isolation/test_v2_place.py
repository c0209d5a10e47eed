"""Where backend v2 divides the tree, who is moved for it, who clears up, and how a run ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from cotenant.errors import CotenantError
from cotenant.isolation import v2tree
from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.leftovers import clear_slices
from cotenant.isolation.runs import RunName
from cotenant.isolation.slices import CgroupBackend
from cotenant.isolation.v2 import V2
from cotenant.isolation.v2tree import LEAF
from cotenant.machine.limits import Mounts
from cotenant.machine.virtual import Virtual
from cotenant.protocol.messages import RUN_VARIABLE
from isolation.entering import MIB, sleeper, slice_of
from isolation.fakekernel import PLANNED, reason, refused
from isolation.fakev2 import HOME, FakeV2, MakeV2
from patience import HANG_S

STRANGER = 1


def is_as_before(kernel: FakeV2) -> bool:
    """Whether nothing is left of any run: we are back where we came from, which divides nothing any more."""
    is_divided = kernel.handed(kernel.own) != []
    return not kernel.directories() and kernel.place_of(os.getpid()) == [kernel.own] and not is_divided


def two_inhabited(kernel: FakeV2) -> tuple[CgroupBackend, list[Path]]:
    """Return an opened backend, and its two slices, each with a process in it."""
    backend = kernel.opened()
    places = [kernel.run / f"t{tenant}" for tenant in (0, 1)]
    for tenant, place in enumerate(places):
        backend.create(slice_of(tenant, [tenant]))
        kernel.enter(place, 4000001 + tenant)
    return backend, places


def without_systemd(kernel: FakeV2, monkeypatch: pytest.MonkeyPatch, user: int) -> None:
    """Have nobody who delegates, and be this user of a host itself."""
    kernel.delegated.clear()
    monkeypatch.setattr("cotenant.isolation.backend.virtual", lambda: Virtual("", ""))
    monkeypatch.setattr(v2tree, "SYSTEMD", kernel.root / "nowhere")
    monkeypatch.setattr(os, "geteuid", lambda: user)


def test_a_run_from_its_beginning_to_its_end(v2_kernel: FakeV2) -> None:
    backend = v2_kernel.opened()
    assert backend.unenforced == ()
    assert v2_kernel.place_of(os.getpid()) == [v2_kernel.run / LEAF]
    for level in (v2_kernel.own, v2_kernel.own / HOME, v2_kernel.run):
        assert v2_kernel.handed(level) == sorted(["memory", "cpuset", "pids", "cpu", "io"])
    live = backend.create(PLANNED)
    assert live.entry.procs_files == (v2_kernel.run / "t0/cgroup.procs",)
    assert (live.entry.processors, live.entry.set_affinity) == ((2, 3), False)
    live.remove()
    backend.close()
    assert is_as_before(v2_kernel)
    backend.close()


def test_probe_names_what_is_missing(v2_kernel: FakeV2) -> None:
    assert reason(v2_kernel.backend()) is None
    v2_kernel.hand_down(v2_kernel.own.parent, ("cpuset",))
    assert reason(v2_kernel.backend()) == f"{v2_kernel.own} has no controller memory"
    v2_kernel.delegated.clear()
    v2_kernel.hand_down(v2_kernel.own.parent, ("memory",))
    assert reason(v2_kernel.backend()) == f"the cgroup {v2_kernel.own} is not delegated to us"
    assert reason(V2(v2_kernel.mounts, "none/theirs")) == f"there is no cgroup {v2_kernel.mount}/none/theirs"
    assert reason(V2(Mounts({}, v2_kernel.mount, {}, {}))) == "no cgroup v2 hierarchy shows our own cgroup"


def test_without_cpusets_it_serves_in_part(v2_kernel: FakeV2, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotenant.isolation.scope.may_be_asked_for", lambda mounts: True)
    v2_kernel.hand_down(v2_kernel.own.parent, ("memory", "pids"))
    refusal = refused(v2_kernel.backend())
    assert refusal.partial
    assert "has no controller cpuset" in refusal.reason
    assert "Delegate=cpu cpuset io memory pids" in refusal.remedy
    backend = v2_kernel.opened()
    assert backend.unenforced == ("processors", "nodes")
    live = backend.create(PLANNED)
    assert live.entry.set_affinity
    back = live.verify()
    assert (back.processors, back.nodes, back.memory_bytes) == (None, None, 64 * MIB)
    backend.close()
    assert is_as_before(v2_kernel)


@pytest.mark.parametrize("name", ["pids", "cpu", "io"])
def test_a_wanted_controller_that_is_not_there_is_done_without(name: str, v2_kernel: FakeV2) -> None:
    v2_kernel.hand_down(v2_kernel.own.parent, tuple({"cpuset", "memory", "cpu", "io", "pids"} - {name}))
    assert reason(v2_kernel.backend()) is None
    backend = v2_kernel.opened()
    assert backend.unenforced == (("pids",) if name == "pids" else ())
    backend.create(PLANNED).verify()


def test_nobody_but_us_is_moved(v2_kernel: FakeV2) -> None:
    v2_kernel.enter(v2_kernel.own, os.getpid(), STRANGER)
    said = f"others live in {v2_kernel.own}, which could not be divided then: pid 1 ("
    assert str(reason(v2_kernel.backend())).startswith(said)
    with pytest.raises(NotIsolatedError, match=r"pid 1 \(.*\) live in .* and are not ours to move"):
        v2_kernel.opened()
    assert v2_kernel.place_of(STRANGER) == [v2_kernel.own]
    assert is_as_before(v2_kernel)
    v2_kernel.enter(v2_kernel.own, 0)
    assert "a process of another PID namespace" in str(reason(v2_kernel.backend()))


def test_our_children_move_with_us_and_come_back(v2_kernel: FakeV2) -> None:
    with sleeper() as child:
        v2_kernel.enter(v2_kernel.own, os.getpid(), child.pid)
        backend = v2_kernel.opened()
        assert v2_kernel.place_of(child.pid) == [v2_kernel.run / LEAF]
        backend.close()
        assert v2_kernel.place_of(child.pid) == [v2_kernel.own]


def test_without_systemd_root_divides_what_it_is_alone_in(v2_kernel: FakeV2, monkeypatch: pytest.MonkeyPatch) -> None:
    without_systemd(v2_kernel, monkeypatch, user=0)
    assert reason(v2_kernel.backend()) is None
    without_systemd(v2_kernel, monkeypatch, user=os.getuid() + 1000)
    refusal = refused(v2_kernel.backend())
    assert refusal.reason == f"the cgroup {v2_kernel.own} is not delegated to us"
    assert "./cgroup_setup.sh" in refusal.remedy


def test_the_remedy_in_a_job_is_none_that_would_leave_it(v2_kernel: FakeV2, monkeypatch: pytest.MonkeyPatch) -> None:
    v2_kernel.delegated.clear()
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    remedy = refused(v2_kernel.backend()).remedy
    assert remedy.startswith("Slurm keeps the cgroups of its jobs")
    assert "systemd" not in remedy
    assert "cgroup_setup.sh" not in remedy


def test_a_user_divides_a_cgroup_of_their_own(make_v2: MakeV2, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root gives them one, by ./cgroup_setup.sh or by hand: whatever it is called."""
    kernel = make_v2("given")
    without_systemd(kernel, monkeypatch, user=1000)
    monkeypatch.setattr("cotenant.isolation.v2.is_own", lambda directory: directory == kernel.own)
    assert reason(kernel.backend()) is None
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "cgroup.subtree_control")
    assert reason(kernel.backend()) == f"{kernel.own}/cgroup.subtree_control is not writable"


def test_in_the_root_nobody_has_to_move(make_v2: MakeV2, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hierarchy's root may have processes and children at once, foreign ones included."""
    kernel = make_v2("")
    kernel.enter(kernel.mount, os.getpid(), STRANGER)
    without_systemd(kernel, monkeypatch, user=0)
    assert reason(kernel.backend()) is None
    backend = kernel.opened()
    assert backend.unenforced == ()
    backend.create(PLANNED).verify()
    assert kernel.place_of(os.getpid()) == [kernel.mount]
    backend.close()
    assert kernel.directories() == []


def test_a_base_by_name(v2_kernel: FakeV2) -> None:
    theirs = v2_kernel.mount / "theirs"
    theirs.mkdir()
    v2_kernel.delegated.clear()
    assert reason(V2(v2_kernel.mounts, "theirs")) is None
    for base in ("theirs", "theirs/cotenant-mine"):
        backend = V2(v2_kernel.mounts, base)
        backend.open(RunName())
        assert v2_kernel.place_of(os.getpid()) == [v2_kernel.own]
        backend.create(PLANNED).verify()
        backend.close()
        assert [path for path in theirs.iterdir() if path.is_dir()] == []
    with pytest.raises(CotenantError, match="is no path of a cgroup"):
        V2(v2_kernel.mounts, "../x")


def test_a_dead_run_is_swept_wherever_it_lived(v2_kernel: FakeV2, dead_run: RunName) -> None:
    gone = v2_kernel.own.parent / "other.scope"
    gone.mkdir()
    for place in (v2_kernel.own / HOME, gone / HOME):
        for directory in (place, place / str(dead_run), place / str(dead_run) / "t0", place / "some-thing"):
            directory.mkdir()
    assert v2_kernel.backend().sweep() == [str(dead_run)] * 2
    for place in (v2_kernel.own / HOME, gone / HOME):
        assert [path.name for path in place.iterdir() if path.is_dir()] == ["some-thing"]


def test_another_users_dead_run_is_left_alone(
    v2_kernel: FakeV2, dead_run: RunName, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = v2_kernel.own.parent / "theirs" / HOME
    for path in (home.parent, home, home / str(dead_run), home / str(dead_run) / LEAF):
        os.mkdir(path)  # noqa: PTH102
    v2_kernel.enter(home / str(dead_run) / LEAF, STRANGER)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert v2_kernel.backend().sweep() == []
    assert v2_kernel.place_of(STRANGER) == [home / str(dead_run) / LEAF]


def test_an_unseen_runners_end_shows_in_its_leaf_cgroup(v2_kernel: FakeV2, run_elsewhere: RunName) -> None:
    run = v2_kernel.own / HOME / str(run_elsewhere)
    (run / LEAF).mkdir(parents=True)
    v2_kernel.enter(run / LEAF, 0)
    backend = v2_kernel.backend()
    assert (backend.sweep(), backend.elsewhere()) == ([], (run,))
    events = (run / LEAF / "cgroup.events").read_text().strip()
    v2_kernel.put(run / LEAF / "cgroup.events", "populated perhaps")
    assert (backend.sweep(), backend.elsewhere()) == ([], (run,))
    v2_kernel.put(run / LEAF / "cgroup.events", events)
    v2_kernel.enter(run / LEAF)
    assert backend.elsewhere() == ()
    assert backend.sweep() == [str(run_elsewhere)]


def test_the_reaper_clears_what_the_runner_left(v2_kernel: FakeV2) -> None:
    """The reaper lives in the leaf of the run that it clears: it goes back to where the run began."""
    backend = v2_kernel.opened()
    backend.create(PLANNED)
    location = backend.location()
    clear_slices(location, str(RunName()))
    assert is_as_before(v2_kernel)
    clear_slices(location, str(RunName()))


def test_a_slice_that_its_tenant_has_divided_is_no_obstacle(v2_kernel: FakeV2) -> None:
    """As podman does, or a suite inside a suite: the run could not take its controllers back before."""
    backend = v2_kernel.opened()
    backend.create(PLANNED)
    slice_ = v2_kernel.at()
    for level in (slice_, slice_ / "theirs"):
        (level / "theirs").mkdir()
        v2_kernel.hand_down(level, ("memory", "pids"))
    v2_kernel.enter(slice_ / "theirs/theirs", 4000001)
    backend.close()
    assert is_as_before(v2_kernel)


def test_all_slices_are_killed_before_the_first_wait(v2_kernel: FakeV2) -> None:
    backend, _ = two_inhabited(v2_kernel)
    v2_kernel.calls.clear()
    clear_slices(backend.location(), v2_kernel.run.name)
    files = [call.rpartition("/")[2] for call in v2_kernel.calls if call.startswith(("open", "write"))]
    assert files[:2] == ["cgroup.kill"] * 2
    assert "cgroup.kill" not in files[2:]


def test_one_that_survives_saves_no_other(v2_kernel: FakeV2, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a kernel without cgroup.kill, where they are killed one by one."""
    monkeypatch.setattr("cotenant.isolation.group.KILL_WAIT_S", 0.01)
    v2_kernel.lacks("cgroup.kill")
    backend, places = two_inhabited(v2_kernel)
    first, second = sorted(places, key=[path for path in v2_kernel.run.iterdir() if path in places].index)
    immortal = int((first / "cgroup.procs").read_text())

    def killed(pid: int, number: int) -> None:
        if pid == immortal:
            raise PermissionError
        v2_kernel.enter(second)

    monkeypatch.setattr(os, "kill", killed)
    with pytest.raises(NotIsolatedError, match=rf"processes {immortal} in {first} cannot be killed"):
        clear_slices(backend.location(), v2_kernel.run.name)
    assert (second / "cgroup.procs").read_text().strip() == ""


def test_close_returns_shell_processes_and_ends_the_runs_own(
    v2_kernel: FakeV2, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the reaper finds the leaf of a runner that was killed: its shell's children are nobody's but the shell's."""
    backend = v2_kernel.opened()
    monkeypatch.setattr(v2tree, "is_ours", lambda pid: pid == os.getpid())
    with sleeper() as shells, sleeper({**os.environ, RUN_VARIABLE: str(RunName())}) as of_the_run:
        v2_kernel.enter(v2_kernel.run / LEAF, os.getpid(), shells.pid, of_the_run.pid)
        backend.close()
        assert of_the_run.wait(HANG_S) == -signal.SIGKILL
        assert shells.poll() is None
        assert v2_kernel.place_of(shells.pid) == [v2_kernel.own]
    assert is_as_before(v2_kernel)


def test_a_process_that_does_not_leave_is_named(v2_kernel: FakeV2, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number 0 would move ourselves."""
    monkeypatch.setattr("cotenant.isolation.v2tree.LEAVE_WAIT_S", 0.01)
    backend = v2_kernel.opened()
    with monkeypatch.context() as patch:
        patch.setattr("cotenant.isolation.v2tree._move", lambda pids, target: None)
        with pytest.raises(NotIsolatedError, match=rf"pid {os.getpid()} \(.*\) do not leave .*/{LEAF}"):
            backend.close()
    v2_kernel.enter(v2_kernel.run / LEAF, os.getpid(), 0)
    with pytest.raises(NotIsolatedError, match="cannot be removed: Device or resource busy"):
        backend.close()
