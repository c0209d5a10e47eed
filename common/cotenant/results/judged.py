"""What only several records together can say: of the tenants of a launch, and of the launches before it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cotenant.findings.launch_rules import findings_together
from cotenant.results.record import Record
from cotenant.results.scaled import with_efficiency


def judged(launch: Sequence[Record], earlier: Sequence[Record]) -> list[Record]:
    """Return the records of one launch with what stands out beside each other and beside `earlier` launches."""
    told = [with_efficiency(record, earlier) for record in launch]
    return [
        msgspec.structs.replace(record, findings=[*record.findings, *more]) if more else record
        for record, more in zip(told, findings_together(told, earlier), strict=True)
    ]
