"""The table at the end of a suite: every number with its n and its interval.

The same at every width from 80 columns on; only what is longer than that is folded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from rich.console import Console
from rich.text import Text

from cotenant.finding import Finding
from cotenant.report.efficiency import efficiency_lines
from cotenant.report.numbers import ABSENT, at_most, interval, percent, rate
from cotenant.report.reader import may_leave
from cotenant.results.record import SOLO, Record
from cotenant.stats.tenants import fairness
from cotenant.text import printable

COLUMNS = ("tenant", "rate", "95 % interval", "n", "spread", "overlap", "outcome")
PLACES = 4
STYLES = {"PASSED": "green", "error": "bold red", "warning": "yellow", "info": "dim"}


def print_suite(
    records: Sequence[Record],
    verbose: bool = False,
    console: Console | None = None,
    told: Collection[Finding] = (),
) -> None:
    """Print a row per tenant and, below it, what is to be known about the numbers and has not been `told` before."""
    console = console or Console()
    with may_leave():
        below = [*efficiency_lines(records), *finding_lines(records, verbose, told)]
        for line in [*table_lines(records, console.width), *below]:
            # Off a terminal there is no width to fit: a line of a file is as long as what it says.
            console.print(line, soft_wrap=not console.is_terminal)


def table_lines(records: Sequence[Record], width: int = 80) -> Iterator[Text]:
    """Yield the header, and per launch its own line and a row per tenant."""
    rows = [_row(record) for record in records]
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    yield Text(_aligned(COLUMNS, widths), "bold")
    shared: list[Record] = []
    for _, group in groupby(zip(records, rows, strict=True), key=lambda pair: _launch(pair[0])):
        launch = list(group)
        members = [record for record, _ in launch]
        yield _heading(members, width, shared)
        if not members[0].solo:
            shared = members
        for _, row in launch:
            line = _aligned(row, widths)
            style = STYLES.get(row[-1], "bold red")
            yield Text.assemble(line.removesuffix(row[-1]), (row[-1], style))


def finding_lines(records: Sequence[Record], verbose: bool = False, told: Collection[Finding] = ()) -> Iterator[Text]:
    """Yield failures with their messages and, once each, the findings; information and the `told` only if asked for."""
    for record in records:
        if not record.completed:
            where = f"{printable(record.name)} tenant {record.tenant}: "
            yield Text.assemble((where, "bold"), f"{record.outcome}: {printable(record.message)}".removesuffix(": "))
    said: dict[tuple[str, str, str], list[str]] = {}
    for record in records:
        for finding in record.findings:
            if verbose or (finding.severity != "info" and finding not in told):
                key = (finding.severity, finding.sentence, finding.remedy)
                said.setdefault(key, []).append(f"{printable(record.name)}/{record.tenant}")
    for (severity, sentence, remedy), places in sorted(said.items(), key=lambda item: list(STYLES).index(item[0][0])):
        more = f" and {len(places) - PLACES} more" if len(places) > PLACES else ""
        text = printable(f"{sentence} {remedy}".strip())
        where = f"  [{', '.join(places[:PLACES])}{more}]"
        yield Text.assemble((f"{severity}: ", STYLES[severity]), text, (where, "dim"))


def _row(record: Record) -> tuple[str, ...]:
    numbers = record.statistics
    outcome = "INVALID" if record.invalid else "PASSED" if record.completed else record.outcome
    shown = (ABSENT,) * 4
    if numbers is not None:
        span = interval(*numbers.interval) if numbers.interval else "n too small"
        shown = (rate(numbers.median), span, str(numbers.n), percent(numbers.robust_spread))
    overlap = at_most(record.rendezvous.overlap) if record.rendezvous else ABSENT
    return (str(record.tenant), *shown, overlap, outcome)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """All to the right but the last, which is as long as it is."""
    right = [cell.rjust(width) for cell, width in zip(cells[:-1], widths[:-1], strict=True)]
    return "  ".join([*right, cells[-1]])


def _launch(record: Record) -> tuple[str, str]:
    """The launches of one tenant alone stand below each other, as the tenants of one launch do."""
    return (record.name, "" if record.solo else record.start_time)


def _heading(launch: Sequence[Record], width: int, shared: Sequence[Record]) -> Text:
    """What belongs to all tenants of a launch; on a line of its own where the job's name leaves no room.

    `shared` is the last launch of all tenants, beside which those of one tenant alone stand.
    """
    first = launch[0]
    name = printable(first.name)
    unit = next((f"  {printable(record.unit)}/s" for record in launch if record.unit), "")
    more = _kept(launch, shared) if first.solo else _fairness(launch)
    facts = f"{unit}  isolation {first.isolation.backend}{more}"
    return Text.assemble((name, "bold"), facts if len(name + facts) <= width else f"\n{facts}")


def _fairness(launch: Sequence[Record]) -> str:
    """Say how evenly two or more tenants were served, where each was measured beside all the others."""
    if len(launch) < 2:
        return ""
    rates = [record.statistics.median for record in launch if record.statistics and not record.invalid]
    if len(rates) < len(launch) or ABSENT in map(rate, rates):
        return f"  fairness {ABSENT}"
    found = fairness(rates)
    slowest = launch[found.slowest].tenant
    return f"  fairness {found.jain:.4f}  worst/best {found.worst_over_best:.3f} (tenant {slowest})"


def _kept(solos: Sequence[Record], shared: Sequence[Record]) -> str:
    """Say what tenants keep of their rates alone, where each was measured alone and beside the others."""
    alone = {one.tenant: one.statistics.median for one in solos if one.statistics and not one.invalid}
    beside = {one.tenant: one.statistics.median for one in shared if one.statistics and not one.invalid}
    said = "  together/alone "
    of_this = bool(shared) and solos[0].name == shared[0].name + SOLO and len(beside) == len(shared)
    if not of_this or beside.keys() != alone.keys() or ABSENT in map(rate, [*alone.values()]):
        return said + ABSENT
    kept = {tenant: beside[tenant] / alone[tenant] for tenant in alone}
    worst = min(kept, key=lambda tenant: kept[tenant])
    return f"{said}{sum(beside.values()) / sum(alone.values()):.3f}  worst {kept[worst]:.3f} (tenant {worst})"
