"""Ends at any moment of a schedule, some of them while a tenant is held still: nothing stays frozen, nothing is left.

Moments are drawn with a seed, which is printed; COTENANT_SEED repeats them.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cotenant.procfs import process_of
from tenants.fixtures import folder_of, suites_in
from tenants.suites import CGROUPS, ROOT, Suites, command, job, until

pytestmark = pytest.mark.slow
MOMENTS = 20
PROMISED_S = 2.0
MOST_S = 3.5
"""After the first border, of a schedule that lasts 7 s."""
SLICE_BYTES = 384 << 20
USER = 60123
STOPPED_AT_MOST_S = 30 + 5
"""The seconds that the reaper waits, plus those between two of its looks."""


@pytest.fixture
def user() -> Iterator[Suites]:
    """Suites of a user who has no cgroup."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root, and setpriv, to become a user")
    with folder_of(USER) as folder:
        for suites in suites_in(folder, "affinity"):
            shutil.chown(suites.short, USER, USER)
            # The tests' own interpreter may lie where this user cannot go.
            suites.before = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "/usr/bin/python3"]
            paths = f"{ROOT}/common:{ROOT}/tests:{sysconfig.get_path('purelib')}"
            suites.environment |= {"HOME": str(folder), "PYTHONPATH": paths}
            yield suites


@pytest.fixture(params=[pytest.param("v1", marks=pytest.mark.v1), "user"])
def suites(request: pytest.FixtureRequest) -> Suites:
    found: Suites = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def chance() -> random.Random:
    seed = int(os.environ.get("COTENANT_SEED") or random.SystemRandom().getrandbits(32))
    print(f"COTENANT_SEED={seed}", file=sys.stderr)
    return random.Random(seed)


def frozen(suites: Suites) -> list[str]:
    """Return the freezer cgroups and stopped processes of the moment."""
    held = []
    for top, _, names in os.walk(CGROUPS / "freezer" / suites.name):
        # A cgroup that vanishes meanwhile freezes nobody.
        with contextlib.suppress(OSError):
            if "freezer.state" in names and Path(top, "freezer.state").read_text().strip() != "THAWED":
                held.append(top)
    states = ((pid, process_of(pid)) for pid in suites.processes())
    return held + [str(pid) for pid, process in states if process is not None and process.state == "T"]


def started(suites: Suites, *words: object, flags: tuple[object, ...] = ()) -> subprocess.Popen[str]:
    """Start two tenants that take turns, and wait until both are there."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    reserve = memory - 2 * SLICE_BYTES
    jobs = [job("rogue.py", "--repeat", 8, *map(str, words))]
    runner = suites.start(jobs, "--users", 2, "--baseline", "blocks", "--reserve", reserve, *flags)
    until(lambda: len(tenants(suites)) == 2 or runner.poll() is not None, "two users", seen=suites.said)
    assert runner.poll() is None, suites.said()
    if "--timeout" not in flags:
        until(lambda: frozen(suites) or runner.poll() is not None, "the first border", seen=suites.said)
    return runner


def tenants(suites: Suites) -> list[int]:
    """Return the processes of both that run their programs, and no longer the script that enters a slice."""
    return [pid for pid in suites.processes() if " --seed " in (words := command(pid)) and "enter.py" not in words]


@pytest.mark.parametrize("end", ["runner", "interrupt", "stop", "timeout", "tenant", "memory"])
def test_at_any_moment_of_a_schedule_nothing_is_left_frozen(suites: Suites, end: str, chance: random.Random) -> None:
    while_frozen, longest_s = 0, 0.0
    for _ in range(MOMENTS):
        after_s = chance.uniform(0, MOST_S)
        was_frozen, took_s = ended(suites, end, after_s, chance)
        while_frozen, longest_s = while_frozen + was_frozen, max(longest_s, took_s)
        assert "Traceback" not in suites.said()
        shutil.rmtree(suites.output, ignore_errors=True)
    print(
        f"{suites.isolation}, {end}: {while_frozen} of {MOMENTS} while frozen, at most {longest_s:.2f} s",
        file=sys.stderr,
    )
    assert while_frozen or end in ("timeout", "memory")  # Of these the moment is not ours to see.


def ended(suites: Suites, end: str, after_s: float, chance: random.Random) -> tuple[bool, float]:
    """End one launch; return whether somebody was frozen then, and after how many seconds nothing was left of it."""
    if end == "memory":
        runner = started(suites, "--who", chance.randrange(2), "--at", "go", "--do", "hog-later", after_s)
        victims = set(tenants(suites))
        until(lambda: not victims <= set(tenants(suites)), "one has died", 20 + after_s)
    elif end == "timeout":
        # Its clock starts before tenants are there.
        runner = started(suites, flags=("--timeout", after_s + 1.5))
        held = False
        while tenants(suites):
            held = bool(frozen(suites))
        runner.wait(20)
        return held, gone_s(suites, runner)
    else:
        runner = started(suites)
        time.sleep(after_s)
    was_frozen = bool(frozen(suites))
    if end == "runner":
        runner.kill()
        runner.wait()
    elif end == "interrupt":
        runner.send_signal(signal.SIGINT)
    elif end == "stop":
        lock = suites.environment["COTENANT_LOCK"]
        line = [sys.executable, str(ROOT / "run.py"), "stop", "--timeout", "60"]
        stopped = subprocess.run(line, env=os.environ | {"COTENANT_LOCK": lock}, capture_output=True, text=True)
        assert stopped.returncode == 0, stopped.stderr
    elif end == "tenant":
        os.kill(chance.choice(tenants(suites)), signal.SIGKILL)
    if end in ("tenant", "memory"):
        # The survivor finishes, and rests no more.
        begin_s = time.monotonic()
        while runner.poll() is None:
            assert not frozen(suites) or time.monotonic() - begin_s < PROMISED_S
    took_s = gone_s(suites, runner)
    if end in ("interrupt", "stop"):
        assert runner.wait(20) == 130
        suites.gone(PROMISED_S)
    return was_frozen, took_s


def gone_s(suites: Suites, runner: subprocess.Popen[str]) -> float:
    """Wait until nothing is left, but a runner that writes its records; return after how many seconds that was."""
    begin_s = time.monotonic()
    if runner.poll() is None:
        until(
            lambda: not tenants(suites) and not frozen(suites),
            "users are gone",
            PROMISED_S,
            lambda: (list(map(command, tenants(suites))), frozen(suites)),
        )
    else:
        suites.gone(PROMISED_S)
    return time.monotonic() - begin_s


def test_who_is_frozen_goes_on_though_the_runner_is_stopped(suites: Suites) -> None:
    runner = started(suites)
    until(lambda: frozen(suites), "one is frozen")
    runner.send_signal(signal.SIGSTOP)
    begin_s = time.monotonic()

    def held() -> list[str]:
        return [who for who in frozen(suites) if who != str(runner.pid)]

    until(lambda: not held(), "nobody is frozen", STOPPED_AT_MOST_S + PROMISED_S)
    print(f"{suites.isolation}: frozen for {time.monotonic() - begin_s:.1f} s by a stopped runner", file=sys.stderr)
    runner.send_signal(signal.SIGCONT)
    assert runner.wait(60) == 0, suites.said()
    suites.gone(PROMISED_S)
