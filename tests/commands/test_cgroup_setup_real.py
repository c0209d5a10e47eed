"""cgroup_setup.sh on real v1 cgroups, as root for another user; and a suite that this user then runs."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.fakehosts import cgroup_setup
from cotenant.isolation.runs import RunName
from cotenant.machine.limits import cgroup_mounts
from isolation.conftest import v1_mounts
from patience import HANG_S
from tenants.fixtures import folder_of, short_folder
from tenants.suites import RUN, Suites, job

__all__ = ["v1_mounts"]
pytestmark = pytest.mark.v1


def nobody() -> pwd.struct_passwd:
    """Return a system account that nobody logs in to; two runs of these tests at once take different ones."""
    mounts = cgroup_mounts().v1.values()
    free = [
        user
        for user in pwd.getpwall()
        if 0 < user.pw_uid < 100 and not any((mount / f"cotenant.{user.pw_name}").exists() for mount in mounts)
    ]
    return free[os.getpid() % len(free)]


NOBODY = nobody()
LOGIN, BASE = NOBODY.pw_name, f"cotenant.{NOBODY.pw_name}"


@pytest.fixture
def bases(v1_mounts: dict[str, Path]) -> Iterator[list[Path]]:
    """Yield the paths of the user's directories, which must not exist before or after the test."""
    places = [mount / BASE for mount in v1_mounts.values()]
    assert not any(place.exists() for place in places)
    yield places
    cgroup_setup("--remove", "--user", LOGIN)
    assert not any(place.exists() for place in places)


def test_the_user_owns_the_directories_until_they_are_removed(bases: list[Path], v1_mounts: dict[str, Path]) -> None:
    assert cgroup_setup("--user", LOGIN).returncode == 0
    assert {place.stat().st_uid for place in bases} == {NOBODY.pw_uid}
    assert {oct(place.stat().st_mode & 0o7777) for place in bases} == {"0o755"}
    assert {path.stat().st_uid for place in bases for path in place.iterdir()} == {0}
    for name in ("cpuset.cpus", "cpuset.mems"):  # an empty cpuset admits no process
        top = v1_mounts["cpuset"]
        assert (top / BASE / name).read_text() == (top / name).read_text() != "\n"
    again = cgroup_setup("--user", LOGIN).stdout
    assert again.count("kept: ") == len(bases)
    assert "done: " not in again
    for place in bases:  # leftovers of a dead run
        (place / "4194303-1-1/t0").mkdir(parents=True)
    removed = cgroup_setup("--remove", "--user", LOGIN)
    assert removed.returncode == 0
    assert removed.stdout.count(f"/{BASE}\n") == len(bases)
    assert not any(place.exists() for place in bases)
    assert cgroup_setup("--remove", "--user", LOGIN).stdout.count("kept: there is no ") == len(bases)


def test_remove_refuses_while_a_suite_runs(bases: list[Path]) -> None:
    cgroup_setup("--user", LOGIN)
    run = bases[0] / str(RunName())
    run.mkdir()
    said = cgroup_setup("--remove", "--user", LOGIN)
    assert said.returncode == 1
    assert said.stderr == f"cgroup_setup.sh: A suite of {LOGIN} runs in {run}; end it first.\n"
    assert run.is_dir()
    run.rmdir()


def test_remove_refuses_while_a_process_lives_there(bases: list[Path], v1_mounts: dict[str, Path]) -> None:
    cgroup_setup("--user", LOGIN)
    place = v1_mounts["pids"] / BASE
    with subprocess.Popen(
        ["sh", "-c", f"echo 0 > {place}/cgroup.procs && echo in && exec sleep 1000"], stdout=-1
    ) as one:
        assert one.stdout is not None
        assert one.stdout.readline() == b"in\n"
        said = cgroup_setup("--remove", "--user", LOGIN)
        assert said.returncode == 1
        assert said.stderr == f"cgroup_setup.sh: Processes live in {place}: {one.pid}; end them first.\n"
        one.kill()


def test_that_user_runs_a_suite_in_slices(bases: list[Path]) -> None:
    cgroup_setup("--user", LOGIN)
    with folder_of(NOBODY.pw_uid) as folder, short_folder() as short:
        os.chown(short, NOBODY.pw_uid, NOBODY.pw_gid)
        suites = Suites(folder, short, BASE, "v1")
        jobs = suites.jobs([job("rogue.py", "--at", "hello", "--do", "shut")])
        # The checkout or the interpreter may lie in root's home: the user may read everything.
        user = f"setpriv --reuid {NOBODY.pw_uid} --regid {NOBODY.pw_gid} --clear-groups"
        reading = "--inh-caps +dac_read_search --ambient-caps +dac_read_search"
        line = [*user.split(), *reading.split(), *RUN, "--jobs", str(jobs)]
        suites.typed([*line, "--isolation", "v1"], HANG_S, status=0, HOME=str(folder))
        records = suites.records()
        assert [record["outcome"] for record in records] == ["completed", "completed"]
        for record in records:
            isolation = record["isolation"]
            assert isolation["backend"] == "v1"
            assert isolation["unenforced"] == []
            for what in ("processors", "nodes", "memory_bytes"):
                assert isolation["read_back"][what] == isolation["planned"][what]
        assert suites.processes() == []
        # Also the directory that a tenant has made read-only.
        assert suites.directories() == []
    assert {place.stat().st_uid for place in bases} == {NOBODY.pw_uid}
    assert not [path for place in bases for path in place.iterdir() if path.is_dir()]
