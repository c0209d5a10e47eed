"""Both backends by cgroups against kernels that answer something else than was asked, count, lack files, or refuse."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from cotenant.isolation.backend import Counters, NotIsolatedError
from cotenant.isolation.runs import RunName
from cotenant.isolation.slices import PIDS_MAX
from isolation.entering import MIB, slice_of
from isolation.fakekernel import PLANNED, FakeKernel, FaultyFiles
from isolation.fakev2 import FakeV2

LIMIT = 64 * MIB


@pytest.mark.parametrize(
    ("name", "lacking", "unenforced"),
    [
        ("kernel", [], ()),
        ("kernel", ["memory.memsw.limit_in_bytes"], ("swap",)),
        (
            "kernel",
            ["cpuset.effective_cpus", "cpuset.effective_mems", "memory.stat", "memory.oom_control"],
            (),
        ),
        ("v2_kernel", ["memory.swap.max"], ("swap",)),
        ("v2_kernel", ["memory.oom.group"], ()),
        ("v2_kernel", ["cgroup.kill"], ()),
    ],
)
def test_a_slice_is_what_was_planned_on_an_older_kernel_too(
    name: str, lacking: list[str], unenforced: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    kernel: FaultyFiles = request.getfixturevalue(name)
    kernel.lacks(*lacking)
    backend = kernel.opened()
    assert backend.unenforced == unenforced
    back = backend.create(PLANNED).verify()
    assert (back.processors, back.nodes, back.memory_bytes, back.pids_max) == ("2-3", "1", LIMIT, str(PIDS_MAX))
    assert back.memory_and_swap_bytes == (None if unenforced else LIMIT)
    assert back.oom_group == (None if name == "kernel" or "memory.oom.group" in lacking else "1")
    with pytest.raises(NotIsolatedError, match=r"the slice of user 0 cannot be made: .*File exists"):
        backend.create(PLANNED)
    assert kernel.at("memory").is_dir()
    backend.close()
    assert kernel.directories() == []


WRONG = {
    "v1": [
        ("cpuset", "cpuset.effective_cpus", "2", "processors 2-3, but {} holds 2"),
        ("cpuset", "cpuset.effective_cpus", "", "processors 2-3, but {} holds "),
        ("cpuset", "cpuset.effective_mems", "0-1", "nodes 1, but {} holds 0-1"),
        ("memory", "memory.limit_in_bytes", "4096", "bytes of memory 67108864, but {} holds 4096"),
        ("memory", "memory.memsw.limit_in_bytes", "8192", "bytes of memory and swap 67108864, but {} holds 8192"),
        ("memory", "memory.stat", "hierarchical_memory_limit 12288", "bytes of memory 67108864, but {} holds 12288"),
        ("memory", "memory.limit_in_bytes", "lots", "'lots'"),
        ("pids", "pids.max", "max", "processes 16384, but {} holds max"),
    ],
    "v2": [
        ("", "cpuset.cpus.effective", "2", "processors 2-3, but {} holds 2"),
        ("", "cpuset.mems.effective", "0-1", "nodes 1, but {} holds 0-1"),
        ("", "memory.max", "4096", "bytes of memory 67108864, but {} holds 4096"),
        ("", "memory.max", "max", "bytes of memory 67108864, but {} holds None"),
        ("", "../../memory.max", "8192", "bytes of memory 67108864, but {} holds 8192"),
        ("", "memory.swap.max", "4096", "bytes of memory and swap 67108864, but {} holds 67112960"),
        ("", "memory.swap.max", "max", "'max'"),
        ("", "memory.max", "lots", "'lots'"),
        ("", "pids.max", "max", "processes 16384, but {} holds max"),
        ("", "memory.oom.group", "0", "memory.oom.group 1, but {} holds 0"),
    ],
}
"""For each backend: controller, file, its text, and the end of the sentence about it."""


def test_another_answer_than_planned(either: FaultyFiles) -> None:
    live = either.opened().create(PLANNED)
    for controller, name, answer, words in WRONG[either.opened_by]:
        file = (either.at(controller) / name).resolve()
        before = file.read_text().strip()
        live.verify()
        either.put(file, answer)
        with pytest.raises(NotIsolatedError, match=f"{re.escape(words.format(either.at(controller)))}$"):
            live.verify()
        change, *_ = live.changes(())
        assert change.endswith(f"{words.format(either.at(controller))} now") or "cannot be read any more" in change
        either.put(file, before)
    assert live.changes(()) == []
    peak = either.at("memory") / ("memory.max_usage_in_bytes" if either.opened_by == "v1" else "memory.peak")
    either.put(peak, 2 * LIMIT)
    assert live.changes(()) == [f"user 0 was planned with bytes of memory {LIMIT}, but has held {2 * LIMIT}"]


def test_a_kernel_that_rounds_down_to_its_page(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 65536}.__getitem__)
    for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"):
        kernel.answers[name] = str(LIMIT)
    backend = kernel.opened()
    assert backend.create(slice_of(0, [2], memory_bytes=LIMIT + 4096)).verify().memory_bytes == LIMIT
    with pytest.raises(NotIsolatedError, match=f"{LIMIT + 65536}, but"):
        backend.create(slice_of(1, [2], memory_bytes=LIMIT + 65536)).verify()


def test_a_limit_on_processes_above_is_shared_out_by_slices(v2_kernel: FakeV2) -> None:
    v2_kernel.put(v2_kernel.own / "pids.max", 1100)
    v2_kernel.put(v2_kernel.own / "pids.current", 100)
    backend = v2_kernel.opened()
    assert backend.create(replace(PLANNED, slices=4)).verify().pids_max == "225"
    v2_kernel.put(v2_kernel.own / "pids.max", "few")
    with pytest.raises(NotIsolatedError, match=r"the slice of user 2 cannot be made: .*'few'"):
        backend.create(slice_of(2, [5]))


def test_who_ends_when_memory_is_full(v2_kernel: FakeV2) -> None:
    for oom_group, written in ((True, "1"), (False, "0")):
        backend = v2_kernel.backend()
        backend.oom_group = oom_group
        backend.open(RunName())
        assert backend.create(PLANNED).verify().oom_group == written
        assert (v2_kernel.at() / "memory.oom.group").read_text().strip() == written
        backend.close()


def test_counters_of_the_kernel(either: FaultyFiles) -> None:
    live = either.opened().create(PLANNED)
    said = {
        "v1": {"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3"},
        "v2": {
            "memory.events": "low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\noom_group_kill 1",
            "pids.events": "max 4",
            "io.pressure": "some avg10=1.00 total=70\nfull avg10=1.00 total=60",
        },
    }[either.opened_by]
    for name, text in said.items():
        either.put(either.at("memory") / name, text)
    # One throttling at each of the levels that the fake has a quota on.
    stats = [path / "cpu.stat" for path in (either.at("memory"), *either.at("memory").parents[:5])]
    throttled = sum("nr_throttled" in stat.read_text() for stat in stats if stat.exists())
    wanted = {
        "v1": Counters(processor_ns=7, memory_peak_bytes=4096, memory_cache_bytes=768, pids=0, oom_kills=3),
        "v2": Counters(
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
            memory_cache_bytes=768,
            pids=0,
            pids_peak=0,
            pids_refused=4,
            oom_events=2,
            oom_kills=3,
            oom_group_kills=1,
        ),
    }
    assert live.counters() == wanted[either.opened_by]
    assert live.memory_used_bytes() == 2048
    either.lacks("memory.usage_in_bytes", "memory.current")
    assert live.memory_used_bytes() is None


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENODEV, errno.EOPNOTSUPP, errno.EIO])
def test_a_counter_that_cannot_be_read_is_not_counted(number: int, either: FaultyFiles) -> None:
    live = either.opened().create(PLANNED)
    before = set(live.counters().uncounted())
    for call in range(1000):
        either.fail(call, number)
        counted = live.counters()
        if call >= len(either.calls):
            break
        path = Path(either.calls[call].split()[1])
        # A pressure file has two totals. The throttling of one level of several is not all of it.
        lost = set(counted.uncounted()) - before
        assert len(lost) == (2 if path.suffix == ".pressure" else 1) or not path.exists() or path.name == "cpu.stat"
    assert call >= 8


def test_what_an_older_kernel_does_not_count_is_named(v2_kernel: FakeV2) -> None:
    live = v2_kernel.opened().create(PLANNED)
    v2_kernel.lacks("cpu.pressure", "memory.pressure", "io.pressure", "memory.peak", "pids.peak", "pids.events")
    stalls = {name for name in Counters().uncounted() if name.startswith("stalled_")}
    assert set(live.counters().uncounted()) == {*stalls, "memory_peak_bytes", "pids_peak", "pids_refused"}


def test_surviving_processes_are_named_and_pid_0_is_not_killed(
    either: FaultyFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 is a process of another PID namespace: to kill(2) it would be our own group."""
    for name in ("KILL_WAIT_S", "FREEZE_WAIT_S"):
        monkeypatch.setattr(f"cotenant.isolation.group.{name}", 0.01)
    killed: list[int] = []

    def refuse(pid: int, number: int) -> None:
        killed.append(pid)
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    live = either.opened().create(PLANNED)
    either.lacks("cgroup.kill")
    either.inhabit(0, 4000001, 4000002)
    place = either.at("memory")
    with pytest.raises(NotIsolatedError, match=f"processes 0, 4000001, 4000002 in {place} cannot be killed"):
        live.kill()
    assert set(killed) == {4000001, 4000002}
    frozen = either.at("freezer") / ("freezer.state" if either.opened_by == "v1" else "cgroup.freeze")
    assert frozen.read_text().strip() in ("THAWED", "0")


def test_a_run_in_an_invisible_pid_namespace_is_left_alone(either: FaultyFiles, run_elsewhere: RunName) -> None:
    """Between two launches its cgroups are empty, and nothing shows whether its runner lives."""
    run = either.at("memory").parent.with_name(str(run_elsewhere))
    run.mkdir(parents=True)
    backend = either.backend()
    assert (backend.sweep(), backend.elsewhere()) == ([], (run,))
