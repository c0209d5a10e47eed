"""Backend systemd against a systemd-run of the tests' own: asked once, begun anew once, its words passed on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cotenant.isolation import systemd, v2tree
from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.runs import RunName
from cotenant.isolation.systemd import SCOPE_VARIABLE, Systemd
from cotenant.machine.limits import V2, Mounts
from cotenant.machine.virtual import BATCH_SYSTEMS
from isolation.entering import PATIENCE_S
from isolation.fakekernel import reason, refused

SOURCE = Path(systemd.__file__).resolve().parents[2]
ALL = ["cpu", "cpuset", "io", "memory", "pids"]
Serve = Callable[..., None]


@pytest.fixture
def mounts(tmp_path: Path) -> Mounts:
    """A service's cgroup, without limits as yet."""
    own = tmp_path / "cgroup/system.slice/some.service"
    own.mkdir(parents=True)
    return Mounts({}, tmp_path / "cgroup", {V2: own}, {V2: (own, own.parent, tmp_path / "cgroup")})


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Puts a systemd-run on PATH that notes its arguments and runs the given line of sh."""
    monkeypatch.setattr(v2tree, "SYSTEMD", tmp_path)
    monkeypatch.setattr(systemd, "systemd_runs", v2tree.systemd_runs)
    for variable in (*BATCH_SYSTEMS, SCOPE_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")

    def serve(line: str) -> None:
        program = place / "systemd-run"
        program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/words\n{line}\n')
        program.chmod(0o755)

    return serve


def offer(**changed: object) -> str:
    whole = {"controllers": ALL, "processors": sorted(os.sched_getaffinity(0)), "memory_bytes": None}
    return f"echo '{json.dumps(whole | {'quota_processors': None} | changed)}'"


def test_it_is_asked_for_what_a_slice_needs_and_users_ask_their_own_manager(
    serve: Serve, mounts: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(offer())
    whose = "--user " if os.geteuid() else ""
    backend = Systemd(mounts)
    assert backend.probe() is None
    assert backend.unenforced == ()
    serve(offer(controllers=["cpu", "memory", "pids"]))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    backend = Systemd(mounts)
    refusal = refused(backend)
    assert refusal.partial
    assert refusal.reason == "systemd delegates memory, but no cpusets to us"
    assert f"systemctl edit user@{os.getuid()}.service" in refusal.remedy
    assert "Delegate=cpu cpuset io memory pids" in refusal.remedy
    assert backend.unenforced == ("processors", "nodes")
    ours, users = (tmp_path / "words").read_text().splitlines()
    asked = f"--scope --property=Delegate=yes --property=TasksMax=infinity --quiet --collect -- {sys.executable}"
    assert ours.startswith(f"{whose}{asked}")
    assert users.startswith(f"--user {asked}")


def test_a_failing_systemd_run_is_a_sentence_with_what_it_said(serve: Serve, mounts: Mounts) -> None:
    serve("echo 'Failed to connect to bus:' >&2; echo '  No medium found' >&2; exit 1")
    refusal = refused(Systemd(mounts))
    assert refusal.reason == "systemd-run failed with exit status 1: Failed to connect to bus: No medium found"
    assert not refusal.partial
    for answer in ("nonsense", "null"):
        serve(f"echo {answer}")
        assert reason(Systemd(mounts)) == "systemd-run failed with exit status 0: "


def test_one_that_does_not_answer_is_not_there_or_cannot_be_executed(
    serve: Serve, mounts: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve("exec sleep 1000")
    monkeypatch.setattr(systemd, "TRIAL_LIMIT_S", 0.1)
    assert reason(Systemd(mounts)) == "systemd-run did not answer within 0.1 s"
    (tmp_path / "bin/systemd-run").write_text("#!/nowhere/sh\n")
    assert refused(Systemd(mounts)).reason.endswith("bin/systemd-run cannot be executed: No such file or directory")
    with pytest.raises(NotIsolatedError, match="systemd-run cannot be executed: No such file or directory"):
        Systemd(mounts).begin_anew()
    monkeypatch.setenv("PATH", "/nowhere")
    assert reason(Systemd(mounts)) == "systemd-run is not on PATH"
    with pytest.raises(NotIsolatedError, match="systemd-run is not on PATH"):
        Systemd(mounts).begin_anew()


def test_the_limits_that_we_are_under_are_not_left(serve: Serve, mounts: Mounts) -> None:
    (mounts.own[V2].parent / "memory.max").write_text("1048576")
    (mounts.own[V2].parent / "cpu.max").write_text("50000 100000")
    same: dict[str, object] = {"memory_bytes": 1048576, "quota_processors": 0.5}
    serve(offer(**same))
    assert Systemd(mounts).probe() is None
    worse: list[tuple[str, dict[str, object]]] = [
        ("memory", {"memory_bytes": None}),
        ("memory", {"memory_bytes": 1048577}),
        ("processor time", {"quota_processors": None}),
        ("processor time", {"quota_processors": 0.6}),
        ("processors", {"processors": [0, 100_000]}),
    ]
    for lost, changed in worse:
        serve(offer(**same | changed))
        sentence = f"a scope of systemd's would leave the limits that we are under ({lost})"
        assert reason(Systemd(mounts)) == sentence


def test_where_it_is_not_asked_at_all(
    serve: Serve, mounts: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(offer())
    assert refused(Systemd(mounts, "theirs")).remedy == "Leave --cgroup-base out."
    mounts.v1["memory"] = tmp_path / "memory"
    assert refused(Systemd(mounts)).reason.endswith("the controller memory is mounted on v1 here")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert reason(Systemd(mounts)) == "a scope of systemd's would leave the job that Slurm gave us"
    monkeypatch.setattr(v2tree, "SYSTEMD", tmp_path / "nowhere")
    assert reason(Systemd(mounts)) == "systemd is not this host's init"
    assert not (tmp_path / "words").exists()


def test_it_is_inside_by_its_own_name_alone(mounts: Mounts, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant that starts a suite of its own inherits the variable, not the process."""
    monkeypatch.setenv(SCOPE_VARIABLE, str(RunName()))
    assert Systemd(mounts).inside
    monkeypatch.setenv(SCOPE_VARIABLE, "1-1")
    assert not Systemd(mounts).inside


PROGRAM = f"""
import sys, signal
sys.path.insert(0, {str(SOURCE)!r})
from cotenant.isolation.systemd import Systemd
from cotenant.machine.limits import Mounts
print("begun", flush=True)
backend = Systemd(Mounts({{}}, None, {{}}, {{}}))
if not backend.inside:
    backend.begin_anew()
print("inside", *sys.argv[1:], flush=True)
if sys.argv[1] == "wait":
    signal.pause()
sys.exit(int(sys.argv[1]))
"""


AS_ASKED = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'


def test_the_same_command_line_begins_anew_once_and_signals_reach_it_inside(serve: Serve, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    serve(AS_ASKED)
    ended = subprocess.run([sys.executable, "-S", program, "7", "two words"], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("begun\nbegun\ninside 7 two words\n", "")
    assert ended.returncode == 7
    (words,) = (tmp_path / "words").read_text().splitlines()
    assert words.endswith(f"{sys.executable} -S {program} 7 two words")
    with subprocess.Popen([sys.executable, program, "wait"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "inside" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == -signal.SIGTERM


def test_what_a_scope_says_of_itself_is_read(serve: Serve) -> None:
    """The real program, run where we are: it needs the standard library only."""
    serve(AS_ASKED)
    said = systemd._offer()
    assert said.processors == frozenset(os.sched_getaffinity(0))
    assert said.memory_bytes is None or said.memory_bytes > 0
