"""How a tenant ended, from observations of it: every outcome of a record is decided here."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cotenant.isolation.backend import Counters, NotExecutableError, NotIsolatedError, ReadBack
from cotenant.launch.conductor import Conducted
from cotenant.launch.memory import HostKills, out_of_memory
from cotenant.launch.rendezvous import Go, Rank
from cotenant.launch.tenant import Reason, Tenant, TenantSpec, signal_name
from cotenant.nodes.peers import NodeResult
from cotenant.results.build import tenant_part
from cotenant.stats.tenants import Reading

MESSAGE_LIMIT = 2000
# Python's message on a failed import at the top of a program, before that could send anything itself.
_MISSING = re.compile(r"ModuleNotFoundError: No module named '(?P<name>[\w.]+)'$")


@dataclass(frozen=True, slots=True)
class TenantResult:
    """How one tenant ended: its spec, outcome, the messages of its ranks, and the kernel's counters."""

    spec: TenantSpec
    outcome: str
    message: str
    ranks: dict[int, Rank] = field(default_factory=dict)
    read_back: ReadBack = field(default_factory=ReadBack)
    before: Counters = field(default_factory=Counters)
    after: Counters = field(default_factory=Counters)
    origin: dict[str, Any] = field(default_factory=dict)
    unfinished: bool = False
    """It was measured, and ended before the end that it might have come to."""


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """The results of all tenants, in their order, and their common facts; `gos` is each one's GO, by its number.

    Of several nodes the tenant is that of node 0, and `nodes` are the others.
    `left_behind` names what could not be removed after the last of them; `changes` what was no longer as planned at
    the last DONE, or before the tenants' end. Both are empty as a rule. `killed_outside` processes were killed for
    memory outside of the slices. `work` are the readings of each tenant's
    processor time until `stop_ns`, when STOP was sent: 0 where none was.
    """

    tenants: tuple[TenantResult, ...]
    started: datetime
    ended: datetime
    gos: Mapping[int, Go] = field(default_factory=dict)
    meters: dict[str, Any] = field(default_factory=dict)
    left_behind: str = ""
    changes: tuple[str, ...] = ()
    nodes: tuple[NodeResult, ...] = ()
    stop_ns: int = 0
    work: Mapping[int, Sequence[Reading]] = field(default_factory=dict)
    conducted: Conducted | None = None
    """Its schedule of blocks as it was; None where it had none."""
    unconducted: str = ""
    """Why it had none, though one was wanted."""
    killed_outside: int = 0


def result_of(tenant: Tenant, host: HostKills) -> TenantResult:
    """Return the result of a tenant that has ended."""
    outcome, message = outcome_of(tenant, host)
    unfinished = tenant.finishes and tenant.is_asked
    seen = (tenant.ranks, tenant.read_back, tenant.before, tenant.after, tenant.origin, unfinished)
    return TenantResult(tenant.spec, outcome, message, *seen)


def not_started(specs: Iterable[TenantSpec], culprit: TenantSpec, error: OSError) -> tuple[TenantResult, ...]:
    """Return the results of a launch that could not get the slice, or start the command, of `culprit`."""
    outcome, what = ("failed", "could not be started")
    if isinstance(error, NotIsolatedError) and not isinstance(error, NotExecutableError):
        outcome, what = ("not_isolated", "could not be isolated")
    why = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    aborted = f"User {culprit.slice.tenant} {what}: {why}"
    return tuple(
        TenantResult(spec, outcome, f"{why}.") if spec is culprit else TenantResult(spec, "aborted", aborted)
        for spec in specs
    )


def outcome_of(tenant: Tenant, host: HostKills) -> Reason:
    """Return (outcome, message) of a tenant that has ended. The first that applies counts:

    that the kernel killed a process of it for memory (a killed data-loader worker leaves its parent exiting with 0),
    the first reason it gave or the runner had to kill it, its exit status, and at last its losses.
    """
    if (memory := out_of_memory(tenant, host)) is not None:
        return memory
    if tenant.reason is not None:
        outcome, message = tenant.reason
        return outcome, message[:MESSAGE_LIMIT]
    if tenant.status == 0 and tenant.all_ranks("record"):
        return _finished(tenant)
    if tenant.is_asked and tenant.all_ranks("done"):
        return _finished(tenant)  # However it took it, that it was to end.
    return _died(tenant)


def _finished(tenant: Tenant) -> Reason:
    parts = [tenant_part(rank.record) for rank in tenant.ranks.values() if rank.record]
    if bad := sum(part.losses_non_finite for part in parts):
        checked = sum(part.losses_checked for part in parts)
        return "nan", f"{bad} of {checked} losses were not finite."
    return "completed", ""


def _died(tenant: Tenant) -> Reason:
    status = tenant.status
    if status is None:
        return "failed", f"It could not be ended: {tenant.stuck}."
    tail = tenant.log_tail()
    if missing := _MISSING.search(tail):
        package = missing["name"].partition(".")[0]
        return "missing_package", f"The package '{package}' is missing. pip install {package}"
    early = (
        "ended before its record was complete, with" if tenant.joined else "ended without joining the rendezvous, with"
    )
    how = "was" if status < 0 else "ended with" if status else early
    return "failed", f"It {how} {signal_name(status)}. {_quoted_tail(tail)}"


def failure(tenant: Tenant, rank: Rank, outcome: str, message: str) -> Reason:
    """Return one process's report of its failure; one of several is named, with its log where it has no outcome."""
    if rank.world == 1:
        return outcome, message
    log = f". {_quoted_tail(tenant.log_tail(rank.number))}" if outcome == "failed" else ""
    return outcome, f"{rank.name}: {message.removesuffix('.') if log else message}{log}"


def rank_death(tenant: Tenant, rank: Rank, status: int | None) -> Reason | None:
    """Return why the end of one of several processes fails its tenant.

    None where it has a record and is content, where it has reported why, and where its tenant ends already. `status` is
    None where it is not known. A launcher ends those that are left by SIGTERM: that is no cause.
    """
    if rank.failed or tenant.killed or not tenant.alive:
        return None
    if status == -signal.SIGTERM or (rank.record is not None and not status):
        return None
    how = "ended" if status is None else f"{'was' if status < 0 else 'ended with'} {signal_name(status)}"
    when = " before its record was complete" if rank.record is None else ""
    return "failed", f"{rank.name} {how}{when}. {_quoted_tail(tenant.log_tail(rank.number))}"


def _quoted_tail(tail: str) -> str:
    return f"Its log ends: {tail}" if tail else "Its log is empty."
