"""Where backend v1 makes its directories: controllers that are there or not, and bases."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotenant.errors import CotenantError
from cotenant.isolation.runs import RunName
from cotenant.isolation.v1 import V1
from isolation.fakekernel import BASE, PLANNED, FakeKernel, Make, reason


def test_controllers_mounted_together_are_one_directory(
    make_kernel: Make,
) -> None:
    kernel = make_kernel("cpuset", "memory")
    kernel.mounts["cpuacct"] = kernel.mounts["memory"]
    backend = kernel.opened()
    assert backend.unenforced == ("pids",)
    live = backend.create(PLANNED)
    assert live.verify().pids_max is None
    assert len(live.entry.procs_files) == 2
    backend.close()
    assert kernel.directories() == []


def test_a_controller_that_was_not_delegated_is_left_out(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: path != kernel.mounts["pids"])
    assert kernel.backend().probe() is None
    backend = kernel.opened()
    assert backend.unenforced == ("pids",)
    backend.create(PLANNED).verify()
    assert not (kernel.mounts["pids"] / BASE).exists()


def test_outer_quotas_count_if_a_slice_has_no_cpu_controller(kernel: FakeKernel, tmp_path: Path) -> None:
    for level, (times, throttled_ns) in {tmp_path: (1, 10), tmp_path / "own": (2, 200)}.items():
        level.mkdir(exist_ok=True)
        (level / "cpu.stat").write_text(f"nr_periods 9\nnr_throttled {times}\nthrottled_time {throttled_ns}\n")
    backend = V1(kernel.mounts, BASE, quotas=(tmp_path / "own", tmp_path))
    backend.open(RunName())
    counted = backend.create(PLANNED).counters()
    assert (counted.throttled_ns, counted.throttled_times) == (210, 3)


def test_probe_names_what_is_missing(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A delegated base needs no writable root, and a writable root does not help where the base is not ours."""
    assert kernel.backend().probe() is None
    cpuset, root = kernel.mounts["cpuset"], kernel.mounts["memory"]
    for mounts, base, said in (
        ({}, BASE, "the v1 controller cpuset is not mounted"),
        ({"cpuset": cpuset}, BASE, "the v1 controller memory is not mounted"),
        (kernel.mounts, "system.slice", f"there is no cgroup {cpuset}/system.slice"),
        (kernel.mounts, f"none/{BASE}", f"there is no cgroup {cpuset}/none/{BASE}"),
    ):
        assert reason(V1(mounts, base)) == said
    refused = {root}
    monkeypatch.setattr("os.access", lambda path, mode: path not in refused)
    assert reason(kernel.backend()) == f"{root} is not writable"
    (root / BASE).mkdir()
    assert kernel.backend().probe() is None
    refused = {root / BASE}
    assert reason(kernel.backend()) == f"{root / BASE} is not writable"


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
    kernel.opened().create(PLANNED).verify()
    assert gone == [base]


def test_sweep_leaves_what_is_no_run_alone(kernel: FakeKernel, dead_run: RunName) -> None:
    kernel.opened()
    for name in ("some-thing", f"0{dead_run}", f"{dead_run}-", str(dead_run)):
        (kernel.mounts["memory"] / BASE / name).mkdir()
    assert kernel.backend().sweep() == [str(dead_run)]
    left = {path.name for path in (kernel.mounts["memory"] / BASE).iterdir() if path.is_dir()}
    assert left == {"some-thing", f"0{dead_run}", f"{dead_run}-", str(RunName())}
