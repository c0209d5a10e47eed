"""Backend v2 on a real kernel, as a program of the standard library: it has to live alone in a delegated cgroup.

    systemd-run [--user] --scope --property=Delegate=yes python3 tests/isolation/v2_checks.py

Prints a line per check; exit status 0 if all hold, 77 where the backend cannot be had here.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "common"), str(ROOT / "tests")]

from cotenant.isolation.backend import NotIsolatedError  # noqa: E402
from cotenant.isolation.group import V2Group  # noqa: E402
from cotenant.isolation.leftovers import clear_slices, thaw  # noqa: E402
from cotenant.isolation.runs import RunName  # noqa: E402
from cotenant.isolation.slice import Slice  # noqa: E402
from cotenant.isolation.slices import PIDS_MAX, CgroupBackend, CgroupSlice  # noqa: E402
from cotenant.isolation.v2 import V2  # noqa: E402
from cotenant.isolation.v2tree import LEAF  # noqa: E402
from cotenant.machine.limits import cgroup_mounts  # noqa: E402
from cotenant.procfs import format_list, parse_list, start_ticks  # noqa: E402
from isolation.adversaries import MEMORY_HOG  # noqa: E402
from isolation.entering import MIB, Entering, eventually, is_dead, slice_of, started  # noqa: E402

Pair = tuple[Slice, Slice]
NOT_HERE = 77
FORKS = "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait"
LIMITS = ("memory.limit_in_bytes", "memory.max")
SPIN = "while :; do :; done"
SPIN_NS = 300_000_000
MOUNTS = cgroup_mounts()
OWN = MOUNTS.own.get("", Path("/nowhere"))


def two_slices(mems: Path) -> Pair:
    """Two slices with a processor each, on a node that they may use by this file."""
    first, second, *_ = sorted(os.sched_getaffinity(0))
    nodes = parse_list(mems.read_text())[:1]
    return slice_of(0, [first], nodes=nodes), slice_of(1, [second], memory_bytes=96 * MIB, nodes=nodes)


def run_of(backend: CgroupBackend) -> Path:
    return Path(backend.location()["v2"]["home"]) / str(RunName())


def inside(live: CgroupSlice) -> set[int]:
    """The processes directly in a slice, in any of its hierarchies."""
    return {int(word) for file in live.entry.procs_files for word in file.read_text().split()}


@contextmanager
def nine_inside(live: CgroupSlice) -> Iterator[Entering]:
    """A shell and its eight children in a slice."""
    with started(live.entry, "sh", "-c", FORKS) as shim:
        shim.go()
        eventually(lambda: len(inside(live)) == 9, "nine processes")
        yield shim


def own_cgroup() -> str:
    return Path("/proc/self/cgroup").read_text().strip().rpartition("::")[2]


def slices_are_what_was_planned(backend: CgroupBackend, pair: Pair) -> None:
    for planned in pair:
        live = backend.create(planned)
        back = live.verify()
        assert (back.processors, back.nodes) == (format_list(planned.processors), format_list(planned.nodes))
        assert back.memory_bytes == back.memory_and_swap_bytes == planned.memory_bytes
        # Less where a limit stands above, as a service's TasksMax.
        assert 1 < int(back.pids_max or 0) <= PIDS_MAX
        with started(live.entry, "cat", "/proc/self/cgroup", "/proc/self/status") as shim:
            status, printed = shim.run()
        assert status == 0, printed
        assert f"/{RunName()}/t{planned.tenant}\n" in printed
        assert f"Cpus_allowed_list:\t{planned.processors[0]}\n" in printed
        assert f"Mems_allowed_list:\t{planned.nodes[0]}\n" in printed


def the_runner_lives_in_its_leaf(backend: CgroupBackend, pair: Pair) -> None:
    assert own_cgroup().endswith(f"/{RunName()}/{LEAF}"), own_cgroup()


def processors_outside_the_parent_are_caught(backend: CgroupBackend, pair: Pair) -> None:
    first, second = pair
    (run_of(backend) / "cpuset.cpus").write_text(format_list(first.processors))
    backend.create(first).verify()
    refused(backend.create(second).verify, "with processors")


def a_smaller_limit_above_is_seen(backend: CgroupBackend, pair: Pair) -> None:
    live = backend.create(pair[0])
    limits = [file.parents[1] / name for file in live.entry.procs_files for name in LIMITS]
    (limit,) = [file for file in limits if file.exists()]
    limit.write_text(str(32 * MIB))
    refused(live.verify, f"bytes of memory {64 * MIB}, but ")


def a_memory_hog_dies_alone_and_is_counted(backend: CgroupBackend, pair: Pair) -> None:
    hog, neighbour = (backend.create(planned) for planned in pair)
    quiet = started(neighbour.entry, "sleep", "1000")
    with quiet as other, started(hog.entry, sys.executable, "-c", MEMORY_HOG) as hungry:
        assert other.says() == hungry.says() == "in"
        other.release()
        hungry.release()
        assert hungry.result()[0] == -signal.SIGKILL
        assert other.alive
    counted = hog.counters()
    # Where all of a group are killed, Linux 6.1 counts the first of them twice.
    assert counted.oom_kills in (1, 2), counted
    assert counted.oom_events or counted.oom_events is None, counted
    assert counted.memory_peak_bytes is None or 0 < counted.memory_peak_bytes <= 64 * MIB, counted
    assert neighbour.counters().oom_kills == 0
    print(f"    not counted on Linux {os.uname().release}: {', '.join(counted.uncounted()) or 'nothing'}")


def everybody_inside_dies(backend: CgroupBackend, pair: Pair, kill_at_once: bool = True) -> None:
    live = backend.create(pair[0])
    at_once = V2Group.kill_at_once
    if not kill_at_once:
        V2Group.kill_at_once = lambda self: False
    try:
        with nine_inside(live) as shim:
            everybody = inside(live)
            live.kill()
            assert shim.result()[0] == -signal.SIGKILL
        assert all(map(is_dead, everybody))
        live.remove()
        live.kill()
    finally:
        V2Group.kill_at_once = at_once


def everybody_dies_on_an_older_kernel_too(backend: CgroupBackend, pair: Pair) -> None:
    everybody_inside_dies(backend, pair, kill_at_once=False)


def the_reaper_clears_a_run(backend: CgroupBackend, pair: Pair) -> None:
    live = backend.create(pair[0])
    with started(live.entry, "sleep", "1000") as shim:
        assert shim.says() == "in"
        clear_slices(backend.location(), str(RunName()))
        assert shim.result()[0] == -signal.SIGKILL


def a_dead_run_is_swept_and_a_live_one_is_not(backend: CgroupBackend, pair: Pair) -> None:
    with subprocess.Popen(["sleep", "1000"]) as alive, subprocess.Popen(["sleep", "1000"]) as dead:
        names = [RunName(process.pid, start_ticks(process.pid) or 0) for process in (alive, dead)]
        dead.kill()
        dead.wait()
        for name in names:
            (run_of(backend).parent / str(name) / "t0").mkdir(parents=True)
        assert backend.sweep() == [str(names[1])]
        (run_of(backend).parent / str(names[0]) / "t0").rmdir()
        (run_of(backend).parent / str(names[0])).rmdir()
        alive.kill()


def a_changed_slice_and_who_has_left_it_are_seen(backend: CgroupBackend, pair: Pair) -> None:
    live = backend.create(pair[0])
    tops = [file.parent for file in live.entry.procs_files]
    with started(live.entry, "sleep", "1000") as shim:
        assert shim.says() == "in"
        pid = shim.process.pid
        begin_s = time.perf_counter()
        assert live.changes([pid]) == []
        print(f"    looked at again in {1e3 * (time.perf_counter() - begin_s):.1f} ms")
        for name in ("memory.memsw.limit_in_bytes", *LIMITS):
            for top in tops:
                if (top / name).exists():
                    (top / name).write_text(str(1024 * MIB))
        leaf = tops[0].parent / LEAF
        for target in [leaf] if leaf.is_dir() else [top.parent for top in tops]:
            (target / "cgroup.procs").write_text(str(pid))
            if target != tops[-1].parent and target != leaf:
                assert "left it" in live.changes([])[-1]
        said = live.changes([pid])
        assert said[0].startswith(f"user 0 was planned with bytes of memory {64 * MIB}, but {tops[0].parents[3]}"), said
        assert said[0].endswith(f" holds {1024 * MIB} now"), said
        assert said[-1].startswith(f"user 0 was planned in its slice, but pid {pid} (python"), said
        assert said[-1].endswith(") left it"), said
        shim.process.kill()
        shim.process.wait()
    assert live.changes([pid]) == said[:-1]


def tenants_of_the_same_processors_have_equal_time_of_them(backend: CgroupBackend, pair: Pair) -> None:
    """Whoever starts more processes gets no more; another weight than the planned one is seen."""
    planned = [dataclasses.replace(slice_, processors=pair[0].processors, sharers=2) for slice_ in pair]
    one, many = (backend.create(slice_) for slice_ in planned)
    assert one.verify().cpu_weight == one.cpu_weight
    with (
        started(one.entry, "sh", "-c", SPIN) as first,
        started(many.entry, "sh", "-c", f"{SPIN} & {SPIN} & {SPIN}") as second,
    ):
        assert first.says() == second.says() == "in"
        first.release()
        second.release()
        before = _used_ns(one), _used_ns(many)
        eventually(lambda: min(_used_ns(one) - before[0], _used_ns(many) - before[1]) > SPIN_NS, "time for both")
        used = _used_ns(one) - before[0], _used_ns(many) - before[1]
    # By processes it would be a quarter and three quarters.
    assert max(used) < 2 * min(used), used
    weights = [file.parent / name for file in one.entry.procs_files for name in ("cpu.weight", "cpu.shares")]
    (weight,) = [file for file in weights if file.exists()]
    weight.write_text("2048")
    assert any(" a weight of processor time of " in change for change in one.changes([])), one.changes([])


def _used_ns(live: CgroupSlice) -> int:
    return live.counters().processor_ns or 0


def a_tenant_of_root_cannot_write_to_its_slice(backend: CgroupBackend, pair: Pair) -> None:
    live = backend.create(pair[0])
    for file in live.entry.procs_files if live.entry.shm_bytes else ():
        with started(live.entry, "mkdir", file.parent / "below") as shim:
            status, _ = shim.run()
        assert status == 1
        assert not (file.parent / "below").exists()


def a_frozen_slice_does_nothing_until_it_is_thawed_or_killed(backend: CgroupBackend, pair: Pair) -> None:
    live = backend.create(pair[0])
    assert live.held_by == "freezer"
    live.thaw()
    with started(live.entry, "sh", "-c", SPIN) as spinner:
        spinner.go()
        eventually(lambda: (live.processor_ns() or 0) > SPIN_NS // 10, "it spins")
        live.freeze()
        eventually(live.frozen, "it is frozen")
        before = live.processor_ns()
        time.sleep(0.1)
        assert live.processor_ns() == before
        live.thaw()
        eventually(lambda: (live.processor_ns() or 0) > (before or 0), "it goes on")
        # As the reaper does for a runner that is stopped.
        live.freeze()
        eventually(live.frozen, "it is frozen again")
        thaw(backend.location(), str(RunName()))
        eventually(lambda: not live.frozen(), "the whole run is thawed")
        live.freeze()
        eventually(live.frozen, "it is frozen at its end")
        live.kill()
        assert spinner.result()[0] == -signal.SIGKILL
    live.remove()


def a_frozen_slice_is_moved_with_every_process_and_back(backend: CgroupBackend, pair: Pair) -> None:
    home, away = (slice_.processors for slice_ in pair)
    live = backend.create(pair[0])
    with nine_inside(live):
        for there in (away, home):
            live.freeze()
            eventually(live.frozen, "it is frozen")
            live.move(there)
            assert {os.sched_getaffinity(pid) == {*there} for pid in inside(live)} == {True}
            changes = live.changes([])
            assert bool(changes) == (there == away), changes
            live.thaw()
        refused(lambda: live.move([4095]), "cannot be moved to 4095")
        live.kill()
    live.remove()


OF_V1_TOO = (
    slices_are_what_was_planned,
    a_smaller_limit_above_is_seen,
    a_memory_hog_dies_alone_and_is_counted,
    the_reaper_clears_a_run,
    a_changed_slice_and_who_has_left_it_are_seen,
    a_tenant_of_root_cannot_write_to_its_slice,
    tenants_of_the_same_processors_have_equal_time_of_them,
    a_frozen_slice_does_nothing_until_it_is_thawed_or_killed,
    a_frozen_slice_is_moved_with_every_process_and_back,
)
CHECKS: tuple[Callable[[CgroupBackend, Pair], None], ...] = (
    *OF_V1_TOO,
    the_runner_lives_in_its_leaf,
    processors_outside_the_parent_are_caught,
    everybody_inside_dies,
    everybody_dies_on_an_older_kernel_too,
    a_dead_run_is_swept_and_a_live_one_is_not,
)


def refused(step: Callable[[], object], words: str) -> None:
    try:
        step()
    except NotIsolatedError as error:
        said = str(error)
    else:
        said = "it was not refused"
    assert words in said, said


def holds(check: Callable[[CgroupBackend, Pair], None]) -> bool:
    """Run one check in a run of its own; nothing may be left of it, and we are back where we were."""
    before = own_cgroup()
    backend = V2(MOUNTS)
    try:
        backend.open(RunName())
        try:
            check(backend, two_slices(OWN / "cpuset.mems.effective"))
        finally:
            backend.close()
        assert own_cgroup() == before
        assert [path for path in OWN.iterdir() if path.is_dir()] == []
        assert (OWN / "cgroup.subtree_control").read_text().strip() == ""
    except (AssertionError, OSError, ValueError):
        traceback.print_exc()
        return False
    return True


def main() -> int:
    refusal = V2(MOUNTS).probe()
    if refusal is not None:
        print(f"not here: {refusal.reason}")
        return NOT_HERE
    failed = 0
    for check in CHECKS:
        result = holds(check)
        failed += not result
        print(f"{'ok' if result else 'FAILED':7}{check.__name__.replace('_', ' ')}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
