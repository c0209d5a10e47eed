"""The table at the end of a suite: every number with its n and its interval."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cotenant.results.record import Record
from cotenant.stats.fairness import fairness

ABSENT = "–"


def print_suite(records: Sequence[Record], verbose: bool = False, console: Console | None = None) -> None:
    """Print a row per tenant and, below it, what is to be known about the numbers."""
    # Off a terminal there is no width to fit: a file takes every column whole.
    console = console or Console(width=None if sys.stdout.isatty() else 160)
    console.print(suite_table(records))
    for line in finding_lines(records, verbose):
        console.print(line, soft_wrap=True)


def suite_table(records: Sequence[Record]) -> Table:
    """Return the table: a launch's first row carries what belongs to all its tenants."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("job", "tenant"):
        table.add_column(name, overflow="fold")
    for name in ("rate", "95 % interval", "n", "spread", "fairness", "overlap"):
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("isolation", overflow="fold")
    table.add_column("outcome", overflow="fold")
    for _, group in groupby(records, key=lambda record: (record.name, record.start_time)):
        launch = list(group)
        for record in launch:
            table.add_row(*_row(record, launch))
    return table


def _row(record: Record, launch: Sequence[Record]) -> list[str | Text]:
    numbers = record.statistics
    first = record is launch[0]
    row: list[str | Text] = [record.name if first else "", str(record.tenant)]
    if numbers is None:
        row += [ABSENT] * 4
    else:
        low_high = (
            f"{_rate(numbers.interval[0])} .. {_rate(numbers.interval[1])}" if numbers.interval else "n too small"
        )
        row += [
            f"{_rate(numbers.median)} {record.unit}/s",
            low_high,
            str(numbers.n),
            f"{numbers.robust_spread:.1%}",
        ]
    row.append(_fairness(launch) if first else "")
    row.append(f"{record.rendezvous.overlap:.3f}" if record.rendezvous else ABSENT)
    row.append(record.isolation.backend)
    row.append(_outcome(record))
    return row


def _outcome(record: Record) -> Text:
    if record.invalid:
        return Text("INVALID", style="bold red")
    return Text("PASSED", style="green") if record.completed else Text(record.outcome, style="bold red")


def _fairness(launch: Sequence[Record]) -> str:
    """Return Jain's index over a launch's tenants; of fewer than two measured ones there is none."""
    rates = [record.statistics.median for record in launch if record.statistics and record.completed]
    return f"{fairness(rates).jain:.4f}" if len(rates) == len(launch) > 1 else ABSENT


def _rate(value: float) -> str:
    """Return four significant digits, without an exponent."""
    if value >= 1000:
        return f"{value:,.0f}"
    digits = 1 if value >= 100 else 2 if value >= 10 else 3
    return f"{value:.{digits}f}"


def finding_lines(records: Sequence[Record], verbose: bool) -> list[Text]:
    """Return failures with their messages and, once each, the findings; information only if asked for."""
    lines = [
        Text.assemble((f"{record.name} tenant {record.tenant}: ", "bold"), f"{record.outcome}: {record.message}")
        for record in records
        if not record.completed
    ]
    said: dict[tuple[str, str, str, str], list[str]] = {}
    for record in records:
        for finding in record.findings:
            if verbose or finding.severity != "info":
                key = (finding.severity, finding.rule, finding.sentence, finding.remedy)
                said.setdefault(key, []).append(f"{record.name}/{record.tenant}")
    for (severity, _, sentence, remedy), where in said.items():
        style = {"error": "bold red", "warning": "yellow", "info": "dim"}[severity]
        places = ", ".join(where[:4]) + (f" and {len(where) - 4} more" if len(where) > 4 else "")
        lines.append(Text.assemble((f"{severity}: ", style), f"{sentence} {remedy}".strip(), (f"  [{places}]", "dim")))
    return lines
