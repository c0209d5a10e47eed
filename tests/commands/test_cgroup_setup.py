"""cgroup_setup.sh on invented hosts: its announced steps, its calls of sudo, and a second call that changes nothing."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from commands.fakehosts import FakeHost, cgroup_setup
from tenants.suites import script

GOLDEN = Path(__file__).parent / "golden"
PRIVILEGED = {"mkdir", "chown", "tee", "rmdir", "rm", "systemctl"}
HOSTS = {
    "v1": (FakeHost.v1, []),
    "v1-remove": (FakeHost.v1, ["--remove"]),
    "v2": (FakeHost.v2, []),
    "systemd": (FakeHost.systemd, []),
}


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path / "host")


@pytest.mark.parametrize("name", HOSTS)
def test_what_is_said_is_what_is_done(name: str, host: FakeHost) -> None:
    """A dry run prints every step and does none; a real run calls sudo only for the printed steps."""
    make, words = HOSTS[name]
    make(host)
    before = host.files()
    would = host.setup("--dry-run", *words)
    assert (would.returncode, would.stderr) == (0, "")
    assert would.stdout == (GOLDEN / f"{name}.txt").read_text()
    assert host.requests() == []
    assert host.files() == before
    did = host.setup(*words)
    assert did.returncode == 0, did.stderr
    assert did.stdout == would.stdout.replace("would: ", "done: ")
    asked = host.requests()
    assert {line.split()[0] for line in asked} <= PRIVILEGED
    # Where words are piped into `sudo tee`, the request begins behind the pipe.
    assert asked == [line.rpartition("sudo ")[2] for line in did.stdout.splitlines() if line.startswith("done: ")]


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_on_v2_the_user_owns_what_delegation_needs_and_no_limit(host: FakeHost) -> None:
    host.v2(enabled="cpuset cpu io memory pids")
    base = host.cgroups / "cotenant.nobody"
    base.mkdir()
    for name in ("cgroup.procs", "cgroup.threads", "cgroup.subtree_control", "memory.max", "cpuset.cpus"):
        (base / name).write_text("")
    assert host.setup(SUDO="").returncode == 0
    owned = {path.name for path in [base, *base.iterdir()] if path.stat().st_uid == 65534}
    assert owned == {"cotenant.nobody", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"}
    assert host.setup(SUDO="").stdout.count("kept: ") == 4


def test_controllers_that_the_kernel_lacks_are_named(host: FakeHost) -> None:
    host.v2()
    (host.cgroups / "cgroup.controllers").write_text("cpu memory pids\n")
    said = host.setup()
    assert said.returncode == 1
    assert said.stderr == "cgroup_setup.sh: The kernel offers no cpuset controller in /sys/fs/cgroup.\n"
    assert host.requests() == []
    (host.cgroups / "cgroup.controllers").write_text("cpuset memory\n")
    said = host.setup("--dry-run")
    assert said.returncode == 0, said.stderr
    assert "no pids controller in /sys/fs/cgroup: the number of a user's processes will not be" in said.stdout
    assert "+pids" not in said.stdout
    assert "The kernel offers no io controller in /sys/fs/cgroup: slices do without what it counts.\n" in said.stdout


def test_a_refused_controller_is_named_and_the_others_are_kept(host: FakeHost) -> None:
    """A kernel refuses cpu while a real-time process lives outside of the root cgroup."""
    host.v2()
    picky = script(
        host.root.with_suffix(".picky"),
        'case $1 in tee) read -r word ;; mkdir) exec "$@" ;; *) exit 0 ;; esac',
        '[ "$word" != +cpu ] || exit 1',
        'echo "$word" >> "$2"',
    )
    said = host.setup(SUDO=str(picky))
    assert said.returncode == 0, said.stderr
    assert "The kernel refuses the cpu controller in /sys/fs/cgroup: slices do without what it counts." in said.stdout
    assert (host.cgroups / "cgroup.subtree_control").read_text() == "memory pids\n+cpuset\n+io\n"


def test_of_two_mounts_of_one_hierarchy_the_whole_one_is_taken(host: FakeHost) -> None:
    host.mount("cgroup", "/part", "cpuset", shown="/docker/abc")
    host.v1()
    assert "/sys/fs/cgroup/cpuset/cotenant.nobody" in host.setup("--dry-run").stdout
    assert "/part" not in host.setup("--dry-run").stdout


def test_the_drop_in_is_written_kept_and_removed(host: FakeHost) -> None:
    host.systemd()
    folder = host.root / "etc/systemd/system/user@65534.service.d"
    assert host.setup().returncode == 0
    assert (folder / "cotenant.conf").read_text() == "[Service]\nDelegate=cpu cpuset io memory pids\n"
    asked = host.requests()
    assert asked[-1] == "systemctl daemon-reload"
    kept = "kept: /etc/systemd/system/user@65534.service.d/cotenant.conf\n"
    assert host.setup().stdout.startswith(f"{kept}Now nobody has to log in again: ")
    session = host.cgroups / "user.slice/user-65534.slice/user@65534.service"
    session.mkdir(parents=True)
    for controllers, said in (
        ("memory pids", "Now nobody has to log in again: "),
        ("cpuset memory", "nobody can run "),
    ):
        (session / "cgroup.controllers").write_text(f"{controllers}\n")
        assert host.setup().stdout.startswith(kept + said)
    assert host.requests() == asked
    host.setup("--remove")
    assert not folder.exists()
    assert host.requests()[-1] == "systemctl daemon-reload"
    assert host.setup("--remove").stdout.startswith("kept: there is no ")


def test_somebody_elses_drop_in_stays_and_root_needs_none(host: FakeHost) -> None:
    host.systemd()
    folder = host.root / "etc/systemd/system/user@65534.service.d"
    folder.mkdir(parents=True)
    (folder / "theirs.conf").write_text("[Service]\nTasksMax=9\n")
    host.setup()
    host.setup("--remove")
    assert [path.name for path in folder.iterdir()] == ["theirs.conf"]
    before = host.requests()
    said = cgroup_setup("--user", "root", host=host.root, SUDO=host.sudo)
    assert (said.returncode, said.stdout, host.requests()) == (2, "", before)
    assert said.stderr == "cgroup_setup.sh: Under systemd root needs no delegation; --user names the user who does.\n"


def test_a_step_that_fails_ends_it_and_is_named(host: FakeHost) -> None:
    host.v1()
    said = host.setup(SUDO="false")
    assert said.returncode == 1
    failed = "false mkdir -m 755 /sys/fs/cgroup/cpuset/cotenant.nobody"
    assert said.stderr == f"cgroup_setup.sh: This failed, and nothing after it was done: {failed}\n"
    assert said.stdout == ""


def test_the_prefix_of_privileged_steps_and_whom_they_are_for(host: FakeHost) -> None:
    host.v1()
    for sudo, shown in (
        ({}, "" if os.geteuid() == 0 else "sudo "),
        ({"SUDO": ""}, ""),
        ({"SUDO": "doas -n"}, "doas -n "),
    ):
        said = cgroup_setup("--dry-run", "--user", "nobody", host=host.root, **sudo).stdout
        assert said.startswith(f"would: {shown}mkdir ")
        assert f" | {shown}tee " in said
    assert "chown nobody " in cgroup_setup("--dry-run", host=host.root, SUDO_UID="65534").stdout


REFUSED = {
    "--bad": "There is no argument '--bad'; --help lists them.",
    "nobody": "There is no argument 'nobody'; --help lists them.",
    "--user": "--user needs a login name.",
    "--user ''": "--user needs a login name.",
    "--user no-such-login": "There is no user 'no-such-login' on this machine; --user names one.",
    "--user --remove": "There is no user '--remove' on this machine; --user names one.",
    "--install-drop-in": "There is no argument '--install-drop-in'; --help lists them.",
}


def test_wrong_usage_is_refused_in_one_sentence(host: FakeHost) -> None:
    (host.root / "proc/self/mountinfo").write_text("21 1 8:1 / / rw - ext4 /dev/x rw\n")
    said = host.setup()
    assert (said.returncode, said.stderr) == (1, "cgroup_setup.sh: No cgroups are mounted here.\n")
    host.v1()
    said = cgroup_setup("--help")
    assert (said.returncode, said.stdout[:18], "#" in said.stdout) == (0, "cgroup_setup.sh - ", False)
    for line, sentence in REFUSED.items():
        said = cgroup_setup(*shlex.split(line), host=host.root, SUDO=host.sudo)
        assert (said.returncode, said.stdout, said.stderr) == (2, "", f"cgroup_setup.sh: {sentence}\n")
    assert host.requests() == []
