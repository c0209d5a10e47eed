"""Backend v1 against a kernel that refuses, lacks files, or answers otherwise than asked."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.leftovers import clear
from cotenant.isolation.runs import RunName
from cotenant.isolation.slices import PIDS_MAX
from cotenant.isolation.v1 import V1
from isolation.entering import MIB
from isolation.fakekernel import BASE, PLANNED, FakeKernel, Make, opened


def refusal(step: Callable[[], object]) -> str | None:
    """Return why a step was refused, or None where it was not."""
    try:
        step()
    except NotIsolatedError as error:
        return str(error)
    return None


def test_the_fake_serves_as_the_kernel_does(kernel: FakeKernel) -> None:
    backend = opened(kernel)
    back = backend.create(PLANNED).verify()
    assert (back.processors, back.nodes) == ("2-3", "1")
    assert (back.memory_bytes, back.memory_and_swap_bytes) == (64 * MIB, 64 * MIB)
    assert back.pids_max == str(PIDS_MAX)
    assert len(kernel.directories()) == 15
    backend.close()
    assert kernel.directories() == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EBUSY, errno.EACCES, errno.ENOENT, errno.EINVAL])
@pytest.mark.parametrize("phase", ["open", "create", "verify"])
def test_every_refusal_is_a_sentence_and_leaves_nothing(phase: str, number: int, make_kernel: Make) -> None:
    """Fail on the first call of a phase, then on the second, until a phase has no such call."""
    survived = []
    kernel = make_kernel()
    for call in range(1000):
        backend = V1(kernel.mounts, BASE)
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


@pytest.mark.parametrize(
    "number", [errno.EBUSY, *(pytest.param(one, marks=pytest.mark.slow) for one in (errno.EACCES, errno.ENOENT))]
)
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
        backend = opened(kernel)
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
            assert is_over(phase, inside), failed
        clear(backend.location(), str(run))
        clear(backend.location(), str(RunName()))
        assert kernel.directories() == [], failed
        if done:
            assert sentence is None
            break
    assert call >= 3


def is_over(phase: str, inside: list[Path]) -> bool:
    """Whether nobody is left in the slice, and but for a kill nothing of it."""
    left = [file for file in inside if file.exists()]
    return not any(file.read_text().strip() for file in left) if phase == "kill" else not left


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EACCES])
def test_what_cannot_be_removed_is_named_and_the_rest_goes(number: int, kernel: FakeKernel) -> None:
    live = opened(kernel).create(PLANNED)
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


def test_a_slice_whose_processes_cannot_be_listed_is_a_sentence(kernel: FakeKernel) -> None:
    live = opened(kernel).create(PLANNED)
    kernel.fail(0, errno.EACCES)
    with pytest.raises(NotIsolatedError, match=r"cannot be listed: .*Permission denied on reading: '.*cgroup.procs'"):
        live.kill()


def test_a_cgroup_that_goes_while_it_is_read_has_no_processes(kernel: FakeKernel) -> None:
    live = opened(kernel).create(PLANNED)
    kernel.fail(1, errno.ENODEV)
    live.kill()
    assert kernel.calls[1].startswith("read")


def test_processes_that_survive_are_named(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotenant.isolation.group.KILL_WAIT_S", 0.01)
    killed: list[int] = []

    def refuse(pid: int, number: int) -> None:
        killed.append(pid)
        raise PermissionError

    monkeypatch.setattr("os.kill", refuse)
    live = opened(kernel).create(PLANNED)
    for file in live.entry.procs_files:
        file.write_text("4000001\n4000002\n")
    with pytest.raises(NotIsolatedError, match=r"processes 4000001, 4000002 in .*/memory/.*/t0 cannot be killed"):
        live.kill()
    assert set(killed) == {4000001, 4000002}
    assert (kernel.root / "freezer" / BASE / str(RunName()) / "t0/freezer.state").read_text().strip() == "THAWED"
