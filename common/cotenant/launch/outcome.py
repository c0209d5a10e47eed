"""Decides the ending of every tenant, from the runner's facts about it."""

from __future__ import annotations

import re
import signal
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from cotenant.checkout import CHECKOUT, INSTALLED
from cotenant.errors import EXIT_GONE_ON, EXIT_NOT_MET, EXIT_USAGE
from cotenant.isolation.backend import Counters, NotExecutableError, NotIsolatedError, ReadBack
from cotenant.launch.alone import WentOn
from cotenant.launch.command import BATCH_FLAGS, WORKERS_FLAGS
from cotenant.launch.conductor import Conducted
from cotenant.launch.endings import Ending
from cotenant.launch.inbox import FailedMessage
from cotenant.launch.memory import out_of_memory
from cotenant.launch.rank import Go, Rank, RankPhase
from cotenant.launch.tenant import BETWEEN_LINES, Tenant, TenantSpec, signal_name
from cotenant.results.told import tenant_part
from cotenant.stats.tenants import Reading, Span
from cotenant.suite.variables import flag_name, is_flag

MESSAGE_LIMIT = 2000
LOG_ENDS = "Its log ends: "
_PORT_TAKEN = re.compile(r"EADDRINUSE|address already in use", re.IGNORECASE)
_OTHER_PORT = "Its port was taken: give each user its own, by $MASTER_PORT or {user}, as in --port 2950{user}."
_NODES = {EXIT_NOT_MET: "node_lost", EXIT_GONE_ON: "aborted"}
"""The outcomes, by exit status, of ranks that other nodes have not met, or have gone on without."""
# Python's message for a failed import at the top of a program, before it could send a message.
_MISSING = re.compile(r"ModuleNotFoundError: No module named '(?P<name>[\w.]+)'$")


@dataclass(frozen=True, slots=True)
class TenantResult:
    """The result of one tenant: its spec, outcome, the messages of its ranks, and the kernel's counters."""

    spec: TenantSpec
    outcome: str
    message: str
    ranks: dict[int, Rank] = field(default_factory=dict)
    read_back: ReadBack = field(default_factory=ReadBack)
    before: Counters = field(default_factory=Counters)
    after: Counters = field(default_factory=Counters)
    refused: bool = False
    """True if it failed before READY but after its hello, or with exit status 2, as with a refused argument."""


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """The results of all tenants, in order, and their common facts; `gos` holds each tenant's GO by its number.

    `left_behind` names a slice or process that could not be removed at the end; `changes` are the differences of slices
    from their plan at the last DONE, or before the tenants' end. Both are usually empty. `killed_outside` counts the
    kernel's kills for memory outside of the slices. `work` are the readings of each tenant's processor time until
    `stop_ns`, the time of the last DONE, 0 without one.
    """

    tenants: tuple[TenantResult, ...]
    started: datetime
    ended: datetime
    gos: Mapping[int, Go] = field(default_factory=dict)
    meters: dict[str, Any] = field(default_factory=dict)
    left_behind: str = ""
    changes: tuple[str, ...] = ()
    stop_ns: int = 0
    work: Mapping[int, Sequence[Reading]] = field(default_factory=dict)
    conducted: Conducted | None = None
    """Its blocks as they were carried out; None if it had none."""
    unconducted: str = ""
    """The reason why it had no blocks although they were requested."""
    went_on: WentOn | None = None
    """The turns alone at its end; None if it had none."""
    span: Span | None = None
    """In a part of a launch, the time around its observations."""
    killed_outside: int = 0


def result_of(tenant: Tenant, killed_outside: int) -> TenantResult:
    """Return the result of an ended tenant in a launch with `killed_outside` kills for memory outside its slices."""
    ending = ending_of(tenant, killed_outside)
    was_ready = any(rank.ready is not None for rank in tenant.ranks.values())
    refused = ending.outcome == "failed" and not was_ready and (tenant.joined or tenant.status == EXIT_USAGE)
    seen = (tenant.ranks, tenant.read_back, tenant.before, tenant.after, refused)
    return TenantResult(tenant.spec, ending.outcome, ending.message, *seen)


def refused_word(result: LaunchResult, typed: Collection[str]) -> str:
    """Return the message of a tenant that refused one of the `typed` words, and names it; "" without one.

    A wrong argument of the job file is not among these words: it fails its own cells only.
    """
    flags = {flag_name(word) for word in typed if is_flag(word)}
    flags |= {name for names in (BATCH_FLAGS, WORKERS_FLAGS) if flags.intersection(names) for name in names}
    named = [rf"(?<![\w-]){re.escape(flag)}(?![\w-])" for flag in flags]
    named += [f"'{re.escape(word)}'" for word in typed if not is_flag(word)]
    for tenant in result.tenants:
        if tenant.refused and named:
            sentence, _, tail = tenant.message.partition(LOG_ENDS)
            if re.search("|".join(named), sentence):
                return sentence.strip()
            # Programs print the flags that they know above their complaint.
            if re.search("|".join(named), tail.rpartition(BETWEEN_LINES)[2]):
                return tenant.message
    return ""


def not_started(specs: Iterable[TenantSpec], culprit: TenantSpec, error: OSError) -> tuple[TenantResult, ...]:
    """Return the results of a launch in which the slice or the command of `culprit` could not be started."""
    outcome, what = ("failed", "could not be started")
    if isinstance(error, NotIsolatedError) and not isinstance(error, NotExecutableError):
        outcome, what = ("not_isolated", "could not be isolated")
    why = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    aborted = f"User {culprit.slice.tenant} {what}: {why}"
    return tuple(
        TenantResult(spec, outcome, f"{why}.") if spec is culprit else TenantResult(spec, "aborted", aborted)
        for spec in specs
    )


def ending_of(tenant: Tenant, killed_outside: int) -> Ending:
    """Return the ending of a tenant that has ended; a hint is put before the end of its log."""
    ending = _ending_of(tenant, killed_outside)
    hints = [tenant.listener.misplaced] if ending.outcome != "aborted" and not tenant.joined else []
    if ending.outcome == "failed" and _PORT_TAKEN.search(ending.message):
        hints.append(_OTHER_PORT)
    sentence, ends, tail = ending.message.partition(LOG_ENDS)
    return Ending(ending.outcome, " ".join(filter(None, (sentence.rstrip(), *hints, ends + tail))))


def _ending_of(tenant: Tenant, killed_outside: int) -> Ending:
    """Return the ending by the first of these that applies:

    the kernel killed one of its processes for memory (the parent of a killed data-loader worker may exit with 0), the
    first reason that it reported or for which the runner killed it, its exit status, its losses.
    """
    if (memory := out_of_memory(tenant, killed_outside)) is not None:
        return memory
    if tenant.ending is not None:
        return replace(tenant.ending, message=tenant.ending.message[:MESSAGE_LIMIT])
    if tenant.status == 0 and (tenant.spec.follows or tenant.all_ranks(RankPhase.RECORDED)):
        return _finished(tenant)
    if tenant.spec.follows is not None and tenant.status in _NODES:
        return Ending(_NODES[tenant.status], tenant.log_tail().rpartition(BETWEEN_LINES)[2])
    return _died(tenant)


def _finished(tenant: Tenant) -> Ending:
    parts = [tenant_part(rank.record) for rank in tenant.ranks.values() if rank.record]
    if bad := sum(part.losses_non_finite for part in parts):
        checked = sum(part.losses_checked for part in parts)
        return Ending("nan", f"{bad} of {checked} losses were not finite.")
    return Ending("completed", "")


def _died(tenant: Tenant) -> Ending:
    status, tail = tenant.status, tenant.log_tail()
    assert status is not None, "one that cannot be ended has an ending"
    if missing := _MISSING.search(tail):
        package = missing["name"].partition(".")[0]
        # No package index has ours.
        source = ("WHEEL" if INSTALLED else CHECKOUT) if package == "cotenant" else package
        return Ending("missing_package", f"The package '{package}' is missing. pip install {source}")
    early = (
        "ended before its record was complete, with" if tenant.joined else "ended without joining the rendezvous, with"
    )
    how = "was" if status < 0 else "ended with" if status else early
    return Ending("failed", f"It {how} {signal_name(status)}. {_quoted_tail(tail)}")


def failure(tenant: Tenant, rank: Rank, said: FailedMessage) -> Ending:
    """Return a process's report of its failure; one of several is named, with the end of its log if it just failed.

    A process that speaks for ranks elsewhere has named the failed one.
    """
    outcome, message = said.outcome, said.message
    if rank.world == 1 or rank.elsewhere:
        return Ending(outcome, message, rank)
    log = f". {_quoted_tail(tenant.log_tail(rank.number))}" if outcome == "failed" else ""
    return Ending(outcome, f"{rank.name}: {message.removesuffix('.') if log else message}{log}", rank)


def rank_death(tenant: Tenant, rank: Rank, status: int | None) -> Ending | None:
    """Return why the end of one of several processes fails its tenant, or None.

    It does not if the process sent a record and succeeded, has reported a reason, or its tenant already ends. An
    unknown `status` is None. SIGTERM is no cause: a launcher ends the remaining processes by it.
    """
    if rank.phase is RankPhase.FAILED or tenant.is_killed:
        return None
    if status == -signal.SIGTERM or (rank.record is not None and not status):
        return None
    how = "ended" if status is None else f"{'was' if status < 0 else 'ended with'} {signal_name(status)}"
    when = " before its record was complete" if rank.record is None else ""
    return Ending("failed", f"{rank.name} {how}{when}. {_quoted_tail(tenant.log_tail(rank.number))}")


def _quoted_tail(tail: str) -> str:
    return f"{LOG_ENDS}{tail}" if tail else "Its log is empty."
