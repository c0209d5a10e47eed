"""The reason why a program of `exec` is not ready: its processor time, its output, and the flags that count it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cotenant.launch.tenant import Tenant, followed, log_end
from cotenant.text import many, printable, verb

SEEN_AFTER_S = 30.0
READ_BYTES = 1 << 20
"""The bytes of a log's end whose lines are counted."""
WAYS = (
    r"--count-line '^step (\d+)' counts lines of output, cotenant.measure any loop in Python, and --runs whole runs of "
    "a command that ends: shorten it."
)


def unready(tenant: Tenant) -> str:
    """Return sentences on a program of `exec` that has made no known step, with a remedy; "" for other tenants."""
    foreign = tenant.spec.foreign
    if foreign is None or tenant.joined:
        return ""
    lines = [line for line in re.split(r"[\r\n]", log_end(tenant.logs, tenant.spec.log.name, READ_BYTES)) if line]
    said = f"It has used {_processor_ns(tenant) / 1e9:.1f} s of processor time and written {many(len(lines), 'line')}"
    if not foreign.count_line:
        return f"{said}, and no optimizer of torch has stepped. {WAYS}"
    if foreign.ready_line and not any(re.search(foreign.ready_line, line) for line in lines):
        return f"{said}, none of which matches --ready-line."
    matched = [found for line in lines if (found := re.search(foreign.count_line, line))]
    return f"{said}, {_counted(matched)}"


def _counted(matched: Sequence[re.Match[str]]) -> str:
    """Return the end of a sentence on the lines that --count-line matches."""
    if not matched:
        return "none of which matches --count-line."
    total = matched[-1][1] if matched[-1].re.groups else None
    if total is not None and not _is_number(total):
        remedy = "Have the group match a number, or leave it out: then each line is a step."
        return f"{len(matched)} of which match; their group '{printable(total)}' is no number. {remedy}"
    return f"{len(matched)} of which {verb(len(matched), 'matches', 'match')} --count-line."


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _processor_ns(tenant: Tenant) -> int:
    counted = tenant.live.processor_ns()
    return followed([tenant])[tenant.index].processor_ns() if counted is None else counted
