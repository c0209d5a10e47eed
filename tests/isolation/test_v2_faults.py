"""Backend v2 against a kernel that refuses, lacks files, or answers otherwise than asked."""

from __future__ import annotations

import errno
import os
from dataclasses import replace

import pytest

from cotenant.isolation.backend import Counters, NotIsolatedError
from cotenant.isolation.leftovers import clear
from cotenant.isolation.runs import RunName
from cotenant.isolation.slices import PIDS_MAX
from cotenant.isolation.v2 import V2
from cotenant.isolation.v2tree import LEAF
from isolation.entering import MIB, slice_of
from isolation.fakekernel import PLANNED, reason, refusal
from isolation.fakev2 import HOME, FakeV2, MakeV2

STRANGER = 1
SLOW = (errno.EACCES, errno.EINVAL, errno.ENOENT, errno.ENOSPC)
OF_ALL_CALLS = [errno.EBUSY, *(pytest.param(one, marks=pytest.mark.slow) for one in SLOW)]


def test_a_run_from_its_beginning_to_its_end(v2_kernel: FakeV2) -> None:
    backend = v2_kernel.opened()
    assert backend.unenforced == ()
    assert v2_kernel.place_of(os.getpid()) == [v2_kernel.run / LEAF]
    for level in (v2_kernel.own, v2_kernel.own / HOME, v2_kernel.run):
        assert v2_kernel.handed(level) == sorted(["memory", "cpuset", "pids", "cpu", "io"])
    live = backend.create(PLANNED)
    back = live.verify()
    assert (back.processors, back.nodes, back.pids_max) == ("2-3", "1", str(PIDS_MAX))
    assert (back.memory_bytes, back.memory_and_swap_bytes) == (64 * MIB, 64 * MIB)
    assert live.entry.procs_files == (v2_kernel.run / "t0/cgroup.procs",)
    assert (live.entry.processors, live.entry.set_affinity) == ((2, 3), False)
    live.remove()
    backend.close()
    assert v2_kernel.directories() == []
    assert v2_kernel.place_of(os.getpid()) == [v2_kernel.own]
    assert v2_kernel.handed(v2_kernel.own) == []
    backend.close()


@pytest.mark.parametrize("number", OF_ALL_CALLS)
@pytest.mark.parametrize("phase", ["open", "close"])
def test_every_refusal_to_a_run_is_a_sentence_or_a_named_loss(phase: str, number: int, make_v2: MakeV2) -> None:
    """Fail on the first call of a phase, then on the second, until a phase has no such call; nothing is left of any."""
    kernel = make_v2()
    for call in range(1000):
        backend = kernel.backend()
        if phase == "close":
            backend.open(RunName())
            backend.create(PLANNED)
        kernel.fail(call, number)
        sentence = refusal(backend.close if phase == "close" else lambda b=backend: b.open(RunName()))
        kernel.error = None
        if call >= len(kernel.calls):
            assert sentence is None
            break
        failed = kernel.calls[call].replace(str(RunName()), "RUN").replace(f"{kernel.own}/", "")
        if sentence is None:
            lost = losses(kernel, backend) if phase == "open" else []
            assert is_tolerable(failed, lost, number), (failed, lost)
        else:
            assert str(kernel.root) in sentence, failed
            assert phase == "close" or kernel.directories() == [], failed
        clear(backend.location(), str(RunName()))
        assert kernel.directories() == [], failed
        assert kernel.place_of(os.getpid()) == [kernel.own], failed
    assert call > 30


@pytest.mark.parametrize("number", OF_ALL_CALLS)
@pytest.mark.parametrize("phase", ["create", "verify"])
def test_every_refusal_of_a_slice_is_a_sentence(phase: str, number: int, v2_kernel: FakeV2) -> None:
    backend = v2_kernel.opened()
    before = v2_kernel.directories()
    for call in range(1000):
        if phase == "verify":
            live = backend.create(PLANNED)
        v2_kernel.fail(call, number)
        sentence = refusal(live.verify if phase == "verify" else lambda: backend.create(PLANNED))
        v2_kernel.error = None
        if call >= len(v2_kernel.calls):
            assert sentence is None
            break
        failed = v2_kernel.calls[call]
        if sentence is None:
            assert is_tolerable(failed, [], number), failed
        else:
            assert str(v2_kernel.root) in sentence, failed
        if phase == "verify" or sentence is None:
            backend.create(slice_of(1, [1])).remove()
            (v2_kernel.at()).rmdir()
        assert v2_kernel.directories() == before, failed
    assert call >= 7
    backend.close()


def losses(kernel: FakeV2, backend: V2) -> list[str]:
    """Return what a run cannot hold or count, as it says itself, and controllers without which it can do both."""
    live = backend.create(slice_of(7, [7], nodes=[1]))
    live.verify()
    return [*backend.unenforced, *live.counters().uncounted(), *({"cpu", "io"} - set(kernel.handed(kernel.run)))]


def is_tolerable(failed: str, lost: list[str], number: int) -> bool:
    """Whether a call may fail without a refusal: what that costs is named, or the end is the same."""
    call, _, path = failed.partition(" ")
    if path.endswith("cgroup.subtree_control") and call in ("open", "write") and lost:
        return True
    if call == "rmdir":
        # Gone already, free in a moment, a home that stays for its next run, or a slice: that is tried twice.
        return number in (errno.ENOENT, errno.EBUSY) or path == HOME or path.endswith("/t0")
    if path.endswith(("cgroup.kill", "cgroup.freeze")):
        return True
    # Files that a kernel or a hierarchy's root may lack, and cgroups that may be gone while they are looked at.
    lacking = (
        "pids.max",
        "pids.current",
        "memory.swap.max",
        "memory.oom.group",
        "cgroup.procs",
        "cgroup.subtree_control",
        "cgroup.events",
    )
    return number == errno.ENOENT and call in ("open", "read") and path.endswith(lacking)


def test_processors_that_the_parent_does_not_have_are_caught(v2_kernel: FakeV2) -> None:
    """The kernel takes them without a word, and gives what is left of them, or all of the parent's."""
    v2_kernel.put(v2_kernel.own / "cpuset.cpus.effective", "0-2")
    backend = v2_kernel.opened()
    with pytest.raises(NotIsolatedError, match=r"with processors 2-3, but .*/t0 holds 2$"):
        backend.create(PLANNED).verify()
    with pytest.raises(NotIsolatedError, match=r"with processors 5-6, but .*/t1 holds 0-2$"):
        backend.create(slice_of(1, [5, 6], nodes=[1])).verify()
    backend.close()


def test_a_limit_on_processes_above_is_shared_out_by_slices(v2_kernel: FakeV2) -> None:
    v2_kernel.put(v2_kernel.own / "pids.max", 1100)
    v2_kernel.put(v2_kernel.own / "pids.current", 100)
    backend = v2_kernel.opened()
    assert backend.create(replace(PLANNED, slices=4)).verify().pids_max == "225"
    v2_kernel.put(v2_kernel.own / "pids.current", 1100)
    assert backend.create(slice_of(1, [4])).verify().pids_max == "1"
    v2_kernel.put(v2_kernel.own / "pids.max", "few")
    with pytest.raises(NotIsolatedError, match=r"the slice of tenant 2 cannot be made: .*'few'"):
        backend.create(slice_of(2, [5]))
    backend.close()


def test_what_an_older_kernel_does_not_count_is_named(v2_kernel: FakeV2) -> None:
    live = v2_kernel.opened().create(PLANNED)
    stalls = [name for name in Counters().uncounted() if name.startswith("stalled_")]
    uncounted: set[str] = set()
    for lacking, names in {
        ("cpu.pressure", "memory.pressure", "io.pressure"): stalls,
        ("memory.peak",): ["memory_peak_bytes"],
        ("pids.peak",): ["pids_peak"],
        ("pids.events",): ["pids_refused"],
    }.items():
        v2_kernel.lacks(*lacking)
        uncounted.update(names)
        assert set(live.counters().uncounted()) == uncounted


def test_counters_of_the_kernel(v2_kernel: FakeV2) -> None:
    live = v2_kernel.opened().create(PLANNED)
    at = v2_kernel.at()
    v2_kernel.put(at / "memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\noom_group_kill 1")
    v2_kernel.put(at / "pids.events", "max 4")
    v2_kernel.put(at / "io.pressure", "some avg10=1.00 total=70\nfull avg10=1.00 total=60")
    # One throttling at each of the five levels that the fake has a quota on.
    throttled = sum("nr_throttled" in (path / "cpu.stat").read_text() for path in (at, *at.parents[:5]))
    assert live.counters() == Counters(
        processor_ns=7000,
        throttled_ns=5000 * throttled,
        throttled_times=throttled,
        stalled_cpu_some_us=3,
        stalled_cpu_full_us=2,
        stalled_memory_some_us=3,
        stalled_memory_full_us=2,
        stalled_io_some_us=70,
        stalled_io_full_us=60,
        memory_peak_bytes=4096,
        pids=0,
        pids_peak=0,
        pids_refused=4,
        oom_events=2,
        oom_kills=3,
        oom_group_kills=1,
    )
    assert live.memory_used_bytes() == 2048
    (at / "memory.current").unlink()
    assert live.memory_used_bytes() is None


def test_who_ends_when_memory_is_full(v2_kernel: FakeV2) -> None:
    for oom_group, written in ((True, "1"), (False, "0")):
        backend = V2(v2_kernel.mounts)
        backend.oom_group = oom_group
        backend.open(RunName())
        assert backend.create(PLANNED).verify().oom_group == written
        assert (v2_kernel.at() / "memory.oom.group").read_text().strip() == written
        backend.close()


def test_without_cpusets_it_serves_in_part(v2_kernel: FakeV2) -> None:
    v2_kernel.hand_down(v2_kernel.own.parent, ("memory", "pids"))
    backend = v2_kernel.backend()
    refused = backend.probe()
    assert refused is not None
    assert refused.partial
    assert "has no controller cpuset" in refused.reason
    assert "Delegate=cpu cpuset io memory pids" in refused.remedy
    assert backend.unenforced == ("processors", "nodes")
    backend.open(RunName())
    live = backend.create(PLANNED)
    assert live.entry.set_affinity
    back = live.verify()
    assert (back.processors, back.nodes, back.memory_bytes) == (None, None, 64 * MIB)
    backend.close()
    assert v2_kernel.directories() == []


@pytest.mark.parametrize("name", ["pids", "cpu", "io"])
def test_a_wanted_controller_that_is_not_there_is_done_without(name: str, v2_kernel: FakeV2) -> None:
    v2_kernel.hand_down(v2_kernel.own.parent, tuple({"cpuset", "memory", "cpu", "io", "pids"} - {name}))
    assert reason(v2_kernel.backend()) is None
    backend = v2_kernel.opened()
    assert backend.unenforced == (("pids",) if name == "pids" else ())
    backend.create(PLANNED).verify()
    backend.close()


def test_nobody_of_another_pid_namespace_is_killed_by_the_number_0(
    v2_kernel: FakeV2, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be our own process group."""
    backend = v2_kernel.opened()
    v2_kernel.enter(v2_kernel.run / LEAF, os.getpid(), 0)
    monkeypatch.setattr(os, "kill", lambda pid, number: pytest.fail(f"{pid} was killed"))
    with pytest.raises(NotIsolatedError, match="cannot be removed: Device or resource busy"):
        backend.close()
