"""Until when a tenant is waited for: to be ready, to be done, to end after STOP, and to end once it has failed."""

from __future__ import annotations

import time
from collections.abc import Sequence

from cotenant.launch.tenant import Limit, Reason, Tenant
from cotenant.launch.terms import Terms

STOP_LIMIT_S = 60.0
FAREWELL_LIMIT_S = 5.0
RANKS_LIMIT_S = 2.0
"""Of several ranks the others wait for the one that failed: nothing is lost when they are not waited for."""


def late(tenants: Sequence[Tenant], terms: Terms, elapsed_s: float, loaded: bool) -> tuple[list[Tenant], Reason] | None:
    """Return who keeps a launch beyond its terms, and what is said of that. `loaded`: GO was said, and STOP was not."""
    behind = [one for one in tenants if not one.all_ranks("done" if loaded else "ready")]
    if elapsed_s >= terms.timeout_s:
        # Those that are not behind end as their neighbours' deaths have it: aborted before GO, kept after it.
        longer = f"It was not finished after {terms.timeout_s:g} s. Give it longer with {terms.timeout_by}."
        return behind, ("timeout", longer)
    if not loaded and elapsed_s >= terms.ready_limit_s and any(one.joined for one in tenants):
        longer = f"It was not ready within {terms.ready_limit_s:g} s. Give it longer with --ready-timeout."
        return behind, ("timeout", longer)
    return None


def after_stop(tenant: Tenant, number: int) -> Limit:
    """Return until when a tenant that steps through `number` batches an observation may write its record."""
    # It may be in the midst of a batch, and of its last one after that.
    limit_s = STOP_LIMIT_S + 3 * max(rank.longest_batch_s(number) for rank in tenant.ranks.values())
    return time.monotonic() + limit_s, ("timeout", f"It did not end within {limit_s:.0f} s after STOP.")


def farewell(tenant: Tenant, reason: Reason) -> Limit:
    """Return until when what is left of a failed tenant may end by itself; an earlier limit is never put off."""
    until_s = time.monotonic() + (RANKS_LIMIT_S if tenant.several else FAREWELL_LIMIT_S)
    return until_s if tenant.limit is None else min(until_s, tenant.limit[0]), reason
