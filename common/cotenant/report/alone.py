"""A tenant's rate beside the others over its rate alone in the same slice: the cost of neighbours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cotenant.frames import pl
from cotenant.results.columns import COUNTS, JOB, TENANT, equal_columns
from cotenant.results.launches import LaunchRecords, difference_of, difference_words, grouped, work_of
from cotenant.results.table import Rows
from cotenant.stats.launches import AcrossLaunches, across_launches, by_uid

NO_SLICES = "none"
BESIDE = ("tenants", "sharers", "share", "device_sharers", "mix", "neighbours", "isolation", "device")
"""The columns in which launches together and alone may differ: a tenant alone shares no processors, and its launch
is compared with launches together in slices and without.

Tenants may have different devices: equal slices show that each tenant had the same device in both launches.
"""

RATE_ENDS = ("interval_low_items_s", "interval_high_items_s")
ALONE = ("baseline", "stands_for", *RATE_ENDS, "warning_findings")
KEPT = ("kept", "kept_low", "kept_high", "kept_rounds")
STEP_TIMES = ("step_p50_ns", "step_p95_ns", "step_p99_ns")
POWER = "device_power_w"
BaselineWord = Literal["", "blocks", "quick", "whole"]

Rates = dict[int, float]
"""Items per second, by uid."""
RecordRow = dict[str, Any]
"""The fields of a record that `rows_of` selects."""
Records = dict[str, dict[int, RecordRow]]
"""Records by tenant and uid."""


@dataclass(frozen=True, slots=True)
class Side:
    """The rates of launches: each tenant's, and the node's, which is their sum; `reason` says why some are missing.

    `baseline` says how tenants ran alone: in blocks of the launches together, in `quick` turns at their end with few
    observations, or in `whole` launches of their own; empty if they did not. `doubts` are the rules of warnings on
    tenants alone, `rows` the records that count.
    """

    node: Rates = field(default_factory=dict)
    tenants: Mapping[str, Rates] = field(default_factory=dict)
    reason: str = ""
    baseline: BaselineWord = ""
    doubts: tuple[str, ...] = ()
    rows: Mapping[str, Mapping[int, RecordRow]] = field(default_factory=dict)

    @property
    def quick(self) -> bool:
        return self.baseline == "quick"

    def of(self, tenant: str | None) -> Rates:
        """Return the rates of a tenant, or of the node."""
        return self.node if tenant is None else self.tenants.get(tenant, {})

    def across(self, tenant: str | None) -> AcrossLaunches | None:
        """Return the rate of a tenant, or of the node, over launches; None without any."""
        rates = self.of(tenant)
        return across_launches([*rates.values()]) if rates else None


def rows_of(records: Rows) -> list[RecordRow]:
    """Return the rows that sides are made of: columns that must be equal, the tenant, its rate, whether it counts."""
    equal = (column.name for column in equal_columns().values())
    plain = {"run_id", "slice", "work", "rate_items_s", *ALONE, *STEP_TIMES, POWER, *equal}
    derived = {"who": TENANT, "job": JOB, "counts": COUNTS & (pl.col("tenants").fill_null(1) == 1)}
    return records.columns(*plain, **derived).to_dicts()


def together(launches: Iterable[LaunchRecords]) -> Side:
    """Return the rates of all launches that have one."""
    node: Rates = {}
    tenants: dict[str, Rates] = defaultdict(dict)
    for launch in launches:
        if launch.rate is not None:
            node[launch.run_id] = launch.rate
            for tenant, rate in zip(launch.tenants, launch.rates, strict=True):
                if rate is not None:
                    tenants[tenant][launch.run_id] = rate
    return Side(node, tenants)


def sliced(isolation: str) -> bool:
    """Return whether a tenant of this isolation has a slice, enforced in whole or in part."""
    return isolation not in ("", NO_SLICES)


def alone(solos: Sequence[RecordRow], members: Sequence[RecordRow]) -> Side:
    """Return the rates of solo launches that count, and why there are none, or why some do not count.

    They need the work and the slices of the `members`. A uid has a node's rate if every tenant of the members has one.
    Quick launches count only if no whole launch does: two kinds of baseline are never mixed.
    """
    kinds: Sequence[BaselineWord] = ("whole", "quick")
    by_kind = grouped(solos, lambda row: "quick" if row["baseline"] == "quick" else "whole")
    sides = [replace(_alone(by_kind[kind], members), baseline=kind) for kind in kinds if kind in by_kind]
    return max(sides, key=lambda side: bool(side.tenants), default=Side())


def alone_in_blocks(members: Rows) -> Side | None:
    """Return the tenants' rates alone, by blocks: the rate together over the kept share; None without blocks."""
    alone_steps = {name: pl.col(f"alone_{name}") for name in STEP_TIMES}
    # Power is known for all blocks together only, not for each tenant alone.
    unknown = {POWER: pl.lit(None, pl.Float64)}
    rate = pl.col("rate_items_s") / pl.col("kept")
    rated = members.columns("run_id", rate, *KEPT, who=TENANT, **alone_steps, **unknown)
    rated = rated.filter(pl.col("rate_items_s").is_not_null().all().over("run_id"))
    if not len(rated):
        return None
    rows: Records = defaultdict(dict)
    node: Rates = defaultdict(float)
    for row in rated.iter_rows(named=True):
        rows[row["who"]][row["run_id"]] = row
        node[row["run_id"]] += row["rate_items_s"]
    return Side(node, _rates(rows), baseline="blocks", rows=rows)


def _rates(rows: Records) -> dict[str, Rates]:
    return {tenant: {uid: row["rate_items_s"] for uid, row in of_tenant.items()} for tenant, of_tenant in rows.items()}


def _alone(solos: Sequence[RecordRow], members: Sequence[RecordRow]) -> Side:
    beside = {row["who"]: row for row in members}
    counted = [row for row in solos if row["counts"]]
    by_reason = grouped(counted, lambda row: unlike([beside.get(row["who"], row), row]))
    others = {reason: dict.fromkeys(row["who"] for row in rows) for reason, rows in by_reason.items() if reason}
    like = by_reason.get(None)
    if not like:
        return Side(reason=next(iter(others), "no launch has a rate"))
    if (mixed := unlike([*members, *like])) is not None:
        return Side(reason=mixed)
    rows: Records = defaultdict(dict)
    for row in like:
        rows[row["who"]][row["run_id"]] = row
        for tenant in row["stands_for"].split(","):
            if tenant in beside:
                rows[tenant][row["run_id"]] = row
    tenants = _rates(rows)
    node = {uid: sum(rates) for uid, rates in by_uid([tenants.get(tenant, {}) for tenant in beside]).items()}
    why = "; ".join(f"{reason} (user {', '.join(users)})" for reason, users in others.items())
    doubts = {rule for row in like for rule in row["warning_findings"].split(",") if rule}
    return Side(node, tenants, why, doubts=tuple(sorted(doubts)), rows=rows)


def unlike(rows: Collection[RecordRow]) -> str | None:
    """Return the difference that forbids a ratio of these records' rates, if any; some may have no slices."""
    # A launch alone has another `unique_id`; `work` is equal if only the name differs.
    works = [work_of(row | {"unique_id": row["work"]}) for row in rows]
    if (difference := difference_of(works, BESIDE)) is not None:
        return difference_words(*difference)
    enforced = sorted({row["isolation"] for row in rows if sliced(row["isolation"])})
    if len(enforced) > 1:
        return difference_words("isolation", " and ".join(enforced))
    slices = {(row["who"], row["slice"]) for row in rows if row["slice"]}
    return "different slices" if len(slices) > len(dict(slices)) else None
