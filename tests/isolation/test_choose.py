"""Which backend is chosen, and the sentences where a better one cannot be had."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from cotenant.choices import ISOLATIONS
from cotenant.errors import EXIT_NOT_ISOLATED, CotenantError, IsolationError
from cotenant.isolation import choose, v2tree
from cotenant.isolation.backend import NotIsolatedError, Refusal, UnkillableError
from cotenant.isolation.choose import choose_backend, isolation_errors
from cotenant.isolation.scope import SCOPE_VARIABLE
from cotenant.isolation.v1 import NEEDED, SETUP, V1
from cotenant.isolation.v2 import V2
from cotenant.machine.limits import V2 as V2_HIERARCHY
from cotenant.machine.limits import Mounts
from cotenant.machine.space import HostMemory
from cotenant.machine.virtual import BATCH_SYSTEMS, Virtual

Refuse = Callable[..., None]
NO, PART = Refusal("it is not there", "Mend it."), Refusal("half is there", "Mend the rest.", partial=True)
NOTHING = Mounts({}, None, {}, {})


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No systemd, no batch system, no container and no scope, whatever surrounds the tests."""
    monkeypatch.setattr(v2tree, "SYSTEMD", tmp_path / "nowhere")
    monkeypatch.setattr("cotenant.isolation.backend.virtual", lambda: Virtual("", ""))
    for variable in (*BATCH_SYSTEMS, SCOPE_VARIABLE):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def mounts(tmp_path: Path) -> Mounts:
    controllers = (*NEEDED, "pids")
    for name in controllers:
        (tmp_path / name).mkdir()
    (tmp_path / "memory/memory.memsw.limit_in_bytes").touch()
    return Mounts({name: tmp_path / name for name in controllers}, None, {}, {})


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """Sets the answers of v1 and v2 to a probe, and the resources that they do not enforce."""

    def refuse(*answers: Refusal | None, unenforced: tuple[str, ...] = ()) -> None:
        fixed = property(lambda self: unenforced, lambda self, value: None)
        for backend, answer in zip((V1, V2), answers, strict=True):
            monkeypatch.setattr(backend, "probe", lambda self, answer=answer: answer)
            monkeypatch.setattr(backend, "unenforced", fixed, raising=False)

    return refuse


def test_what_is_asked_for_and_can_be_had_serves(mounts: Mounts) -> None:
    for asked, name in {"auto": "v1", "require": "v1", "v1": "v1", "affinity": "affinity", "none": "none"}.items():
        chosen = choose_backend(asked, mounts, None)
        assert (chosen.backend.name, chosen.findings) == (name, ())
        chosen.settle()
    for name in ("affinity", "none"):
        chosen = choose_backend(name, NOTHING, None)
        assert (chosen.backend.name, chosen.findings) == (name, ())


@pytest.mark.parametrize("asked", ["auto", "require"])
def test_the_first_that_can_be_had_whole(asked: str, refuse: Refuse) -> None:
    for name, answers in {"v1": (None, None), "v2": (NO, None)}.items():
        refuse(*answers)
        chosen = choose_backend(asked, NOTHING, None)
        assert (chosen.backend.name, chosen.findings) == (name, ())


@pytest.mark.parametrize(
    ("answers", "name", "remedy"),
    [((NO, NO), "affinity", "Mend it."), ((NO, PART), "v2", "Mend the rest."), ((PART, NO), "v1", "Mend the rest.")],
)
def test_auto_degrades_to_a_part_or_to_affinity(
    answers: Sequence[Refusal], name: str, remedy: str, refuse: Refuse
) -> None:
    refuse(*answers)
    chosen = choose_backend("auto", NOTHING, None)
    assert chosen.backend.name == name
    (finding,) = chosen.findings
    assert (finding.rule, finding.severity) == ("degraded", "warning")
    assert ("in part" in finding.sentence) == (name != "affinity")
    assert finding.sentence.count("is there") + finding.sentence.count("not there") == 2
    assert finding.remedy.startswith(remedy)
    assert "--isolation require" in finding.remedy


def test_what_was_required_is_had_whole_or_an_error(refuse: Refuse) -> None:
    for asked, answer in product(("require", "v1", "v2"), (NO, PART)):
        refuse(answer, answer)
        with pytest.raises(IsolationError) as caught:
            choose_backend(asked, NOTHING, None)
        assert caught.value.exit_status == EXIT_NOT_ISOLATED
        assert answer.reason in caught.value.sentence
        assert caught.value.remedy == f"{answer.remedy} Or let it degrade with --isolation auto."
    refuse(Refusal("it lacks memory"), NO)
    with pytest.raises(IsolationError) as caught:
        choose_backend("v1", NOTHING, None)
    assert caught.value.sentence == "Isolation by v1 was asked for, but it lacks memory."
    assert caught.value.remedy == "Let it degrade with --isolation auto."
    refuse(NO, None, unenforced=("pids",))
    words = r"it does not hold these limits here: pids.* delegated to us \(for pids\)"
    for requested in ("require", "v2"):
        with pytest.raises(IsolationError, match=words):
            choose_backend(requested, NOTHING, None)


def test_what_cannot_be_had_is_named_by_each_backend(mounts: Mounts) -> None:
    with pytest.raises(IsolationError, match=r"^Isolation is required, but v1: the v1 .*; v2: no cgroup "):
        choose_backend("require", NOTHING, None)
    del mounts.v1["memory"]
    (finding,) = choose_backend("auto", mounts, None).findings
    assert "v1: the v1 controller memory is not mounted; v2: " in finding.sentence


@pytest.mark.parametrize("hybrid", [False, True])
def test_on_v1_the_remedy_is_that_of_v1(
    hybrid: bool, mounts: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Systemd delegates cgroups of v2 to a user: no line for it gives slices where controllers are mounted on v1."""
    monkeypatch.setattr(v2tree, "SYSTEMD", tmp_path)
    monkeypatch.setattr(os, "access", lambda *asked: False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    own = tmp_path / "unified"
    own.mkdir()
    (own / "cgroup.controllers").touch()
    if hybrid:
        mounts = replace(mounts, v2=own, own={V2_HIERARCHY: own})
    (finding,) = choose_backend("auto", mounts, None).findings
    assert finding.remedy.startswith(SETUP)


@pytest.mark.parametrize(("job", "container"), [("7", ""), ("", "Docker"), ("", "Kubernetes")])
def test_the_remedy_fits_a_slurm_job_or_a_container(
    job: str, container: str, mounts: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root in a container is not told to run as root, nor a user in a job to have a base made that no job may enter."""
    monkeypatch.setenv("SLURM_JOB_ID", job)
    monkeypatch.setattr("cotenant.isolation.backend.virtual", lambda: Virtual("", container))
    monkeypatch.setattr(os, "access", lambda *asked: False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (tmp_path / "cgroup.controllers").write_text("cpuset memory pids")
    for of in (replace(mounts, own=mounts.v1), replace(NOTHING, v2=tmp_path, own={V2_HIERARCHY: tmp_path})):
        (finding,) = choose_backend("auto", of, None).findings
        assert "is not writable" in finding.sentence
        begins = f"Inside {container} slices need a privileged container" if container else "Slurm keeps the cgroups"
        assert finding.remedy.startswith(begins)


@pytest.fixture
def swap(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets how much swap this host has."""

    def have(size_bytes: int) -> None:
        monkeypatch.setattr(choose, "host_memory", lambda: HostMemory(1 << 34, 1 << 33, size_bytes, size_bytes))

    return have


@pytest.mark.parametrize("asked", ["require", "v1"])
def test_what_serves_without_a_limit_is_not_whole(asked: str, mounts: Mounts, swap: Callable[[int], None]) -> None:
    (mounts.v1["memory"] / "memory.memsw.limit_in_bytes").unlink()
    swap(0)
    assert choose_backend(asked, mounts, None).backend.name == "v1"
    swap(1 << 30)
    with pytest.raises(IsolationError) as caught:
        choose_backend(asked, mounts, None)
    assert "it does not hold these limits here: swap" in caught.value.sentence
    assert caught.value.remedy.startswith("It takes swapaccount=1 on the kernel's command line (for swap).")
    del mounts.v1["pids"]
    with pytest.raises(IsolationError) as caught:
        choose_backend(asked, mounts, None)
    assert "it does not hold these limits here: swap, pids" in caught.value.sentence
    assert "the v1 controller pids (for pids)" in caught.value.remedy
    assert choose_backend("auto", mounts, None).backend.name == "v1"


def test_a_batch_job_without_pids_is_held(mounts: Mounts, monkeypatch: pytest.MonkeyPatch) -> None:
    """As under Slurm 22.05 with cgroup/v1."""
    mounts.own.update(mounts.v1)
    del mounts.v1["pids"], mounts.own["pids"]
    with pytest.raises(IsolationError, match="does not hold these limits here: pids"):
        choose_backend("v1", mounts, None)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    backend = choose_backend("require", mounts, None).backend
    assert (backend.name, backend.unenforced) == ("v1", ("pids",))


def test_in_a_batch_job_v1_stays_in_the_jobs_cgroup(mounts: Mounts, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, mount in mounts.v1.items():
        mounts.own[name] = mount / "job"
        (mount / "job").mkdir()
    places = choose_backend("v1", mounts, None).backend.location()["v1"]["mounts"]
    assert places == {name: str(mount) for name, mount in mounts.v1.items()}
    for variable in BATCH_SYSTEMS:
        with monkeypatch.context() as patch:
            patch.setenv(variable, "7")
            places = choose_backend("v1", mounts, None).backend.location()["v1"]["mounts"]
        assert places == {name: str(mount / "job") for name, mount in mounts.v1.items()}


def test_slices_of_v1_leave_no_quota(mounts: Mounts, tmp_path: Path) -> None:
    """Where `cpuacct` is mounted together with `cpu`, who joins the one leaves its cgroup of the other."""
    root = tmp_path / "cpu,cpuacct"
    (root / "service").mkdir(parents=True)
    mounts.v1.update(cpu=root, cpuacct=root)
    mounts.chains["cpu"] = (root / "service", root)
    for level, kept in ((root, {"cpu", "cpuacct"}), (root / "service", set[str]())):
        (level / "cpu.cfs_quota_us").write_text("250000")
        (level / "cpu.cfs_period_us").write_text("100000")
        places = choose_backend("v1", mounts, None).backend.location()["v1"]["mounts"]
        assert places.keys() & {"cpu", "cpuacct"} == kept


def test_a_bad_base_is_an_error_whatever_was_asked(mounts: Mounts) -> None:
    for asked in ISOLATIONS:
        with pytest.raises(CotenantError, match=r"^--cgroup-base '\.\./x' is no path"):
            choose_backend(asked, mounts, "../x")


@pytest.mark.parametrize(
    ("error", "sentence", "remedy"),
    [
        (NotIsolatedError("no such file"), "Isolation failed: no such file.", "--isolation none"),
        (UnkillableError("processes 7 cannot be killed"), "The run could not be ended: processes 7", "ps -o"),
    ],
)
def test_kernel_refusals_and_surviving_processes_have_remedies(
    error: NotIsolatedError, sentence: str, remedy: str
) -> None:
    with pytest.raises(IsolationError) as caught, isolation_errors():
        raise error
    assert str(caught.value).startswith(sentence)
    assert remedy in str(caught.value)
