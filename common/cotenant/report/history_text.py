"""A history for people and for other programs. An absent number is a dash, empty or null, never 0."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime

import msgspec
from rich.table import Table
from rich.text import Text

from cotenant.report.history import Series
from cotenant.report.numbers import ABSENT, interval, rate
from cotenant.report.whole import natural_width
from cotenant.stats.history import Trend
from cotenant.text import printable

BARS = "▁▂▃▄▅▆▇█"
SHOWN = 24
"""So many of the newest launches a sparkline has room for."""
HEADER = ("job", "unit", "n", "first", "last", "last rate", "level", "95 % interval", "of", "trend", "")
LEFT = frozenset({"job", "unit", "trend", ""})
TREND_WIDTH = len("(-12.3 .. -10.1)")
LEGEND = (
    "level: geometric mean of the launches since the last change, with its 95 % t interval (3 and more) and their "
    "number. trend: from the first launch to the last, with its 95 % interval, if chance hardly explains it (p < 0.01)."
)
_COLUMNS = (
    *("suite", "job", "label", "host", "device", "unit", "n", "older", "first", "last", "last_rate", "level"),
    *("level_low", "level_high", "level_n", "trend_ratio", "trend_low", "trend_high", "trend_p", "changes", "lost"),
)


def lines(found: Sequence[Series], width: int) -> Iterator[Table | Text]:
    """Yield a table per host and device, below it changes and launches without a rate, and what the columns mean.

    Where `width` columns are too few for all, the sparklines are left out, and trends wrap.
    """
    for place in dict.fromkeys((one.suite, one.host, one.device) for one in found):
        members = [one for one in found if (one.suite, one.host, one.device) == place]
        suite, host, device = map(printable, place)
        yield Text.assemble((suite or "suite", "bold"), f"  {host or 'an unnamed host'}: {device or 'unknown device'}")
        table = _table(members, HEADER)
        yield table if natural_width(table) <= width else _table(members, HEADER[:-1])
        for one in members:
            yield from _below(one)
        yield Text("")
    if found:
        yield Text(LEGEND, "dim")


def cells(one: Series) -> tuple[str, ...]:
    """Return a series as text, in the order of HEADER."""
    days = [day(start) for start in (one.starts[0], one.starts[-1])] if one.starts else [ABSENT] * 2
    level = one.level
    shown = [ABSENT] * 4
    if level is not None:
        span = interval(*level.interval) if level.interval else "n too small"
        shown = [rate(one.rates[-1]), rate(level.rate), span, str(level.n)]
    unit = f"{printable(one.unit)}/s" if one.unit else ABSENT
    return (name(one), unit, str(one.n), *days, *shown, trend_words(one.trend), sparkline(one.rates))


def name(one: Series) -> str:
    """Return the job's name, with what sets this series apart from others of the job."""
    return printable(f"{one.job} ({one.label})" if one.label else one.job)


def trend_words(found: Trend | None) -> str:
    """Return `-4.1 % (-5.0 .. -3.2)`, or that there is none."""
    if found is None:
        return ABSENT
    if not found.real:
        return f"none (p {found.p:.2f})"
    low, high = found.interval
    return f"{_percent(found.ratio)} % ({_percent(low)} .. {_percent(high)})"


def sparkline(rates: Sequence[float]) -> str:
    """Return a bar per launch, of the newest ones; between the lowest and the highest of them lie all heights."""
    shown = rates[-SHOWN:]
    if len(shown) < 2:
        return ""
    low, high = min(shown), max(shown)
    if low == high:
        return BARS[3] * len(shown)
    return "".join(BARS[round((one / high - low / high) / (1 - low / high) * (len(BARS) - 1))] for one in shown)


def day(start: datetime) -> str:
    return f"{start:%Y-%m-%d}"


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}"


def _table(members: Sequence[Series], header: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in header:
        most = TREND_WIDTH if column == "trend" and header != HEADER else None
        table.add_column(column, justify="left" if column in LEFT else "right", overflow="fold", max_width=most)
    for one in members:
        table.add_row(*map(Text, cells(one)[: len(header)]))
    return table


def _below(one: Series) -> Iterator[Text]:
    for change in one.changes:
        style = "bold red" if change.ratio < 1 else "green"
        why = ", ".join(change.versions) or "no version that its records know is another"
        size = f"{_percent(change.ratio)} % (p {change.p:.2g})"
        yield Text.assemble((f"{name(one)}: ", "bold"), (f"{day(change.start)} {size}", style), f": {printable(why)}")
    changed = {change.start for change in one.changes}
    for update in one.updates:
        if update.start not in changed:
            words = printable(", ".join(update.versions))
            yield Text(f"{name(one)}: {day(update.start)} {words}: no change of the level there", "dim")
    if one.lost:
        yield Text(f"{name(one)}: without a rate {lost_words(one)}", "yellow")
    if one.older:
        yield Text(f"{name(one)}: {one.older} launches before the newest {one.n} are left out", "dim")


def lost_words(one: Series) -> str:
    """Return `3 failed, 1 INVALID`."""
    return ", ".join(f"{count} {printable(outcome)}" for outcome, count in sorted(one.lost.items()))


# For other programs


def as_markdown(found: Sequence[Series]) -> str:
    """Return one table of all series, changes and losses as words."""
    header = ("suite", "host", "device", *HEADER[:-1], "changes", "without a rate")
    rows = [header, tuple("---" for _ in header)]
    for one in found:
        changes = "; ".join(f"{day(change.start)} {_percent(change.ratio)} %" for change in one.changes)
        where = tuple(map(printable, (one.suite, one.host, one.device)))
        rows.append((*where, *cells(one)[:-1], changes, lost_words(one)))
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows) + "\n"


def as_csv(found: Sequence[Series]) -> str:
    """Return a row per series; numbers have all digits, times are ISO 8601."""
    table = io.StringIO()
    writer = csv.DictWriter(table, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(_row, found))
    return table.getvalue()


def _row(one: Series) -> dict[str, str | float]:
    row: dict[str, str | float] = {column: printable(getattr(one, column)) for column in _COLUMNS[:6]}
    row |= {"n": one.n, "older": one.older, "lost": lost_words(one)}
    row["changes"] = "; ".join(f"{change.start.isoformat()} {change.ratio:.4f}" for change in one.changes)
    if one.rates:
        row |= {"first": one.starts[0].isoformat(), "last": one.starts[-1].isoformat(), "last_rate": one.rates[-1]}
    if one.level is not None:
        row |= {"level": one.level.rate, "level_n": one.level.n}
        row |= dict(zip(("level_low", "level_high"), one.level.interval or (), strict=False))
    if one.trend is not None:
        row |= {"trend_ratio": one.trend.ratio, "trend_p": one.trend.p}
        row |= dict(zip(("trend_low", "trend_high"), one.trend.interval, strict=True))
    return row


def as_json(found: Sequence[Series]) -> str:
    """Return everything the history shows, every launch's rate included."""
    content = {"schema": "cotenant-trends-1", "series": [{"n": one.n} | asdict(one) for one in found]}
    return msgspec.json.format(msgspec.json.encode(content), indent=1).decode() + "\n"
