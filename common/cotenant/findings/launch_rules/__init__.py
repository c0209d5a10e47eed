"""The rules that need several records, one small file a rule.

`check(launch, earlier)` is given the records of one launch's tenants, and those of the launches of the same suite run
before it; it returns findings by their place in `launch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cotenant.finding import Finding
from cotenant.findings.launch_rules import different_work, no_speed_up, same_seed, slow_tenant

if TYPE_CHECKING:
    from cotenant.results.record import Record

LAUNCH_RULES = (different_work, same_seed, slow_tenant, no_speed_up)


def findings_together(launch: Sequence[Record], earlier: Sequence[Record]) -> list[list[Finding]]:
    """Return, for each record of `launch`, what every rule has to say about it."""
    found = [rule.check(launch, earlier) for rule in LAUNCH_RULES]
    return [[of_rule[place] for of_rule in found if place in of_rule] for place in range(len(launch))]
