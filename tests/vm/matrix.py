"""The rows of isolation on cgroup v2: where a suite is started, and its expected result. Root in the guest runs it.

    python3 matrix.py delegated|undelegated [NAMES...]

The first word says which image this is. Exit status: 0 if every row holds.
"""

from __future__ import annotations

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
    until,
    without_session,
    without_systemd,
)

GONE_S = {"kvm": 2.0, "qemu": 5.0}
"""Nothing may be left after 2 s; an emulated processor is 12 to 20 times slower. The time taken is printed."""
MOMENTS = {"kvm": 20, "qemu": 3}
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
    words: dict[str, Any] = field(default_factory=dict)
    before: Callable[[], object] = lambda: None
    kill: bool = False
    end: str = ""
    """The way in which a launch by blocks is ended, at random moments, in a row that names one."""


def nothing_wrong(suite: Suite) -> Iterator[str]:
    """Check that an ended launch shows the user no traceback."""
    if "Traceback" in suite.said:
        yield "it shows a traceback"


def delegate_cpusets() -> None:
    """Run the script that the remedy names; then the user logs in again."""
    cgroup_setup("--install-drop-in")
    uid = pwd.getpwnam(USER).pw_uid
    subprocess.run(["systemctl", "restart", f"user@{uid}.service"], check=True)
    guest.add_user()


def make_subtree() -> None:
    """Run the script where systemd is hidden."""
    cgroup_setup("", before=f"{guest.HIDE} && ")


def cgroup_setup(words: str, before: str = "") -> None:
    line = f"{before}{ROOT}/cgroup_setup.sh --user {USER} {words}"
    subprocess.run(["unshare", "--mount", "sh", "-c", line], stdout=subprocess.DEVNULL, check=True)


ROOT_ROWS = (
    Row("root, delegated service", DELEGATED, sliced("v2")),
    Row(
        "root, four users",
        DELEGATED,
        sliced("v2", [[0], [1], [2], [3]], ("completed",) * 4),
        ("--users", "4", "--baseline", "none"),
    ),
    Row("root, memory hog", DELEGATED, hog_died_alone("v2"), words=HOG),
    Row("root, fork bomb", FEW_TASKS, bomb_was_stopped("v2"), words=BOMB),
    Row("root, fork bomb that fills memory", DELEGATED, hog_died_alone("v2"), words=BOMB),
    Row("root, runner killed", DELEGATED, seen_in_slices, words=NEVER_ENDING, kill=True),
    Row("root, any service", in_service(), sliced("v2")),
    Row("root, any service, hog", in_service(), hog_died_alone("v2"), words=HOG),
    Row("root, any service, runner killed", in_service(), seen_in_slices, words=NEVER_ENDING, kill=True),
    Row("root, no systemd", without_systemd, sliced("v2")),
    Row("root, container, cgroups writable", in_container("rw"), sliced("v2")),
    Row("root, container, cgroups read-only", in_container("ro"), degraded("writable")),
    Row("root, container, required", in_container("ro"), refused(4, "writable"), ("--isolation", "require")),
    Row("root, no systemd, runner killed", without_systemd, seen_in_slices, words=NEVER_ENDING, kill=True),
)
MOMENT_ROWS = tuple(
    Row(f"{who}, by blocks, any moment, {end}", start, nothing_wrong, end=end)
    for who, start in (("root", DELEGATED), ("user", as_user))
    for end in moments.ENDS
)
USER_ROWS = (
    Row("user, cpusets delegated", as_user, sliced("v2"), ("--isolation", "require")),
    Row("user, v2", as_user, sliced("v2"), ("--isolation", "v2")),
    Row("user, memory hog", as_user, hog_died_alone("v2"), words=HOG),
    Row("user, runner killed", as_user, seen_in_slices, words=NEVER_ENDING, kill=True),
    Row("user in a batch allocation", in_allocation, within("/plain", [0, 1], "is not delegated to us")),
    Row("user, no systemd, cgroup_setup.sh", as_cgroup_setup_says, sliced("v2"), before=make_subtree),
    Row("user without a session", without_session, degraded("systemd-run failed", "Log in as this user")),
    Row("no session, required", without_session, refused(4, "Log in as this user"), ("--isolation", "require")),
    Row("no session, runner killed", without_session, seen_on_cores, words=NEVER_ENDING, kill=True),
)
UNDELEGATED_ROWS = (
    Row("user, required", as_user, refused(4, "Delegate=", "systemctl edit user@"), ("--isolation", "require")),
    Row("user, v2", as_user, refused(4, "Delegate=", "systemctl edit user@"), ("--isolation", "v2")),
    Row("user, auto", as_user, in_part("Delegate=")),
    Row("user, after cgroup_setup.sh", as_user, sliced("v2"), ("--isolation", "require"), before=delegate_cpusets),
)
ROWS = {"delegated": ROOT_ROWS + USER_ROWS + MOMENT_ROWS, "undelegated": UNDELEGATED_ROWS}


def main(argv: list[str]) -> int:
    image, *names = argv
    guest.add_user()
    failed = 0
    for number, row in enumerate(ROWS[image]):
        if names and row.name not in names:
            continue
        begin_s = time.monotonic()
        row.before()
        suite = Suite(f"row{number}", row.start, row.flags, dict(row.words))
        problems = attempted(row, suite)
        gone = "" if suite.gone_s is None else f"{suite.gone_s:6.2f} s"
        took = f"{time.monotonic() - begin_s:6.1f} s"
        print(f"{'FAILED' if problems else 'ok':7}{took}{gone:>10}  {row.name}", flush=True)
        if problems:
            failed += 1
            print("\n".join(f"    {problem}" for problem in problems))
            print("\n".join(f"    | {line}" for line in suite.said.splitlines()[-25:]), flush=True)
        suite.destroy()
    print(f"{failed} rows failed" if failed else "every row holds", flush=True)
    return int(failed > 0)


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
    if row.end:
        yield from at_moments(row, suite, before)
        return
    with suite.started() as process:
        if row.kill:
            until(lambda: len(suite.notes()) == 2 or process.poll() is not None, 200)
            yield from row.check(suite)
            suite.kill_runner()
            yield from nothing_left(suite, before)
    if not row.kill:
        yield from row.check(suite)
        yield from nothing_left(suite, before)


def at_moments(row: Row, suite: Suite, before: set[Path]) -> Iterator[str]:
    """End a launch by blocks at so many moments; yield the problems, with the seed that repeats them."""
    seed, virtual = random.SystemRandom().getrandbits(32), virtualisation()
    chance, frozen, longest_s = random.Random(seed), 0, 0.0
    for number in range(int(os.environ.get("MOMENTS") or MOMENTS.get(virtual, 20))):
        one = Suite(f"{suite.name}.{number}", row.start, words=moments.words(row.end, chance))
        problems = [*moments.ended(one, row.end, chance, GONE_S.get(virtual, 2.0)), *nothing_left(one, before)]
        problems += [*row.check(one)]
        frozen, longest_s = frozen + one.was_frozen, max(longest_s, one.gone_s or 0.0)
        suite.said = one.said
        yield from (f"moment {number} of seed {seed}: {problem}" for problem in problems)
        one.destroy()
    print(f"       {number + 1} moments of seed {seed}, {frozen} while frozen, longest {longest_s:.2f} s", flush=True)


def virtualisation() -> str:
    return subprocess.run(["systemd-detect-virt"], capture_output=True, text=True).stdout.strip()


def nothing_left(suite: Suite, before: set[Path]) -> Iterator[str]:
    """Within the time that the reaper has."""

    def left() -> list[object]:
        return [*suite.processes(), *suite.temporaries(), *sorted(map(str, guest.cgroups() - before))]

    limit_s = GONE_S.get(virtualisation(), 2.0)
    suite.gone_s = until(lambda: not left(), limit_s)
    if suite.gone_s is None:
        yield f"after {limit_s} s there is left: {left()}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
