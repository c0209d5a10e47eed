"""A tenant's rate beside the others over its rate alone in the same slice: what neighbours cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cotenant.report.said import tenant_of
from cotenant.results.detail import Detail
from cotenant.results.launches import LaunchRate, difference_of, said_of_difference, work_of
from cotenant.results.row import Row
from cotenant.stats.interference import Ratio, ratio

NO_SLICES = "none"
BESIDE = ("tenants", "isolation", "device")
"""In what launches together and alone may differ: there is one tenant, and both forms of together have one alone.

Tenants may have different devices; that each has its own again is what equal slices say.
"""

Rates = dict[int, float]
"""Items per second, by uid."""


@dataclass(frozen=True, slots=True)
class Side:
    """Rates of launches: of the node, which is the sum of its tenants, and of each of these."""

    node: Rates
    tenants: Mapping[str, Rates]


@dataclass(frozen=True, slots=True)
class Interference:
    """Together over alone, of the node and of its tenants; a tenant without a launch alone has none."""

    node: Ratio | None
    tenants: Mapping[str, Ratio]


def together(members: Iterable[Detail], launches: Iterable[LaunchRate]) -> Side:
    """Return the rates of a job's launches."""
    return Side({one.run_id: one.rate for one in launches}, _by_tenant(members))


def sliced(isolation: str) -> bool:
    """Whether a tenant of this isolation has a slice, enforced in whole or in part."""
    return isolation not in ("", NO_SLICES)


def alone(solos: Sequence[Detail], members: Sequence[Detail]) -> tuple[Side, str]:
    """Return the rates of solo launches that count, and the reasons why there is none, or why some do not.

    They have to be of the work and of the slices of the `members`. The node's is known of a uid in which every tenant
    of the members has one.
    """
    counted = [one for one in solos if _counts(one.row)]
    beside = {tenant_of(one.row): one for one in members}
    reasons = {id(one): unlike([beside.get(tenant_of(one.row), one), one]) for one in counted}
    like = [one for one in counted if reasons[id(one)] is None]
    if not like:
        return Side({}, {}), next(iter(reasons.values()), None) or ("no launch has a rate" if solos else "")
    if (mixed := unlike([*members, *like])) is not None:
        return Side({}, {}), mixed
    tenants = _by_tenant(like)
    wanted = beside.keys()
    uids = set.intersection(*(set(tenants.get(who, ())) for who in wanted)) if wanted else set()
    others: dict[str, dict[str, None]] = defaultdict(dict)
    for one in counted:
        if (reason := reasons[id(one)]) is not None:
            others[reason][tenant_of(one.row)] = None
    said = "; ".join(f"{reason} (tenant {', '.join(who)})" for reason, who in others.items())
    return Side({uid: sum(tenants[who][uid] for who in wanted) for uid in sorted(uids)}, tenants), said


def interference(over: Side, under: Side) -> Interference | None:
    """Return rates together over rates alone; None where nobody has both."""
    found = {who: ratio(rates, under.tenants.get(who, {})) for who, rates in over.tenants.items()}
    known = {who: one for who, one in found.items() if one is not None}
    return Interference(ratio(over.node, under.node), known) if known else None


def unlike(details: Collection[Detail]) -> str | None:
    """Return in what records differ, so that no ratio of their rates is one; isolation and number of tenants aside."""
    found = difference_of([replace(work_of(one.row), benchmark=one.work) for one in details], BESIDE)
    enforced = sorted({one.row.isolation for one in details if sliced(one.row.isolation)})
    if found is None and len(enforced) > 1:
        found = "isolation", " and ".join(enforced)
    if found is not None:
        return said_of_difference(*found)
    slices: dict[str, set[str]] = defaultdict(set)
    for one in details:
        if one.slice:
            slices[tenant_of(one.row)].add(one.slice)
    return "different slices" if any(len(same) > 1 for same in slices.values()) else None


def _counts(row: Row) -> bool:
    """Whether a launch that is this row alone has a rate."""
    good = row.completed and not row.invalid and not row.losses_non_finite
    return good and row.rate is not None and row.tenants in (None, 1)


def _by_tenant(details: Iterable[Detail]) -> dict[str, Rates]:
    found: dict[str, Rates] = defaultdict(dict)
    for one in details:
        if one.row.rate is not None:
            found[tenant_of(one.row)][one.row.run_id] = one.row.rate
    return dict(found)
