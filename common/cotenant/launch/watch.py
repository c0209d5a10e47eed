"""How a tenant ended, from what was seen of it: every outcome of a record is decided here."""

from __future__ import annotations

import re
import signal

from cotenant.launch.memory import HostKills, out_of_memory
from cotenant.launch.rank import Rank
from cotenant.launch.tenant import Reason, Tenant, signal_name
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
    if status is None:
        return "failed", f"It could not be ended: {tenant.stuck}."
    tail = tenant.log_tail()
    if missing := _MISSING.search(tail):
        package = missing["name"].partition(".")[0]
        return "missing_package", f"The package '{package}' is missing. pip install {package}"
    how = "was" if status < 0 else "ended with" if status else "ended before its record was complete, with"
    return "failed", f"It {how} {signal_name(status)}. {_said_of(tail)}"


def said_of_failure(tenant: Tenant, rank: Rank, outcome: str, message: str) -> Reason:
    """Return what one process says of its failure; of several it is named, and its log speaks where it has no word."""
    if rank.world == 1:
        return outcome, message
    log = f". {_log_of(tenant, rank)}" if outcome == "failed" else ""
    return outcome, f"{rank.name}: {message.removesuffix('.') if log else message}{log}"


def rank_death(tenant: Tenant, rank: Rank, status: int | None) -> Reason | None:
    """Return why the end of one of several processes fails its tenant, or None where it has a record and is content.

    `status` is None where it is not known. A launcher ends those that are left by SIGTERM: that is no cause.
    """
    if status == -signal.SIGTERM or (rank.record is not None and not status):
        return None
    how = "ended" if status is None else f"{'was' if status < 0 else 'ended with'} {signal_name(status)}"
    when = " before its record was complete" if rank.record is None else ""
    return "failed", f"{rank.name} {how}{when}. {_log_of(tenant, rank)}"


def _log_of(tenant: Tenant, rank: Rank) -> str:
    return _said_of(tenant.log_tail(rank.number))


def _said_of(tail: str) -> str:
    return f"Its log ends: {tail}" if tail else "Its log is empty."
