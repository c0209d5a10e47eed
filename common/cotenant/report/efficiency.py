"""Below a suite's table: what k devices were worth, of every job that ran on several numbers of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from cotenant.report.numbers import ABSENT, rate
from cotenant.results.identity import curves
from cotenant.results.record import Record
from cotenant.stats.scaling import Scaled, scaling
from cotenant.text import printable

COLUMNS = ("devices", "rate", "efficiency", "95 % interval", "n")


def efficiency_lines(records: Sequence[Record]) -> Iterator[Text]:
    """Yield a small table per job with several numbers of devices; n are launches."""
    for (job, _), curve in curves(records).items():
        if len(curve) < 2:
            continue
        rows = [COLUMNS, *map(_row, scaling(curve))]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        yield Text.assemble((printable(job), "bold"), "  efficiency = rate of k devices / (k x rate of one)")
        for index, row in enumerate(rows):
            line = "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            yield Text(line, "bold" if index == 0 else "")


def _row(one: Scaled) -> tuple[str, ...]:
    worth = ABSENT if one.efficiency is None else f"{one.efficiency:.3f}"
    if one.devices == 1 or one.efficiency is None:
        interval = ABSENT
    else:
        interval = "n too small" if one.interval is None else f"{one.interval[0]:.3f}-{one.interval[1]:.3f}"
    return (str(one.devices), rate(one.rate), worth, interval, str(one.launches))
