"""Names of runs, and how a dead one is known."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.isolation import runs
from cotenant.isolation.backend import FLOWS, Counters, expected
from cotenant.isolation.choose import enabled_by
from cotenant.isolation.runs import RunName, owner
from cotenant.procfs import start_ticks
from isolation.entering import sleeper, slice_of


@given(st.integers(1, 1 << 22), st.integers(0, 1 << 60), st.integers(0, 1 << 32))
def test_a_name_reads_back(pid: int, ticks: int, namespace: int) -> None:
    name = RunName(pid, ticks, namespace)
    assert RunName.parse(str(name)) == name


WHOLE = st.integers(0, 1 << 60).map(str)
PARTS = WHOLE | st.sampled_from(["", "01", "+1", "-1", "1_0", " 1", "1\n", "x", "٣", "²"])


@given((st.tuples(WHOLE, WHOLE, PARTS) | st.tuples(PARTS, WHOLE, WHOLE) | st.lists(PARTS, max_size=5)).map("-".join))
def test_only_what_a_run_is_called_is_a_name(text: str) -> None:
    name = RunName.parse(text)
    assert (name is not None) == bool(re.fullmatch(r"(?a:(0|[1-9]\d*)-(0|[1-9]\d*)-(0|[1-9]\d*))", text))
    assert name is None or str(name) == text


def test_only_a_living_process_of_the_same_start_is_alive(
    dead_run: RunName,
) -> None:
    name = RunName()
    assert (name.pid, name.alive) == (os.getpid(), True)
    assert RunName() == name
    assert not RunName(name.pid, name.start_ticks + 1).alive
    assert not dead_run.alive
    assert start_ticks(dead_run.pid) is None
    with sleeper() as process:
        name = RunName(process.pid, start_ticks(process.pid) or 0)
        assert name.alive
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert Path(f"/proc/{process.pid}").exists()
        assert not name.alive


def test_whether_a_runner_lives_is_known_where_it_would_be_seen(
    run_elsewhere: RunName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first namespace everybody is seen."""
    assert run_elsewhere.is_elsewhere
    assert run_elsewhere.alive is None
    monkeypatch.setattr(runs, "FIRST_NAMESPACE", runs.pid_namespace())
    assert run_elsewhere.alive is False


def test_a_kernel_without_namespaces_names_runs_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "stat", refuse)
    assert RunName().namespace == 0
    assert RunName().alive
    assert RunName.parse(str(RunName())) == RunName()


def test_start_ticks_are_the_processs_start() -> None:
    second = os.sysconf("SC_CLK_TCK")
    before = int(time.clock_gettime(time.CLOCK_BOOTTIME) * second)
    with sleeper() as process:
        after = time.clock_gettime(time.CLOCK_BOOTTIME) * second
        assert before - 1 <= (start_ticks(process.pid) or 0) <= after + 1


def test_start_time_is_read_past_brackets_in_a_command_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strange = tmp_path / ") Z 1 (\udcff"
    strange.symlink_to("/bin/sleep")
    with subprocess.Popen([strange, "1000"]) as process:
        try:
            assert (start_ticks(process.pid) or 0) > 0
        finally:
            process.kill()

    def refuse(path: Path, mode: str) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "open", refuse)
    assert start_ticks(os.getpid()) is None


def test_owner_without_a_login(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(uid: int) -> None:
        raise KeyError(uid)

    assert owner()
    monkeypatch.setattr(runs.pwd, "getpwuid", nobody)
    assert owner() == str(os.getuid())


def test_expected_is_what_records_keep() -> None:
    planned = {"processors": "0-1,3", "nodes": "0-1", "memory_bytes": 4096, "accelerators": []}
    assert expected(slice_of(0, [0, 1, 3], nodes=[0, 1], memory_bytes=4096)) == planned


FILLED = Counters(*range(100, 100 + len(Counters().uncounted())))
TIMES = st.builds(Counters, *[st.none() | st.integers(0, 1 << 40) for _ in Counters().uncounted()])


@given(TIMES, TIMES)
def test_what_flows_is_a_difference_and_the_rest_is_as_it_is(before: Counters, after: Counters) -> None:
    since = after.since(before)
    for name in Counters().uncounted():
        first, then, difference = (getattr(counters, name) for counters in (before, after, since))
        assert difference == (then - first if name in FLOWS and None not in (first, then) else then)
    assert since.uncounted() == after.uncounted()


def test_at_the_end_what_flows_is_of_the_last_done() -> None:
    done = Counters(processor_ns=1, stalled_io_some_us=2, pids=3, memory_peak_bytes=4, oom_kills=5)
    ended = FILLED.at_end(done)
    assert (ended.processor_ns, ended.stalled_io_some_us, ended.pids) == (1, 2, 3)
    assert (ended.memory_peak_bytes, ended.oom_kills) == (FILLED.memory_peak_bytes, FILLED.oom_kills)
    assert ended.throttled_ns == FILLED.throttled_ns
    assert FILLED.at_end(Counters()) == FILLED
    assert Counters().at_end(done).memory_peak_bytes is None


def test_whatever_can_be_missing_has_something_that_enables_it() -> None:
    missing = ["processors", "nodes", "swap", "pids", "throttled_ns", "stalled_io_full_us", "memory_peak_bytes"]
    missing += ["pids_peak", "pids_refused", "oom_group_kills"]
    for name in ("v2", "affinity", "none"):
        assert list(enabled_by(name, missing)) == missing
    missing = ["swap", *(name for name in Counters().uncounted() if not name.startswith("memory_"))]
    assert list(enabled_by("v1", missing)) == missing
    assert "psi=1" in enabled_by("v1", ["stalled_cpu_some_us"])["stalled_cpu_some_us"]
