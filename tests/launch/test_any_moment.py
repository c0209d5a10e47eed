"""Ends at any moment of each design, some of them while a tenant is held still: nothing stays frozen, nothing is left.

Moments are drawn with a seed, which is printed; COTENANT_SEED repeats those of a test.
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
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cotenant.procfs import process_of
from patience import HANG_S
from tenants.fixtures import folder_of, suites_in
from tenants.suites import CGROUPS, ROOT, Suites, command, job, until

pytestmark = pytest.mark.slow
MOMENTS = 20
PROMISED_S = 2.0
SLICE_BYTES = 384 << 20
PAIR_BYTES = 3 << 30
"""Of a slice in which two jobs of pairs live that nobody knows: all of them meet in one launch."""
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


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    seed = int(os.environ.get("COTENANT_SEED") or random.SystemRandom().getrandbits(32))
    print(f"COTENANT_SEED={seed}", file=sys.stderr)
    return random.Random(f"{seed} {request.node.name}")


@dataclass(frozen=True)
class TypedDesign:
    """A design as somebody starts it: the flags, the tenants, and the number of slices."""

    flags: tuple[object, ...]
    tenants: int
    slices: int
    most_s: float
    """The last moment, in seconds after the first border: a whole round or more."""
    jobs: tuple[str, ...] = ("job",)
    command: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    """The words behind all flags."""
    slice_bytes: int = SLICE_BYTES
    within_s: tuple[float, float] = (1.5, 5.0)
    """The limits of launches that end by time, in seconds."""
    in_time: int = 0
    """The tenants of such a launch if they are fewer: pairs for which one has no time are launches of their own."""


DESIGNS = {
    "blocks": TypedDesign(("--users", 2, "--baseline", "blocks"), 2, 2, 3.5),
    "pairs": TypedDesign(
        ("--pairs", "job,other"), 4, 2, 8.0, ("job", "other"), slice_bytes=PAIR_BYTES, within_s=(1.5, 3.0), in_time=2
    ),
    "duet": TypedDesign(("--duet", "job", "--users", 2, "--repetitions", 1), 4, 2, 3.5, behind=("--", "---")),
    "crowd": TypedDesign(("--users", 3, "--keep", 0.1), 3, 3, 7.0, command=("capacity",), within_s=(9.0, 16.0)),
}
ENDS = ("runner", "interrupt", "stop", "timeout", "tenant", "memory")


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


def started(suites: Suites, design: TypedDesign, *words: object, timeout_s: float = 0) -> subprocess.Popen[str]:
    """Start the tenants of a design, and wait until all are there, and one of them is frozen."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    reserve = memory - design.slices * design.slice_bytes
    jobs = [job("rogue.py", "--repeat", 8, *map(str, words), name=name) for name in design.jobs]
    flags = ("--reserve", reserve, "--outdir", suites.output, *(("--timeout", timeout_s) if timeout_s else ()))
    runner = suites.start(jobs, *design.flags, *flags, *design.behind, command=design.command)
    count = (timeout_s and design.in_time) or design.tenants
    until(lambda: len(tenants(suites)) == count or runner.poll() is not None, "users", seen=suites.said)
    assert runner.poll() is None, suites.said()
    if not timeout_s:
        until(lambda: frozen(suites) or runner.poll() is not None, "the first border", seen=suites.said)
    return runner


def tenants(suites: Suites) -> list[int]:
    """Return the processes of both that run their programs, and no longer the script that enters a slice."""
    return [pid for pid in suites.processes() if " --seed " in (words := command(pid)) and "enter.py" not in words]


@pytest.mark.parametrize("end", ENDS)
def test_at_any_moment_of_blocks_nothing_is_left_frozen(suites: Suites, end: str, chance: random.Random) -> None:
    while_frozen = ended_all(suites, "blocks", [end] * MOMENTS, chance)
    assert while_frozen or end in ("timeout", "memory")  # Of these the moment is not ours to see.


@pytest.mark.parametrize("design", DESIGNS)
def test_at_any_moment_of_a_design_nothing_is_left_frozen(suites: Suites, design: str, chance: random.Random) -> None:
    """Each kind of end has three of the moments, or four."""
    ends = [*ENDS * (MOMENTS // len(ENDS)), *chance.sample(ENDS, MOMENTS % len(ENDS))]
    assert ended_all(suites, design, chance.sample(ends, MOMENTS), chance)


def ended_all(suites: Suites, design: str, ends: list[str], chance: random.Random) -> int:
    """End a launch in each of these ways; return how often a tenant was frozen then."""
    while_frozen, longest_s = 0, 0.0
    for number, end in enumerate(ends):
        print(f"moment {number}: {end}", file=sys.stderr)
        was_frozen, took_s = ended(suites, DESIGNS[design], end, chance)
        while_frozen, longest_s = while_frozen + was_frozen, max(longest_s, took_s)
        assert "Traceback" not in suites.said()
        shutil.rmtree(suites.output, ignore_errors=True)
    counted = ", ".join(f"{count} {end}" for end, count in Counter(ends).items())
    print(
        f"{suites.isolation}, {design}: {while_frozen} of {len(ends)} ({counted}) while frozen, "
        f"at most {longest_s:.2f} s",
        file=sys.stderr,
    )
    return while_frozen


def ended(suites: Suites, design: TypedDesign, end: str, chance: random.Random) -> tuple[bool, float]:
    """End one launch; return whether somebody was frozen then, and after how many seconds nothing was left of it."""
    after_s = chance.uniform(0, design.most_s)
    if end == "memory":
        # A crowd's first user is launched by itself before.
        who = chance.randrange(design.command != (), design.tenants)
        runner = started(suites, design, "--who", who, "--at", "go", "--do", "hog-later", after_s)
        victims = set(tenants(suites))
        until(lambda: not victims <= set(tenants(suites)), "one has died", HANG_S)
    elif end == "timeout":
        # Its clock starts before tenants are there.
        runner = started(suites, design, timeout_s=chance.uniform(*design.within_s))
        held = False
        while tenants(suites):
            held = bool(frozen(suites))
        runner.wait(HANG_S)
        return held, gone_s(suites, runner)
    else:
        runner = started(suites, design)
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
        # The survivors finish, and rest no more.
        there, begin_s = set(tenants(suites)), time.monotonic()
        while there & set(tenants(suites)):
            held = frozen(suites)
            assert not held or time.monotonic() - begin_s < PROMISED_S, held
        if design.command:
            # It would go on with fewer users.
            runner.send_signal(signal.SIGINT)
        runner.wait(HANG_S)
    took_s = gone_s(suites, runner)
    if end in ("interrupt", "stop"):
        assert runner.wait(HANG_S) == 130
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
    runner = started(suites, DESIGNS["blocks"])
    until(lambda: frozen(suites), "one is frozen")
    runner.send_signal(signal.SIGSTOP)
    begin_s = time.monotonic()

    def held() -> list[str]:
        return [who for who in frozen(suites) if who != str(runner.pid)]

    until(lambda: not held(), "nobody is frozen", STOPPED_AT_MOST_S + PROMISED_S)
    print(f"{suites.isolation}: frozen for {time.monotonic() - begin_s:.1f} s by a stopped runner", file=sys.stderr)
    runner.send_signal(signal.SIGCONT)
    assert runner.wait(HANG_S) == 0, suites.said()
    suites.gone(PROMISED_S)
