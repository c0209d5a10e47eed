"""The limit of open files: the runner raises its own, tenants have the caller's."""

from __future__ import annotations

import contextlib
import functools
import resource

from cotenant.errors import CotenantError
from cotenant.text import many

PER_USER = 4
"""Descriptors of the runner for each user of a launch: channel, pidfd, listener and first connection."""
RESERVED = 32
"""The runner's descriptors for everything else: 10 were observed, and it reads a few files at once."""
_LIMIT = resource.RLIMIT_NOFILE


@functools.cache
def callers_limits() -> tuple[int, int]:
    """Return the soft and the hard limit with which this process was started."""
    return resource.getrlimit(_LIMIT)


def raise_limit() -> None:
    """Raise this process's soft limit to its hard one, if the kernel allows it."""
    _, hard = callers_limits()
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(_LIMIT, (hard, hard))


def give_callers_limits(pid: int) -> None:
    """Give a child the limits that this process was started with; do nothing if it has ended."""
    if resource.getrlimit(_LIMIT) != callers_limits():
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, _LIMIT, callers_limits())


def check_open_files(users: int) -> None:
    """Raise CotenantError if the hard limit is too low for a launch of this many users."""
    _, hard = callers_limits()
    needed, possible = RESERVED + PER_USER * users, (hard - RESERVED) // PER_USER
    if hard == resource.RLIM_INFINITY or needed <= hard:
        return
    raise CotenantError(
        f"A launch of {users} users needs {needed} open files, and the hard limit (ulimit -Hn) is {hard}: it allows "
        f"{many(max(0, possible), 'user')}.",
        "Use fewer --users, or raise it (/etc/security/limits.conf, LimitNOFILE= of a service, --ulimit nofile= of a "
        "container).",
    )
