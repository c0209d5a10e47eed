"""How a tenant ended, from what was seen of it: every outcome of a record is decided here."""

from __future__ import annotations

import re
from pathlib import Path

from cotenant.launch.tenant import Tenant, signal_name
from cotenant.results.said import said

NEAR_LIMIT = 0.99
MESSAGE_LIMIT = 2000
# What Python says of an import at the top of a program, before that could say anything itself.
_MISSING = re.compile(r"ModuleNotFoundError: No module named '(?P<name>[\w.]+)'$")


def outcome_of(tenant: Tenant, host_oom_kills: int) -> tuple[str, str]:
    """Return (outcome, message) of a tenant that has ended. The first that applies counts:

    the slice's out-of-memory counter (a killed data-loader worker leaves its parent exiting with 0), the first reason
    it gave or the runner had to kill it, its exit status, and at last its losses.
    """
    if tenant.after.oom_kills:
        return _out_of_memory(tenant)
    if tenant.reason is not None:
        outcome, message = tenant.reason
        return outcome, message[:MESSAGE_LIMIT]
    if tenant.status == 0 and (not tenant.joined or tenant.all_ranks("record")):
        return _finished(tenant)
    return _died(tenant, host_oom_kills)


def _out_of_memory(tenant: Tenant) -> tuple[str, str]:
    limit, peak = tenant.read_back.memory_bytes, tenant.after.memory_peak_bytes
    if limit is not None and peak is not None and peak < NEAR_LIMIT * limit:
        return "host_out_of_memory", (
            f"The kernel killed a process of it while its slice used at most {_gib(peak)} of {_gib(limit)}: "
            "the host itself was out of memory. Use a larger --reserve."
        )
    return "out_of_memory", (
        f"It needed more than the {_gib(limit or 0)} of its slice, and the kernel killed a process of it. "
        f"{_half_batch(tenant)}"
    )


def _half_batch(tenant: Tenant) -> str:
    words = tenant.order.command
    for flag in ("--batch-size", "-b"):
        if flag in words[:-1] and words[words.index(flag) + 1].isdecimal():
            asked = int(words[words.index(flag) + 1])
            if asked > 1:
                return f"Try half the batch: -- {flag} {asked // 2}"
    return "Give it less to hold, or fewer tenants with --users."


def _finished(tenant: Tenant) -> tuple[str, str]:
    parts = [said(rank.record) for rank in tenant.ranks.values() if rank.record]
    if bad := sum(part.losses_non_finite for part in parts):
        checked = sum(part.losses_checked for part in parts)
        return "nan", f"{bad} of {checked} losses were not finite."
    return "completed", ""


def _died(tenant: Tenant, host_oom_kills: int) -> tuple[str, str]:
    status = tenant.status
    assert status is not None
    if status == -9 and host_oom_kills:
        return "host_out_of_memory", "It was killed while the host ran out of memory. Use a larger --reserve."
    tail = tenant.log_tail()
    if missing := _MISSING.search(tail):
        package = missing["name"].partition(".")[0]
        return "missing_package", f"The package '{package}' is missing. pip install {package}"
    left = "before its record was complete, " if status == 0 else ""
    return "failed", f"It ended {left}with {signal_name(status)}. Its log ends: {tail}"


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"


def host_oom_kills() -> int:
    """Return how many processes the kernel has killed for memory since boot, anywhere on this host."""
    for line in Path("/proc/vmstat").read_text().splitlines():
        name, _, count = line.partition(" ")
        if name == "oom_kill":
            return int(count)
    return 0
