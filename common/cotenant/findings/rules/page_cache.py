"""A page-cache policy that did not come true would make cold numbers of warm ones, or the other way round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

NEARLY = 0.95


def check(record: Record) -> Finding | None:
    policy, treated = record.isolation.policies.get("cache"), record.meters.get("input")
    if treated is not None and not treated["files"] and record.completed:
        return Finding(
            "cache_policy",
            "warning",
            f"--cache {policy} found no file to treat: no argument of the benchmark names an input that exists.",
            "Give the input as a path among the arguments (--data PATH), or leave --cache out.",
        )
    if treated is None or treated["cached_bytes"] is None or not treated["size_bytes"]:
        return None
    share = treated["cached_bytes"] / treated["size_bytes"]
    if policy == "warm" and share < NEARLY:
        return Finding(
            "cache_policy",
            "warning",
            f"Only {100 * share:.0f} % of the {treated['size_bytes'] / 2**30:.2f} GiB of input lay in the page cache.",
            "The input is larger than the free memory: use --cache drop, or a smaller data set.",
        )
    if policy == "drop" and share > 1 - NEARLY:
        return Finding(
            "cache_policy",
            "warning",
            f"{100 * share:.0f} % of the input were still in the page cache: other processes have it mapped.",
            "End what else reads this data set.",
        )
    return None
