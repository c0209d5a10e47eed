"""Promise 6: whoever is killed, whenever: no finished record is lost, and nothing is left behind."""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from launch.test_interruption import ENDLESS
from patience import HANG_S
from tenants.suites import PLACES, Suites, command, job, rogue, script, until

pytestmark = pytest.mark.v1
PROMISED_S = 2.0
LIMIT_S = 10.0
"""Generous, for a machine that is busy with other things as well."""


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def kill_runner(runner: "subprocess.Popen[str]") -> None:
    runner.kill()
    runner.wait()


def reapers(suites: Suites) -> list[int]:
    return [pid for pid in suites.processes() if "reaper.py" in command(pid)]


def busy(suites: Suites, *before: dict[str, Any]) -> "subprocess.Popen[str]":
    """Start two tenants with children, one of them without any marker, and wait until they are measured, after those of
    the jobs `before`."""
    runner = suites.start([*before, rogue("job", "hello", "children", *PLACES, *ENDLESS, who=None)], "--users", 2)
    suites.at_place("observed", 2)
    assert suites.isolation == "none" or len(suites.inhabitants()) >= 2 * 4
    return runner


@pytest.mark.parametrize("place", [pytest.param("start", marks=pytest.mark.slow), "observed"])
def test_the_reaper_clears_up_after_a_killed_runner(v1: Suites, place: str) -> None:
    """The records of launches that have ended stay."""
    finished = [] if place == "start" else [job(name="first")]
    runner = busy(v1, *finished) if finished else v1.start([job("plain.sh", "1000")], "--users", 2)
    until(lambda: len(v1.inhabitants()) >= 2, "users are in")
    inside = v1.inhabitants()
    assert len(reapers(v1)) == 1
    kill_runner(runner)
    begin_s = time.monotonic()
    v1.gone(LIMIT_S)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in inside), "the unmarked ones too", LIMIT_S)
    assert time.monotonic() - begin_s < LIMIT_S
    ends = [(record["name"], record["outcome"]) for record in v1.records()]
    assert ends == [("first", "completed")] * 2 * len(finished)


def test_a_new_reaper_removes_half_written_files_of_its_runner(v1: Suites) -> None:
    """Another host may be writing into the same directory."""
    runner = busy(v1)
    (old,) = reapers(v1)
    kill(old)
    until(lambda: [pid for pid in reapers(v1) if pid != old], "another reaper")
    assert runner.poll() is None
    mine, theirs = (v1.output / f".{pid}-{'0f' * 8}.tmp" for pid in (runner.pid, runner.pid + 1))
    for path in (mine, theirs):
        path.write_text("{")
    kill_runner(runner)
    until(lambda: not mine.exists(), "its file is gone", LIMIT_S)
    until(lambda: not reapers(v1), "the reaper is done", LIMIT_S)
    theirs.unlink()
    v1.gone(LIMIT_S)


@pytest.mark.parametrize("suites", ["v1", pytest.param("loose", marks=pytest.mark.slow)], indirect=True)
def test_the_next_start_clears_up_after_runner_and_reaper(suites: Suites) -> None:
    """Also without cgroups: a process that also left its session is known by the run's marker."""
    die_together(suites)
    assert suites.cgroups() if suites.isolation == "v1" else suites.processes()
    assert suites.directories()
    suites.run([job(name="next")], "--users", 1, status=0)
    assert not suites.leftovers()
    assert [record["name"] for record in suites.records()] == ["next"]


BOMB = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        break
else:
    time.sleep(1000)
while True:
    if os.fork():
        os._exit(0)
"""
"""Processes that are gone before a search finds them; each leaves another."""


def bombing(suites: Suites) -> "subprocess.Popen[str]":
    (suites.folder / "bomb.py").write_text(BOMB)
    script(suites.folder / "bomb.sh", f"exec python3 {suites.folder / 'bomb.py'}")
    jobs = [{"name": "bomb", "cmd": str(suites.folder / "bomb.sh"), "cgroup": "student"}]
    runner = suites.start(jobs, "--users", 1)
    until(lambda: len(suites.inhabitants()) > 4, "the bomb goes off")
    return runner


def test_the_reaper_outruns_a_fork_bomb(v1: Suites) -> None:
    kill_runner(bombing(v1))
    v1.gone(PROMISED_S)


@pytest.mark.slow
def test_a_fork_bomb_does_not_block_the_next_start(v1: Suites) -> None:
    die_together(v1, bombing(v1))
    v1.run([job(name="next")], "--users", 1, status=0)
    assert not v1.leftovers()


def die_together(suites: Suites, runner: "subprocess.Popen[str] | None" = None) -> None:
    """Kill a runner and its reaper at once."""
    runner = runner or busy(suites)
    (reaper,) = reapers(suites)
    kill(runner.pid, signal.SIGSTOP)
    kill(reaper)
    kill_runner(runner)


def kill_at_random(suites: Suites, seed: int) -> float:
    """One suite, one kill of anything but the reaper, at any moment from its start to its end.

    Runner, shim, tenant, worker or rank: return after how many seconds nothing was left of it.
    """
    chance = random.Random(seed)
    words = ["--at", "hello", "--do", "children", "--repeat", 20]
    jobs = [job("rogue.py", *words), job("ranks.sh", 3, *words, group="all", name="ranks"), job("sums.py", name="next")]
    chance.shuffle(jobs)
    runner = suites.start(jobs, "--users", 2)
    time.sleep(chance.uniform(0.0, 2.0))
    victims = sorted(pid for pid in suites.processes() if "reaper.py" not in command(pid))
    kill(chance.choice([runner.pid, *victims]))
    runner.wait(HANG_S)
    begin_s = time.monotonic()
    suites.gone(LIMIT_S)
    assert "Traceback" not in suites.said()
    return time.monotonic() - begin_s


@pytest.mark.parametrize(
    ("seeds", "within_s"),
    [([1], LIMIT_S), pytest.param(range(100, 200), PROMISED_S, marks=pytest.mark.slow)],
    ids=["one", "a hundred, with nothing else on the machine"],
)
def test_kills_at_random_moments(v1: Suites, seeds: Sequence[int], within_s: float) -> None:
    assert max(kill_at_random(v1, seed) for seed in seeds) < within_s
