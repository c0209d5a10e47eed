"""Backend v1 against kernels that lack something, answer something else or refuse, and places that are not its own."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from cotenant.errors import CotenantError
from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.leftovers import clear
from cotenant.isolation.runs import RunName
from cotenant.isolation.v1 import V1
from cotenant.machine.limits import V2
from isolation.entering import MIB, slice_of
from isolation.fakekernel import BASE, PLANNED, FakeKernel, Make, reason, refusal

SLOW = [pytest.param(number, marks=pytest.mark.slow) for number in (errno.EBUSY, errno.EACCES, errno.EINVAL)]


def twins_of(kernel: FakeKernel) -> Path:
    """Return the root of a v2 hierarchy beside those of v1, which a hybrid host has."""
    twins = kernel.root / "unified"
    (twins / BASE).mkdir(parents=True)
    (twins / "cgroup.procs").write_text("")
    return twins


def with_twins(kernel: FakeKernel, twins: Path) -> V1:
    backend = V1({**kernel.mounts, V2: twins}, BASE)
    backend.open(RunName())
    return backend


def test_only_what_is_needed(make_kernel: Make) -> None:
    kernel = make_kernel("cpuset", "memory")
    backend = kernel.opened()
    assert backend.unenforced == ("pids",)
    live = backend.create(PLANNED)
    assert live.verify().pids_max is None
    counted = live.counters()
    assert (counted.processor_ns, counted.pids, counted.memory_peak_bytes, counted.oom_kills) == (None, None, 4096, 0)
    live.kill()
    backend.close()
    # Controllers mounted together are one directory.
    backend = V1({**kernel.mounts, "cpuacct": kernel.mounts["memory"]}, BASE)
    backend.open(RunName())
    live = backend.create(PLANNED)
    live.verify()
    assert len(live.entry.procs_files) == 2
    backend.close()
    assert kernel.directories() == []


def test_a_kernel_that_rounds_down_to_its_page(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 65536}.__getitem__)
    for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"):
        kernel.answers[name] = str(64 * MIB)
    backend = kernel.opened()
    assert backend.create(slice_of(0, [2], memory_bytes=64 * MIB + 4096)).verify().memory_bytes == 64 * MIB
    with pytest.raises(NotIsolatedError, match=f"{64 * MIB + 65536}, but"):
        backend.create(slice_of(1, [2], memory_bytes=64 * MIB + 65536)).verify()


def test_counters_of_the_kernel(kernel: FakeKernel) -> None:
    live = kernel.opened().create(PLANNED)
    kernel.put(kernel.at("memory") / "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3")
    counted = live.counters()
    assert (counted.processor_ns, counted.memory_peak_bytes, counted.pids, counted.oom_kills) == (7, 4096, 0, 3)
    assert live.memory_used_bytes() == 2048
    kernel.lacks("memory.usage_in_bytes")
    assert live.memory_used_bytes() is None


def test_quotas_above_count_where_the_slice_has_no_cpu_controller(kernel: FakeKernel, tmp_path: Path) -> None:
    for level, (times, throttled_ns) in {tmp_path: (1, 10), tmp_path / "own": (2, 200)}.items():
        level.mkdir(exist_ok=True)
        (level / "cpu.stat").write_text(f"nr_periods 9\nnr_throttled {times}\nthrottled_time {throttled_ns}\n")
    backend = V1(kernel.mounts, BASE, quotas=(tmp_path / "own", tmp_path))
    backend.open(RunName())
    counted = backend.create(PLANNED).counters()
    assert (counted.throttled_ns, counted.throttled_times) == (210, 3)
    backend.close()


def test_a_twin_in_v2_kills_and_counts_stalls(kernel: FakeKernel) -> None:
    twins = twins_of(kernel)
    backend = with_twins(kernel, twins)
    live = backend.create(PLANNED)
    twin = twins / BASE / str(RunName()) / "t0"
    assert twin / "cgroup.procs" in live.entry.procs_files
    (twin / "io.pressure").write_text("some avg10=0.00 total=7\nfull avg10=0.00 total=5\n")
    (twin / "cgroup.kill").write_text("")
    assert live._group.kill_at_once()
    assert (twin / "cgroup.kill").read_text().strip() == "1"
    counted = live.counters()
    assert (counted.stalled_io_some_us, counted.stalled_io_full_us, counted.stalled_cpu_some_us) == (7, 5, None)
    assert backend.location()["v1"]["mounts"][V2] == str(twins)
    backend.close()
    assert not twin.exists()


def test_nobody_of_another_pid_namespace_is_killed_by_the_number_0(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be our own process group."""
    twins = twins_of(kernel)
    live = with_twins(kernel, twins).create(PLANNED)
    (twins / BASE / str(RunName()) / "t0/cgroup.procs").write_text("0\n")
    monkeypatch.setattr("cotenant.isolation.group.KILL_WAIT_S", 0.1)
    monkeypatch.setattr("os.kill", lambda pid, number: pytest.fail(f"{pid} was killed"))
    with pytest.raises(NotIsolatedError, match=r"processes 0 in .* cannot be killed"):
        live.kill()


def test_a_run_in_a_pid_namespace_that_cannot_be_seen_is_left_alone(kernel: FakeKernel, run_elsewhere: RunName) -> None:
    """Between two launches its cgroups are empty, and nothing shows whether its runner lives."""
    run = kernel.mounts["memory"] / BASE / str(run_elsewhere)
    run.mkdir(parents=True)
    backend = kernel.backend()
    assert (backend.sweep(), backend.elsewhere()) == ([], (run,))


def test_no_twin_where_a_shim_could_not_join_it(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    twins = twins_of(kernel)
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != twins / "cgroup.procs")
    backend = with_twins(kernel, twins)
    assert twins not in {file.parents[3] for file in backend.create(PLANNED).entry.procs_files}
    backend.close()


def test_probe_names_what_is_missing(make_kernel: Make) -> None:
    kernel = make_kernel()
    assert kernel.backend().probe() is None
    assert reason(V1({}, BASE)) == "the v1 controller cpuset is not mounted"
    assert reason(V1({"cpuset": kernel.mounts["cpuset"]}, BASE)) == "the v1 controller memory is not mounted"
    assert reason(V1(kernel.mounts, "system.slice")) == f"there is no cgroup {kernel.root}/cpuset/system.slice"
    assert reason(V1(kernel.mounts, f"none/{BASE}")) == f"there is no cgroup {kernel.root}/cpuset/none/{BASE}"


def test_probe_asks_about_the_place_where_a_run_is_made(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A delegated base needs no writable root, and a writable root does not help where the base is not ours."""
    base = kernel.mounts["memory"] / BASE
    refused = {kernel.mounts["memory"]}
    monkeypatch.setattr("os.access", lambda path, mode: path not in refused)
    assert reason(kernel.backend()) == f"{kernel.mounts['memory']} is not writable"
    base.mkdir()
    assert kernel.backend().probe() is None
    refused = {base}
    assert reason(kernel.backend()) == f"{base} is not writable"


def test_a_wanted_controller_that_was_not_delegated_is_done_without(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: path != kernel.mounts["pids"])
    backend = kernel.backend()
    assert backend.probe() is None
    assert backend.unenforced == ("pids",)
    backend.open(RunName())
    backend.create(PLANNED).verify()
    assert not (kernel.mounts["pids"] / BASE).exists()
    backend.close()


def test_a_base_that_is_no_path_of_a_cgroup(kernel: FakeKernel) -> None:
    words = r"is no path of a cgroup below the root of its hierarchy.* such as cotenant"
    for base in ("", "/", "..", ".", "a/../b", "a//b", "/cotenant.me", "a/", "/sys/fs/cgroup", "a\nb"):
        with pytest.raises(CotenantError, match=words):
            V1(kernel.mounts, base)


def test_the_base_goes_with_its_last_run_while_another_opens(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = kernel.mounts["memory"] / BASE
    made = kernel._mkdir
    gone = []

    def mkdir(path: Path, mode: int = 0o777) -> None:
        if path.parent == base and not gone:
            base.rmdir()
            gone.append(base)
        made(path, mode)

    monkeypatch.setattr("os.mkdir", mkdir)
    backend = kernel.opened()
    assert gone == [base]
    backend.create(PLANNED).verify()
    backend.close()


def test_sweep_leaves_what_is_no_run_alone(kernel: FakeKernel, dead_run: RunName) -> None:
    backend = kernel.opened()
    for name in ("some-thing", f"0{dead_run}", f"{dead_run}-", str(dead_run)):
        (kernel.mounts["memory"] / BASE / name).mkdir()
    assert kernel.backend().sweep() == [str(dead_run)]
    left = {path.name for path in (kernel.mounts["memory"] / BASE).iterdir() if path.is_dir()}
    assert left == {"some-thing", f"0{dead_run}", f"{dead_run}-", str(RunName())}
    backend.close()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.ENOENT, *SLOW])
@pytest.mark.parametrize("phase", ["open", "create", "verify"])
def test_every_refusal_is_a_sentence_and_leaves_nothing(phase: str, number: int, make_kernel: Make) -> None:
    """Fail on the first call of a phase, then on the second, until a phase has no such call."""
    survived = []
    kernel = make_kernel()
    for call in range(1000):
        backend = kernel.backend()
        steps = {"open": lambda b=backend: b.open(RunName()), "create": lambda b=backend: b.create(PLANNED)}
        if phase != "open":
            backend.open(RunName())
        if phase == "verify":
            steps["verify"] = backend.create(PLANNED).verify
        before = kernel.directories()
        kernel.fail(call, number)
        sentence = refusal(steps[phase])
        kernel.error = None
        if call >= len(kernel.calls):
            assert sentence is None
            break
        failed = kernel.calls[call]
        if sentence is None:
            survived.append(Path(failed.split()[1]).name)
        else:
            assert str(kernel.root) in sentence, failed
            assert kernel.directories() == before, failed
        backend.close()
        assert kernel.directories() == []
    assert call >= 10
    # A missing file is no refusal where older kernels lack it, nor a base that has just gone with its last run.
    tolerated = {"memory.memsw.limit_in_bytes", "cpuset.effective_cpus", "cpuset.effective_mems", "memory.stat"}
    tolerated |= {BASE, str(RunName()), "pids.max", "pids.current"}
    assert set(survived) <= (tolerated if number == errno.ENOENT else set())


@pytest.mark.parametrize("number", [errno.EBUSY, SLOW[1], pytest.param(errno.ENOENT, marks=pytest.mark.slow)])
@pytest.mark.parametrize("phase", ["kill", "remove", "close", "sweep"])
def test_every_refusal_on_the_way_out_is_a_sentence_or_costs_nothing(
    phase: str, number: int, make_kernel: Make, dead_run: RunName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a process inside that ends when it is killed; whatever failed, nothing is left after a second attempt."""
    kernel = make_kernel("cpuset", "memory", "freezer")
    inside: list[Path] = []

    def end(pid: int, signal: int) -> None:
        for file in inside:
            kernel.put(file, "")

    monkeypatch.setattr("os.kill", end)
    for call in range(1000):
        backend = kernel.opened()
        live = backend.create(PLANNED)
        if phase == "sweep":
            for place in kernel.directories():
                if place.name == str(RunName()):
                    place.rename(place.with_name(str(dead_run)))
        run = dead_run if phase == "sweep" else RunName()
        inside[:] = [path / "cgroup.procs" for path in kernel.directories() if path.match(f"{run}/t0")]
        for file in inside if phase != "remove" else []:
            kernel.put(file, "4000001")
        step = {"kill": live.kill, "remove": live.remove, "close": backend.close, "sweep": backend.sweep}[phase]
        kernel.fail(call, number)
        sentence = refusal(step)
        kernel.error = None
        done = call >= len(kernel.calls)
        failed = "" if done else kernel.calls[call]
        if sentence is not None:
            assert str(kernel.root) in sentence, failed
        elif not (number == errno.ENOENT and failed.startswith("rmdir")):  # As if it were gone already.
            left = [file for file in inside if file.exists()]
            assert not (any(file.read_text().strip() for file in left) if phase == "kill" else left), failed
        clear(backend.location(), str(run))
        clear(backend.location(), str(RunName()))
        assert kernel.directories() == [], failed
        if done:
            assert sentence is None
            break
    assert call >= 3


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EACCES])
def test_what_cannot_be_removed_is_named_and_the_rest_goes(number: int, kernel: FakeKernel) -> None:
    live = kernel.opened().create(PLANNED)
    held = next(path for path in kernel.directories() if path.match("memory/*/*/t0"))
    (held / "child").mkdir()
    refused = kernel._rmdir
    tries = []

    def rmdir(path: Path) -> None:
        if held in (path, path.parent):
            tries.append(path)
            raise OSError(number, "refused", str(path))
        refused(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.rmdir", rmdir)
        with pytest.raises(NotIsolatedError, match=f"{held} cannot be removed: ") as caught:
            live.remove()
    assert f"{held / 'child'} cannot be removed: " in str(caught.value)
    # Only what is busy may be free in a moment.
    assert (len(tries) > 2) == (number == errno.EBUSY)
    assert [path for path in kernel.directories() if path.name == "t0"] == [held]
    live.remove()
    assert [path for path in kernel.directories() if path.name == "t0"] == []


def test_processes_that_cannot_be_listed_are_a_sentence_and_a_cgroup_that_goes_meanwhile_has_none(
    kernel: FakeKernel,
) -> None:
    live = kernel.opened().create(PLANNED)
    kernel.fail(0, errno.EACCES)
    with pytest.raises(NotIsolatedError, match=r"cannot be listed: .*Permission denied on reading: '.*cgroup.procs'"):
        live.kill()
    kernel.fail(1, errno.ENODEV)
    live.kill()
    assert kernel.calls[1].startswith("read")
