"""How a tenant ended, from what was seen of it: every outcome of a record is decided here."""

from __future__ import annotations

import re
from pathlib import Path

from cotenant.launch.memory import HostKills, out_of_memory
from cotenant.launch.tenant import Tenant, signal_name
from cotenant.results.said import said

MESSAGE_LIMIT = 2000
# What Python says of an import at the top of a program, before that could say anything itself.
_MISSING = re.compile(r"ModuleNotFoundError: No module named '(?P<name>[\w.]+)'$")


def outcome_of(tenant: Tenant, host: HostKills) -> tuple[str, str]:
    """Return (outcome, message) of a tenant that has ended. The first that applies counts:

    that the kernel killed a process of it for memory (a killed data-loader worker leaves its parent exiting with 0),
    the first reason it gave or the runner had to kill it, its exit status, and at last its losses.
    """
    if (ended := out_of_memory(tenant, host)) is not None:
        return ended
    if tenant.reason is not None:
        outcome, message = tenant.reason
        return outcome, message[:MESSAGE_LIMIT]
    if tenant.status == 0 and (not tenant.joined or tenant.all_ranks("record")):
        return _finished(tenant)
    return _died(tenant)


def _finished(tenant: Tenant) -> tuple[str, str]:
    parts = [said(rank.record) for rank in tenant.ranks.values() if rank.record]
    if bad := sum(part.losses_non_finite for part in parts):
        checked = sum(part.losses_checked for part in parts)
        return "nan", f"{bad} of {checked} losses were not finite."
    return "completed", ""


def _died(tenant: Tenant) -> tuple[str, str]:
    status = tenant.status
    assert status is not None
    tail = tenant.log_tail()
    if missing := _MISSING.search(tail):
        package = missing["name"].partition(".")[0]
        return "missing_package", f"The package '{package}' is missing. pip install {package}"
    left = "before its record was complete, " if status == 0 else ""
    return "failed", f"It ended {left}with {signal_name(status)}. Its log ends: {tail}"


def host_oom_kills() -> int:
    """Return how many processes the kernel has killed for memory since boot, anywhere on this host."""
    for line in Path("/proc/vmstat").read_text().splitlines():
        name, _, count = line.partition(" ")
        if name == "oom_kill":
            return int(count)
    return 0
