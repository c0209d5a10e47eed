"""Backend v2 against a kernel that refuses, lacks files, or answers otherwise than asked."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from cotenant.isolation.backend import Counters, NotIsolatedError
from cotenant.isolation.leftovers import clear
from cotenant.isolation.runs import RunName
from cotenant.isolation.slices import PIDS_MAX
from cotenant.isolation.v2 import V2
from cotenant.isolation.v2tree import LEAF
from isolation.entering import MIB, slice_of
from isolation.fakev2 import HOME, FakeV2, MakeV2, opened, run_of

PLANNED = slice_of(0, [2, 3], nodes=[1])
STRANGER = 1
SLOW = (errno.EACCES, errno.EINVAL, errno.ENOENT, errno.ENOSPC)
OF_ALL_CALLS = [errno.EBUSY, *(pytest.param(one, marks=pytest.mark.slow) for one in SLOW)]


def refusal(step: Callable[[], object]) -> str | None:
    """Return why a step was refused, or None where it was not."""
    try:
        step()
    except NotIsolatedError as error:
        return str(error)
    return None


def reason(kernel: FakeV2, base: str | None = None) -> str | None:
    refused = V2(kernel.mounts, base).probe()
    return refused.reason if refused else None


def test_a_run_from_its_beginning_to_its_end(v2_kernel: FakeV2) -> None:
    backend = opened(v2_kernel)
    assert backend.unenforced == ()
    assert v2_kernel.place_of(os.getpid()) == [run_of(v2_kernel) / LEAF]
    for level in (v2_kernel.own, v2_kernel.own / HOME, run_of(v2_kernel)):
        assert v2_kernel.handed(level) == sorted(["memory", "cpuset", "pids", "cpu", "io"])
    live = backend.create(PLANNED)
    back = live.verify()
    assert (back.processors, back.nodes, back.pids_max) == ("2-3", "1", str(PIDS_MAX))
    assert (back.memory_bytes, back.memory_and_swap_bytes) == (64 * MIB, 64 * MIB)
    assert live.entry.procs_files == (run_of(v2_kernel) / "t0/cgroup.procs",)
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
        backend = V2(kernel.mounts)
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
    backend = opened(v2_kernel)
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
            (run_of(v2_kernel) / "t0").rmdir()
        assert v2_kernel.directories() == before, failed
    assert call >= 7
    backend.close()


def losses(kernel: FakeV2, backend: V2) -> list[str]:
    """Return what a run cannot hold or count, as it says itself, and controllers without which it can do both."""
    live = backend.create(slice_of(7, [7], nodes=[1]))
    live.verify()
    return [*backend.unenforced, *live.counters().uncounted(), *({"cpu", "io"} - set(kernel.handed(run_of(kernel))))]


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
    backend = opened(v2_kernel)
    with pytest.raises(NotIsolatedError, match=r"with processors 2-3, but .*/t0 holds 2$"):
        backend.create(PLANNED).verify()
    with pytest.raises(NotIsolatedError, match=r"with processors 5-6, but .*/t1 holds 0-2$"):
        backend.create(slice_of(1, [5, 6], nodes=[1])).verify()
    backend.close()


@pytest.mark.parametrize(
    ("file", "answer", "sentence"),
    [
        ("cpuset.mems.effective", "0-1", "nodes 1, but .* holds 0-1"),
        ("memory.max", "4096", "bytes of memory 67108864, but .* holds 4096"),
        ("memory.max", "max", "bytes of memory 67108864, but .* holds None"),
        ("../../memory.max", "8192", "bytes of memory 67108864, but .* holds 8192"),
        ("memory.swap.max", "4096", "memory and swap 67108864, but .* holds 67112960"),
        ("memory.swap.max", "max", "the slice of tenant 0 cannot be read back: .*'max'"),
        ("memory.max", "lots", "the slice of tenant 0 cannot be read back: .*'lots'"),
        ("pids.max", "max", "processes 16384, but .* holds max"),
        ("memory.oom.group", "0", "memory.oom.group 1, but .* holds 0"),
    ],
)
def test_another_answer_than_planned(file: str, answer: str, sentence: str, v2_kernel: FakeV2) -> None:
    live = opened(v2_kernel).create(PLANNED)
    live.verify()
    v2_kernel.put((run_of(v2_kernel) / "t0" / file).resolve(), answer)
    with pytest.raises(NotIsolatedError, match=sentence):
        live.verify()


def test_a_limit_on_processes_above_is_shared_out_by_slices(v2_kernel: FakeV2) -> None:
    v2_kernel.put(v2_kernel.own / "pids.max", 1100)
    v2_kernel.put(v2_kernel.own / "pids.current", 100)
    backend = opened(v2_kernel)
    assert backend.create(replace(PLANNED, slices=4)).verify().pids_max == "225"
    v2_kernel.put(v2_kernel.own / "pids.current", 1100)
    assert backend.create(slice_of(1, [4])).verify().pids_max == "1"
    v2_kernel.put(v2_kernel.own / "pids.max", "few")
    with pytest.raises(NotIsolatedError, match=r"the slice of tenant 2 cannot be made: .*'few'"):
        backend.create(slice_of(2, [5]))
    backend.close()


@pytest.mark.parametrize(
    ("lacking", "uncounted"),
    [
        (["cpu.pressure", "memory.pressure", "io.pressure"], "stalled_"),
        (["memory.peak"], "memory_peak_bytes"),
        (["pids.peak"], "pids_peak"),
        (["pids.events"], "pids_refused"),
    ],
)
def test_what_an_older_kernel_does_not_count_is_named(lacking: list[str], uncounted: str, v2_kernel: FakeV2) -> None:
    backend = opened(v2_kernel)
    assert backend.create(PLANNED).counters().uncounted() == []
    v2_kernel.lacks(*lacking)
    names = backend.create(slice_of(1, [1])).counters().uncounted()
    assert names
    assert all(name.startswith(uncounted) for name in names)
    assert backend.unenforced == ()
    backend.close()


def test_counters_of_the_kernel(v2_kernel: FakeV2) -> None:
    live = opened(v2_kernel).create(PLANNED)
    at = run_of(v2_kernel) / "t0"
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


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENODEV, errno.EOPNOTSUPP, errno.EIO])
def test_a_counter_that_cannot_be_read_is_not_counted(number: int, v2_kernel: FakeV2) -> None:
    live = opened(v2_kernel).create(PLANNED)
    for call in range(1000):
        v2_kernel.fail(call, number)
        counted = live.counters()
        if call >= len(v2_kernel.calls):
            break
        # The throttling of one level of several may be missing without all of it being unknown.
        assert counted.uncounted() or v2_kernel.calls[call].endswith("cpu.stat")
    assert call > 20


@pytest.mark.parametrize(
    ("lacking", "unenforced"), [(["memory.swap.max"], ("swap",)), (["memory.oom.group"], ()), (["cgroup.kill"], ())]
)
def test_an_older_kernel(lacking: list[str], unenforced: tuple[str, ...], v2_kernel: FakeV2) -> None:
    v2_kernel.lacks(*lacking)
    backend = opened(v2_kernel)
    assert backend.unenforced == unenforced
    back = backend.create(PLANNED).verify()
    assert (back.memory_and_swap_bytes is None) == ("swap" in unenforced)
    assert (back.oom_group is None) == ("memory.oom.group" in lacking)
    backend.close()
    assert v2_kernel.directories() == []


@pytest.mark.parametrize(("on_oom", "written"), [("group", "1"), ("process", "0")])
def test_who_ends_when_memory_is_full(on_oom: str, written: str, v2_kernel: FakeV2) -> None:
    backend = V2(v2_kernel.mounts, on_oom=on_oom)
    backend.open(RunName())
    assert backend.create(PLANNED).verify().oom_group == written
    assert (run_of(v2_kernel) / "t0/memory.oom.group").read_text().strip() == written
    backend.close()


def test_without_cpusets_it_serves_in_part(v2_kernel: FakeV2) -> None:
    v2_kernel.hand_down(v2_kernel.own.parent, ("memory", "pids"))
    backend = V2(v2_kernel.mounts)
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
    assert reason(v2_kernel) is None
    backend = opened(v2_kernel)
    assert backend.unenforced == (("pids",) if name == "pids" else ())
    backend.create(PLANNED).verify()
    backend.close()


def test_processes_that_survive_are_named(v2_kernel: FakeV2, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotenant.isolation.group.KILL_WAIT_S", 0.01)
    monkeypatch.setattr("cotenant.isolation.group.FREEZE_WAIT_S", 0.01)
    killed: list[int] = []

    def refuse(pid: int, number: int) -> None:
        killed.append(pid)
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    live = opened(v2_kernel).create(PLANNED)
    at = run_of(v2_kernel) / "t0"
    v2_kernel.lacks("cgroup.kill")
    v2_kernel.enter(at, 4000001, 4000002)
    with pytest.raises(NotIsolatedError, match=r"processes 4000001, 4000002 in .*/t0 cannot be killed"):
        live.kill()
    assert set(killed) == {4000001, 4000002}
    assert (at / "cgroup.freeze").read_text().strip() == "0"


def test_all_end_at_once_where_the_kernel_can(v2_kernel: FakeV2, monkeypatch: pytest.MonkeyPatch) -> None:
    live = opened(v2_kernel).create(PLANNED)
    v2_kernel.enter(run_of(v2_kernel) / "t0", 4000001)
    monkeypatch.setattr(os, "kill", lambda pid, number: pytest.fail("by name"))
    live.kill()
    assert v2_kernel.place_of(4000001) == []


def test_nobody_of_another_pid_namespace_is_killed_by_the_number_0(
    v2_kernel: FakeV2, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be our own process group."""
    backend = opened(v2_kernel)
    v2_kernel.enter(run_of(v2_kernel) / LEAF, os.getpid(), 0)
    monkeypatch.setattr(os, "kill", lambda pid, number: pytest.fail(f"{pid} was killed"))
    with pytest.raises(NotIsolatedError, match="cannot be removed: Device or resource busy"):
        backend.close()


def test_a_slice_that_is_there_already_is_not_fresh(v2_kernel: FakeV2) -> None:
    backend = opened(v2_kernel)
    backend.create(PLANNED)
    with pytest.raises(NotIsolatedError, match=r"the slice of tenant 0 cannot be made: .*File exists"):
        backend.create(PLANNED)
    assert (run_of(v2_kernel) / "t0").is_dir()
