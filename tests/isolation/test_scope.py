"""A run that starts itself again, by a systemd-run of the tests' own: asked once, its arguments passed on, no loop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cotenant.errors import EXIT_NOT_ISOLATED, IsolationError
from cotenant.isolation import scope, v2tree
from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.choose import choose_backend
from cotenant.isolation.runs import RunName
from cotenant.isolation.scope import SCOPE_VARIABLE
from cotenant.isolation.v2 import V2
from cotenant.machine.limits import V2 as V2_HIERARCHY
from cotenant.machine.limits import Mounts
from cotenant.machine.virtual import BATCH_SYSTEMS
from isolation.fakekernel import reason, refused
from patience import HANG_S

SOURCE = Path(scope.__file__).resolve().parents[2]
USER = 1000
MANAGER = f"user.slice/user-{USER}.slice/user@{USER}.service"
ALL = "cpuset cpu io memory pids"
AS_ASKED = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'
FAILS = "echo 'Failed to connect to bus:' >&2; echo '  No medium found' >&2; exit 1"
Serve = Callable[[str], None]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Puts a systemd-run on PATH that notes its arguments and runs the given line of sh."""
    monkeypatch.setattr(v2tree, "SYSTEMD", tmp_path)
    for variable in (*BATCH_SYSTEMS, SCOPE_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")

    def serve(line: str) -> None:
        program = place / "systemd-run"
        program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/words\n{line}\n')
        program.chmod(0o755)

    serve(AS_ASKED)
    return serve


@pytest.fixture
def mounts(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mounts:
    """A user's session, which systemd has not delegated to the user, and the user's manager beside it."""
    monkeypatch.setattr(os, "geteuid", lambda: USER)
    top = tmp_path / "cgroup"
    own = top / f"user.slice/user-{USER}.slice/session-3.scope"
    for level in (own, top / MANAGER):
        level.mkdir(parents=True)
        (level / "cgroup.controllers").write_text(ALL)
    return Mounts({}, top, {V2_HIERARCHY: own}, {V2_HIERARCHY: (own, own.parent, own.parents[1], top)})


def asked(tmp_path: Path) -> list[str]:
    words = tmp_path / "words"
    return words.read_text().splitlines() if words.exists() else []


def test_without_a_delegated_subtree_the_run_restarts_under_v2(mounts: Mounts, tmp_path: Path) -> None:
    for isolation in ("auto", "require", "v2"):
        chosen = choose_backend(isolation, mounts, None)
        assert isinstance(chosen.backend, V2)
        assert (chosen.backend.starts_again, chosen.backend.unenforced) == (True, ())
        (finding,) = chosen.findings
        assert (finding.rule, finding.severity) == ("starts_again", "info")
    assert asked(tmp_path) == ["--user --scope -p Delegate=yes -p TasksMax=infinity --quiet --collect -- true"] * 3


def test_without_cpusets_for_users_it_serves_in_part(mounts: Mounts, tmp_path: Path) -> None:
    (tmp_path / "cgroup" / MANAGER / "cgroup.controllers").write_text("cpu memory pids")
    chosen = choose_backend("auto", mounts, None)
    assert (chosen.backend.name, chosen.backend.unenforced) == ("v2", ("processors", "nodes"))
    assert [finding.rule for finding in chosen.findings] == ["degraded", "starts_again"]
    with pytest.raises(IsolationError, match="no cpusets to us") as caught:
        choose_backend("require", mounts, None)
    assert "systemctl edit user@" in caught.value.remedy
    (tmp_path / "cgroup" / MANAGER / "cgroup.controllers").write_text("pids")
    assert str(reason(V2(mounts))).endswith("is not delegated to us, and systemd delegates no controller memory to us")


@pytest.mark.parametrize(
    ("said", "divides"),
    [
        ("Delegate=yes\nControlGroup=/{}", True),
        ("Delegate=no\nControlGroup=/{}", False),
        ("Delegate=yes\nControlGroup=/system.slice/run-1.scope", False),
        ("Delegate=yes\nControlGroup=", False),
        ("", False),
    ],
)
def test_a_user_divides_a_unit_delegated_by_the_users_manager(
    said: str, divides: bool, mounts: Mounts, tmp_path: Path
) -> None:
    """A manager of systemd 252 leaves no mark, and every cgroup below it can be written by its user."""
    top = tmp_path / "cgroup"
    unit = f"{MANAGER}/app.slice/run-1.scope"
    own = top / unit
    own.mkdir(parents=True)
    for name, text in (("cgroup.controllers", ALL), ("cgroup.procs", ""), ("cgroup.subtree_control", "")):
        (own / name).write_text(text)
    program = tmp_path / "bin/systemctl"
    program.write_text(f"#!/bin/sh\necho '{said.format(unit)}'\n")
    program.chmod(0o755)
    backend = V2(Mounts({}, top, {V2_HIERARCHY: own}, {V2_HIERARCHY: (own, own.parent, own.parents[1], top)}))
    assert backend.probe() is None
    assert backend.starts_again == (not divides)
    assert bool(asked(tmp_path)) == (not divides)


def test_after_the_setup_script_the_remedy_is_to_log_in_again(
    mounts: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cgroup" / MANAGER / "cgroup.controllers").write_text("cpu memory pids")
    monkeypatch.setattr(scope, "UNITS", tmp_path)
    remedy = refused(V2(mounts)).remedy
    assert remedy.startswith("sudo ./cgroup_setup.sh, then log out everywhere and in again.")
    drop_in = tmp_path / f"user@{USER}.service.d/cotenant.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("")
    remedy = refused(V2(mounts)).remedy
    assert remedy.startswith("They are delegated from the next login on: log out everywhere and in again")
    assert "cgroup_setup.sh" not in remedy


def test_auto_isolation_survives_a_failing_systemd_run(serve: Serve, mounts: Mounts) -> None:
    serve(FAILS)
    chosen = choose_backend("auto", mounts, None)
    assert chosen.backend.name == "affinity"
    (finding,) = chosen.findings
    words = "and systemd-run failed with exit status 1: Failed to connect to bus: No medium found"
    assert words in finding.sentence
    assert finding.remedy.startswith("Log in as this user")
    for isolation in ("require", "v2"):
        with pytest.raises(IsolationError, match=words) as caught:
            choose_backend(isolation, mounts, None)
        assert caught.value.exit_status == EXIT_NOT_ISOLATED


def test_an_unusable_systemd_run_is_refused_with_the_reason(
    serve: Serve, mounts: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve("exec sleep 1000")
    monkeypatch.setattr(scope, "TRIAL_LIMIT_S", 0.1)
    assert refused(V2(mounts)).reason.endswith("and systemd-run did not answer within 0.1 s")
    (tmp_path / "bin/systemd-run").write_text("#!/nowhere/sh\n")
    assert refused(V2(mounts)).reason.endswith("and systemd-run cannot be executed: No such file or directory")
    with pytest.raises(NotIsolatedError, match="systemd-run cannot be executed: No such file or directory"):
        scope.start_again()
    monkeypatch.setenv("PATH", "/nowhere")
    assert refused(V2(mounts)).reason.endswith("and systemd-run is not on PATH")
    with pytest.raises(NotIsolatedError, match="systemd-run is not on PATH"):
        scope.start_again()


@pytest.mark.parametrize(
    ("file", "text", "is_left"),
    [
        ("session-3.scope/memory.max", "1048576", True),
        ("session-3.scope/cpu.max", "50000 100000", True),
        ("session-3.scope/cpuset.cpus", "0-1", True),
        ("memory.max", "1048576", False),
    ],
)
def test_the_limits_that_we_are_under_are_not_left(
    file: str, text: str, is_left: bool, mounts: Mounts, tmp_path: Path
) -> None:
    """Those of a user's slice hold for a scope, too."""
    (mounts.own[V2_HIERARCHY].parent / file).write_text(text)
    words = "and a scope of systemd's would escape the limits that we are under"
    assert str(reason(V2(mounts))).endswith(words) == is_left
    assert bool(asked(tmp_path)) != is_left


def test_where_it_is_not_asked_at_all(mounts: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (mounts.own[V2_HIERARCHY] / "memory.max").write_text("max")
    refused(V2(mounts, "theirs"))
    for name, value in (("SLURM_JOB_ID", "7"), (SCOPE_VARIABLE, str(RunName()))):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            V2(mounts).probe()
    mounts.v1["memory"] = tmp_path / "memory"
    refused(V2(mounts))
    del mounts.v1["memory"]
    monkeypatch.setattr(v2tree, "SYSTEMD", tmp_path / "nowhere")
    refused(V2(mounts))
    assert asked(tmp_path) == []


def test_root_asks_the_hosts_manager(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    top = tmp_path / "cgroup"
    own = top / "system.slice/some.service"
    own.mkdir(parents=True)
    for level in (own, top):
        (level / "cgroup.controllers").write_text(ALL)
    backend = V2(Mounts({}, top, {V2_HIERARCHY: own}, {V2_HIERARCHY: (own, own.parent, top)}))
    assert backend.probe() is None
    assert (backend.starts_again, backend.unenforced) == (True, ())
    assert [words.partition(" ")[0] for words in asked(tmp_path)] == ["--scope"]


def test_it_is_inside_by_its_own_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant that starts a suite of its own inherits the variable, not the process."""
    monkeypatch.setenv(SCOPE_VARIABLE, str(RunName()))
    assert scope.is_inside()
    monkeypatch.setenv(SCOPE_VARIABLE, "1-1")
    assert not scope.is_inside()


PROGRAM = f"""
import sys, signal
sys.path.insert(0, {str(SOURCE)!r})
from cotenant.isolation import scope
print("begun", flush=True)
if not scope.is_inside():
    scope.start_again()
print("inside", *sys.argv[1:], flush=True)
if sys.argv[1] == "wait":
    signal.pause()
sys.stderr.write(sys.stdin.read())
sys.exit(int(sys.argv[1]))
"""


def test_a_command_restarts_once_and_signals_reach_it(serve: Serve, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    line = [sys.executable, "-S", str(program), "7", "two words"]
    ended = subprocess.run(line, input="read", capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("begun\nbegun\ninside 7 two words\n", "read")
    assert ended.returncode == 7
    (words,) = asked(tmp_path)
    assert words.endswith(f"-- {sys.executable} -S {program} 7 two words")
    for number in (signal.SIGTERM, signal.SIGINT):
        with subprocess.Popen([sys.executable, program, "wait"], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            while "inside" not in process.stdout.readline():
                pass
            process.send_signal(number)
            assert process.wait(HANG_S) == -number
