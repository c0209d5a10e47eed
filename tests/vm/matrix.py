"""The rows of isolation on cgroup v2: where a suite is started, and its expected result. Root in the guest runs it.

    python3 matrix.py core|all|NAME...

The first rows find users without cpusets; the last of these delegates them. Exit status: 0 if every row holds.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import pwd
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import guest
import moments
from checks import (
    Check,
    bomb_was_stopped,
    degraded,
    ended_well,
    hog_died_alone,
    in_part,
    refused,
    seen_in_slices,
    seen_on_cores,
    sliced,
    within,
)
from guest import (
    ROOT,
    USER,
    Start,
    Suite,
    as_cgroup_setup_says,
    as_user,
    in_allocation,
    in_container,
    in_service,
    in_user_scope,
    logged_in,
    until,
    without_session,
    without_systemd,
)

GONE_S = {"kvm": 2.0, "qemu": 60.0}
"""Nothing may be left after 2 s; an emulated processor is 12 to 20 times slower, or more. The time taken is printed."""
MOMENTS = {"kvm": 20, "qemu": 6}
DELEGATED = in_service("Delegate=yes", "TasksMax=infinity")
FEW_TASKS = in_service("Delegate=yes", "TasksMax=600")
HOG = {"--deed": "hog", "--who": 0}
BOMB = {"--deed": "bomb", "--who": 0}
NEVER_ENDING = {"--number": 1000, "--repeat": 1000}


@dataclass(frozen=True)
class Row:
    name: str
    start: Start
    check: Check
    """Checks the ended suite or, in a row whose runner is killed, the state just before that."""
    flags: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    words: dict[str, Any] = field(default_factory=dict)
    before: Callable[[], object] = lambda: None
    kill: bool = False
    design: str = ""
    """The design whose launches are ended at random moments, in a row that names one."""
    core: bool = False
    """Whether it is a row of every CI run."""


def nothing_wrong(suite: Suite) -> Iterator[str]:
    """Check that an ended launch shows the user no traceback."""
    if "Traceback" in suite.said:
        yield "it shows a traceback"


@functools.cache
def delegate_cpusets() -> None:
    """Run the script that the remedy names; then the user logs in again."""
    cgroup_setup()
    uid = pwd.getpwnam(USER).pw_uid
    subprocess.run(["systemctl", "restart", f"user@{uid}.service"], check=True)
    guest.add_user()


def make_subtree() -> None:
    """Run the script where systemd is hidden."""
    cgroup_setup(before=f"{guest.HIDE} && ")


def cgroup_setup(before: str = "") -> None:
    line = f"{before}{ROOT}/cgroup_setup.sh --user {USER}"
    subprocess.run(["unshare", "--mount", "sh", "-c", line], stdout=subprocess.DEVNULL, check=True)


RUN = (sys.executable, str(ROOT / "run.py"))
V2_CHECKS = (sys.executable, str(ROOT / "tests/isolation/v2_checks.py"))
REMEDY = ("sudo ./cgroup_setup.sh", "Delegate=", "systemctl edit user@")
AGAIN = ("delegated from the next login on", "systemctl restart user@")
STEPS = ("sh", "-c", "i=0; while :; do i=$((i+1)); echo step $i; sleep 0.1; done")
COUNTED = ("--reserve", "384M", "--count-line", "^step", "--budget", "10")

UNDELEGATED_ROWS = (
    Row("user, required", logged_in, refused(4, *REMEDY), ("--isolation", "require"), core=True),
    Row("user, v2 without cpusets", as_user, refused(4, *REMEDY), ("--isolation", "v2"), core=True),
    Row("user, auto", as_user, in_part("Delegate="), core=True),
    Row(
        "user, before the new login",
        as_user,
        refused(4, *AGAIN),
        ("--isolation", "require"),
        before=cgroup_setup,
        core=True,
    ),
)
ROOT_ROWS = (
    Row("root, delegated service", DELEGATED, sliced("v2"), core=True),
    Row(
        "root, four users",
        DELEGATED,
        sliced("v2", [[0], [1], [2], [3]], ("completed",) * 4),
        ("--users", "4", "--baseline", "none"),
    ),
    Row("root, memory hog", DELEGATED, hog_died_alone("v2"), words=HOG, core=True),
    Row("root, fork bomb", FEW_TASKS, bomb_was_stopped("v2"), words=BOMB, core=True),
    Row("root, fork bomb that fills memory", DELEGATED, hog_died_alone("v2"), words=BOMB),
    Row("root, runner killed", DELEGATED, seen_in_slices, words=NEVER_ENDING, kill=True, core=True),
    Row("root, any service", in_service(), sliced("v2")),
    Row("root, any service, hog", in_service(), hog_died_alone("v2"), words=HOG),
    Row("root, any service, runner killed", in_service(), seen_in_slices, words=NEVER_ENDING, kill=True),
    Row("root, no systemd", without_systemd, sliced("v2")),
    Row("root, container, cgroups writable", in_container("rw"), sliced("v2")),
    Row("root, container, cgroups read-only", in_container("ro"), degraded("writable")),
    Row("root, container, required", in_container("ro"), refused(4, "writable"), ("--isolation", "require")),
    Row("root, no systemd, runner killed", without_systemd, seen_in_slices, words=NEVER_ENDING, kill=True),
)
USER_ROWS = (
    Row("user, logged in, required", logged_in, sliced("v2"), ("--isolation", "require"), core=True),
    Row("user, v2", as_user, sliced("v2"), ("--isolation", "v2")),
    Row("user, memory hog", as_user, hog_died_alone("v2"), words=HOG, core=True),
    Row("user, runner killed", as_user, seen_in_slices, words=NEVER_ENDING, kill=True, core=True),
    Row("user, every check of v2", in_user_scope("Delegate=yes"), ended_well("ok"), command=V2_CHECKS, core=True),
    Row(
        "user, scope of another's with limits",
        in_user_scope("Delegate=yes", "MemoryMax=1G"),
        sliced("v2"),
        ("--isolation", "v2"),
    ),
    Row("user, scope that is not delegated", in_user_scope(), sliced("v2"), ("--isolation", "v2")),
    Row("user in a batch allocation", in_allocation, within("/plain", [0, 1], "is not delegated to us")),
    Row("user, no systemd, cgroup_setup.sh", as_cgroup_setup_says, sliced("v2"), before=make_subtree),
    Row("user without a session", without_session, degraded("systemd-run failed", "Log in as this user")),
    Row("no session, required", without_session, refused(4, "Log in as this user"), ("--isolation", "require")),
    Row("no session, runner killed", without_session, seen_on_cores, words=NEVER_ENDING, kill=True),
)
MOMENT_ROWS = tuple(
    Row(f"{who}, {design}, any moment", start, nothing_wrong, design=design, core=(who, design) == ("user", "blocks"))
    for who, start in (("root", DELEGATED), ("user", as_user))
    for design in moments.DESIGNS
)
COMMAND_ROWS = (
    Row("user, plan", logged_in, ended_well("isolation v2"), command=(*RUN, "plan")),
    Row("user, doctor", logged_in, ended_well("v2"), command=(*RUN, "doctor", "--quick")),
    Row("user, exec", logged_in, ended_well("by v2"), command=(*RUN, "exec", *COUNTED, "--", *STEPS)),
    Row(
        "user, duet",
        logged_in,
        ended_well("by v2"),
        command=(*RUN, "exec", "--duet", "--repetitions", "1", *COUNTED[:-1], "60", "--", *STEPS, "---", *STEPS),
    ),
    Row(
        "user, capacity",
        logged_in,
        ended_well("by v2", "users  least", statuses=(0, 1)),  # 1: it finds no answer beside other work.
        command=(*RUN, "capacity", *COUNTED[:-1], "120", "--users", "3", "--", *STEPS),
    ),
    Row("user, pairs", logged_in, ended_well("by v2"), ("--pairs", "witness")),
    Row(
        "user, four users in two slices",
        logged_in,
        sliced("v2", [[0, 1], [0, 1], [2, 3], [2, 3]], ("completed",) * 4),
        ("--users", "4", "--slices", "2", "--baseline", "none"),
    ),
    Row(
        "user, run.sh with torch",
        logged_in,
        ended_well("by v2"),
        command=(str(ROOT / "run.sh"), "--reserve", "384M", "--name", "toy_reg", "--baseline", "none", "--budget", "5"),
        before=guest.make_environment,
    ),
)
DELEGATED_ROWS = ROOT_ROWS + USER_ROWS + MOMENT_ROWS + COMMAND_ROWS


def main(argv: list[str]) -> int:
    guest.add_user()
    passed = failed = 0
    for number, row in enumerate(UNDELEGATED_ROWS + DELEGATED_ROWS):
        if argv != ["all"] and not (row.core if argv == ["core"] else row.name in argv):
            continue
        if row in DELEGATED_ROWS:
            delegate_cpusets()
        begin_s = time.monotonic()
        row.before()
        suite = Suite(f"row{number}", row.start, row.command, row.flags, dict(row.words))
        problems = attempted(row, suite)
        gone = "" if suite.gone_s is None else f"{suite.gone_s:6.2f} s"
        took = f"{time.monotonic() - begin_s:6.1f} s"
        print(f"{'FAILED' if problems else 'ok':7}{took}{gone:>10}  {row.name}", flush=True)
        if problems:
            print("\n".join(f"    {problem}" for problem in problems))
            print("\n".join(f"    | {line}" for line in suite.said.splitlines()[-25:]), flush=True)
        failed += bool(problems)
        passed += not problems
        suite.destroy()
    print(f"{passed} passed, {failed} failed", flush=True)
    return int(failed > 0 or not passed)


def attempted(row: Row, suite: Suite) -> list[str]:
    """Return every problem of a row; a field that a record or a note lacks is one as well."""
    problems: list[str] = []
    try:
        problems += attempt(row, suite)
    except (LookupError, TypeError, ValueError, OSError, subprocess.SubprocessError) as error:
        problems.append(f"{type(error).__name__}: {error}")
    return problems


def attempt(row: Row, suite: Suite) -> Iterator[str]:
    """Run the suite; yield the problems of it, and of the things that it left."""
    guest.make_plain()
    before = guest.cgroups()
    if row.design:
        yield from at_moments(row, suite, before)
        return
    with suite.started() as process:
        if row.kill:
            until(lambda: len(suite.notes()) == 2 or process.poll() is not None)
            yield from row.check(suite)
            suite.kill_runner()
            yield from nothing_left(suite, before)
    if not row.kill:
        yield from row.check(suite)
        yield from nothing_left(suite, before)


def at_moments(row: Row, suite: Suite, before: set[Path]) -> Iterator[str]:
    """End launches of a design at so many moments, in all ways in turn; yield the problems, with the seed that repeats
    them."""
    seed, virtual = random.SystemRandom().getrandbits(32), virtualisation()
    chance, frozen, longest_s, limit_s = random.Random(seed), 0, 0.0, GONE_S.get(virtual, 2.0)
    count = int(os.environ.get("MOMENTS") or MOMENTS.get(virtual, 20))
    ends = [*itertools.islice(itertools.cycle(chance.sample(moments.ENDS, len(moments.ENDS))), count)]
    for number, end in enumerate(ends):
        one, after_s = moments.suite_of(f"{suite.name}.{number}", row.start, row.design, end, chance)
        problems = [*moments.ended(one, end, after_s, chance, limit_s), *nothing_left(one, before), *row.check(one)]
        frozen, longest_s = frozen + one.was_frozen, max(longest_s, one.gone_s or 0.0)
        suite.said = one.said
        print(f"       {end}: {'FAILED' if problems else 'ok'}, gone after {one.gone_s or math.inf:.2f} s", flush=True)
        yield from (f"moment {number}, {end}, of seed {seed}: {problem}" for problem in problems)
        one.destroy()
    made = ", ".join(f"{ends.count(end)} {end}" for end in dict.fromkeys(ends))
    print(f"       seed {seed}, moments: {made}; {frozen} while frozen, longest {longest_s:.2f} s", flush=True)


def virtualisation() -> str:
    return subprocess.run(["systemd-detect-virt"], capture_output=True, text=True).stdout.strip()


def nothing_left(suite: Suite, before: set[Path]) -> Iterator[str]:
    """Within the time that the reaper has."""
    left: list[object] = []

    def is_clear() -> bool:
        left[:] = [*suite.processes(), *suite.temporaries(), *sorted(map(str, guest.cgroups() - before))]
        return not left

    limit_s = GONE_S.get(virtualisation(), 2.0)
    suite.gone_s = until(is_clear, limit_s)
    if suite.gone_s is None:
        yield f"after {limit_s} s there is left: {left}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
