"""A history as series: launches of equal work on one host and device in the order they ran, and their outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from cotenant.report.grid import (
    Cell,
    Column,
    Grid,
    Measurement,
    RowGroup,
    Words,
    measured_columns,
    number,
    place_columns,
    row,
    text_column,
)
from cotenant.report.numbers import ABSENT, change, rate
from cotenant.results.columns import equal_columns
from cotenant.results.drawn import CHECKOUT, differences
from cotenant.results.history import FIRST_WORDS, HistoryEntry
from cotenant.results.launches import Work, distinguishing_values, grouped
from cotenant.stats.history import LevelChange, Trend, change_points, newest_change, trend
from cotenant.stats.launches import AcrossLaunches, across_launches

SOFTWARE = "software"
"""Launches under different versions of torch stay in one series, since it is to show the effect of an update."""
NEWEST = 1000
"""Most launches that a series describes, the newest ones: a trend compares every pair of them."""


@dataclass(frozen=True, slots=True)
class RateChange:
    """A change of the rate by a factor `ratio` from the launch at `start` on; `p` is its chance without a change.

    `provisional`: `start` is the newest launch, and a second one has to confirm the change. `versions` are the known
    differences in software between that launch and the one before.
    """

    start: datetime
    ratio: float
    p: float
    versions: tuple[str, ...]
    provisional: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """Versions that changed with the launch at `start`, without the checkout's, which may change with every launch."""

    start: datetime
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RateSeries:
    """Launches of one job that did equal work; `label` names the difference from the job's other series.

    `level` is the rate over the launches since the last confirmed change. If no launch has a rate, `rates` is empty,
    and `level` and `trend` are None. `lost` counts the launches without a rate, by their outcomes.
    """

    suite: str
    job: str
    label: str
    host: str
    device: str
    unit: str
    work: Mapping[str, Any]
    starts: tuple[datetime, ...]
    rates: tuple[float, ...]
    level: AcrossLaunches | None
    trend: Trend | None
    changes: tuple[RateChange, ...]
    updates: tuple[Update, ...]
    lost: Mapping[str, int]
    older: int

    @property
    def n(self) -> int:
        return len(self.rates)


def series_of(entries: Iterable[HistoryEntry], margin: float) -> tuple[RateSeries, ...]:
    """Return the series of all entries, by suite, job, host and device; changes of at most `margin` are left out."""
    in_order = sorted(entries, key=lambda entry: entry.start)
    groups = grouped(in_order, lambda entry: (entry.suite, entry.job, entry.host, entry.device))
    return tuple(
        _series(of, work, distinguishing_values(work, works), margin)
        for works in (_by_work(groups[place]) for place in sorted(groups))
        for work, of in works.items()
    )


def _by_work(entries: Sequence[HistoryEntry]) -> dict[Work, list[HistoryEntry]]:
    """Group entries by equal work, whatever their version of torch.

    An entry whose record lacks columns that were added later joins a work that it does not contradict. A launch without
    a rate, whose record may hold little, does so whichever columns it lacks.
    """
    later = [word for word in equal_columns() if word not in FIRST_WORDS]
    newest = {_work(entry): None for entry in reversed(entries) if entry.rate is not None}
    whole_first = sorted(newest, key=lambda work: sum(value in ("", None) for word, value in work if word in later))
    works: dict[Work, list[HistoryEntry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.rate is None):
        work = _work(entry)
        work = next((known for known in whole_first if _agree(work, known, later)), work)
        if entry.rate is None:
            work = next((known for known in reversed(works) if _agree(work, known, equal_columns())), work)
        works.setdefault(work, []).append(entry)
    return works


def _work(entry: HistoryEntry) -> Work:
    """Return an entry's work without its software."""
    known = entry.work | {SOFTWARE: ""}
    return tuple((word, known.get(word, column.default)) for word, column in equal_columns().items())


def _agree(work: Work, known: Work, unknown: Collection[str]) -> bool:
    """Whether two works are equal but for words among `unknown` that `work` lacks."""
    return all(
        mine == other or (word in unknown and mine in ("", None))
        for (word, mine), (_, other) in zip(work, known, strict=True)
    )


def _series(launches: Sequence[HistoryEntry], work: Work, label: str, margin: float) -> RateSeries:
    measured = [entry for entry in launches if entry.rate is not None]
    newest, last = measured[-NEWEST:], launches[-1]
    rates = tuple(entry.rate for entry in newest if entry.rate is not None)
    points = _changes_of(rates, margin)
    since = max((point.index for point in points if point.index < len(rates) - 1), default=0)
    updates = [Update(after.start, _versions(before, after, CHECKOUT)) for before, after in pairwise(newest)]
    return RateSeries(
        suite=last.suite,
        job=last.job,
        label=label,
        host=last.host,
        device=last.device,
        unit=next((entry.unit for entry in reversed(launches) if entry.unit), ""),
        work=dict(work) | {SOFTWARE: newest[-1].work.get(SOFTWARE, "") if newest else ""},
        starts=tuple(entry.start for entry in newest),
        rates=rates,
        level=across_launches(rates[since:]) if rates else None,
        trend=trend([entry.start.timestamp() for entry in newest], rates),
        changes=tuple(
            RateChange(
                newest[point.index].start,
                point.ratio,
                point.p,
                _versions(newest[point.index - 1], newest[point.index]),
                provisional=point.index == len(rates) - 1,
            )
            for point in points
        ),
        updates=tuple(update for update in updates if update.versions),
        lost=dict(Counter(entry.outcome for entry in launches if entry.rate is None)),
        older=len(measured) - len(newest),
    )


def _changes_of(rates: Sequence[float], margin: float) -> list[LevelChange]:
    """Return the changes of level, the last one as the newest launches judge it."""
    points = list(change_points(rates, margin))
    since = points[-1].index if points else 0
    if (newest := newest_change(rates[since:], margin)) is not None:
        points.append(replace(newest, index=since + newest.index))
    return points


def _versions(before: HistoryEntry, after: HistoryEntry, *beside: str) -> tuple[str, ...]:
    return tuple(differences(before.setting, after.setting, beside))


# The view

BARS = "▁▂▃▄▅▆▇█"
SHOWN = 24
"""The newest launches that a sparkline has room for."""
TREND = ("trend_ratio", "trend_low", "trend_high", "trend_p")
FIELDS = (
    *("suite", "job", "label", "host", "device", "unit", "n", "older", "first", "last", "last_rate", "level"),
    *("level_low", "level_high", "level_n", *TREND, "changes", "lost"),
)
LEGEND = (
    "level: geometric mean of the launches since the last change, with its 95 % t interval (3 and more) and their "
    "number. trend: from the first launch to the last, with its 95 % interval, if chance hardly explains it (p < 0.01)."
)


def history_grid(series: Sequence[RateSeries]) -> Grid:
    """Return a row per series, grouped by suite, host and device; changes and launches without a rate stand below."""
    groups = []
    for members in by_place(series):
        place = members[0]
        where = f"{place.host or 'an unnamed host'}: {place.device or 'unknown device'}"
        notes = [words for each in members for words in _below(each)]
        groups.append(RowGroup([row(COLUMNS, each) for each in members], place.suite or "suite", where, notes))
    # Every launch's rate is in the document.
    document = {"schema": "cotenant-trends-1", "series": [{"n": each.n} | asdict(each) for each in series]}
    return Grid(COLUMNS, groups, notes=[((LEGEND, "dim"),)] if series else [], fields=FIELDS, document=document)


def by_place(series: Sequence[RateSeries]) -> list[list[RateSeries]]:
    """Return the series in the groups of the view: those of one suite, host and device together."""
    return [*grouped(series, lambda each: (each.suite, each.host, each.device)).values()]


def _start(series: RateSeries, at: int, field: str) -> Cell:
    return Cell(_day(series.starts[at]), {field: series.starts[at].isoformat()}) if series.starts else Cell()


def _level(series: RateSeries) -> Measurement | None:
    level = series.level
    return None if level is None else Measurement(level.rate, level.interval, str(level.n), (level.n,))


def _trend(series: RateSeries) -> Cell:
    if (trend := series.trend) is None:
        return Cell()
    low, high = trend.interval
    text = f"{change(trend.ratio)} % ({change(low)} .. {change(high)})" if trend.real else f"none (p {trend.p:.2f})"
    return Cell(text, dict(zip(TREND, (trend.ratio, low, high, trend.p), strict=True)))


def _changes(series: RateSeries) -> Cell:
    days, exactly = [], []
    for each in series.changes:
        mark = "?" if each.provisional else ""
        days.append(f"{_day(each.start)} {change(each.ratio)} %{mark}")
        exactly.append(f"{each.start.isoformat()} {each.ratio:.4f}{mark}")
    return Cell("; ".join(days), {"changes": "; ".join(exactly)})


COLUMNS: Sequence[Column[RateSeries]] = (
    *place_columns(lambda series: series, "suite", "host", "device"),
    Column("job", lambda series: Cell(series_name(series), {"job": series.job, "label": series.label}), left=True),
    Column("unit", lambda each: Cell(f"{each.unit}/s" if each.unit else ABSENT, {"unit": each.unit}), left=True),
    Column("n", lambda series: Cell(str(series.n), {"n": series.n, "older": series.older})),
    Column("first", lambda series: _start(series, 0, "first")),
    Column("last", lambda series: _start(series, -1, "last")),
    Column("last rate", lambda series: number(series.rates[-1] if series.rates else None, rate, "last_rate")),
    *measured_columns("level", _level, ("level", "level_low", "level_high", "level_n"), n="of"),
    Column("trend", _trend, left=True),
    Column("", lambda series: Cell(sparkline(series.rates)), left=True, drop=True, seen="screens"),
    Column("changes", _changes, left=True, seen="files"),
    text_column("without a rate", lambda series: lost_words(series), "lost", seen="files"),
)


def series_name(series: RateSeries) -> str:
    """Return the job's name, with the words that set this series apart from others of the job."""
    return f"{series.job} ({series.label})" if series.label else series.job


def sparkline(rates: Sequence[float]) -> str:
    """Return a bar for each of the newest launches; heights reach from their lowest rate to their highest."""
    shown = rates[-SHOWN:]
    if len(shown) < 2:
        return ""
    low, high = min(shown), max(shown)
    if low == high:
        return BARS[3] * len(shown)
    return "".join(BARS[round((rate / high - low / high) / (1 - low / high) * (len(BARS) - 1))] for rate in shown)


def _day(start: datetime) -> str:
    return f"{start:%Y-%m-%d}"


def _size_and_cause(point: RateChange) -> tuple[str, str]:
    why = ", ".join(point.versions) or "no version that its records know is another"
    kind = "provisional until a second launch, " if point.provisional else ""
    return f"{_day(point.start)} {change(point.ratio)} % ({kind}p {point.p:.2g})", f": {why}"


def changes_words(point: RateChange) -> str:
    """Return a change as a sentence: its day, its size, and the versions that changed with it."""
    return f"{''.join(_size_and_cause(point))}."


def _below(series: RateSeries) -> Iterator[Words]:
    name = f"{series_name(series)}: "
    for point in series.changes:
        style = "yellow" if point.provisional else "bold red" if point.ratio < 1 else "green"
        size, cause = _size_and_cause(point)
        yield (name, "bold"), (size, style), (cause, "")
    changed = {point.start for point in series.changes}
    for update in series.updates:
        if update.start not in changed:
            versions = ", ".join(update.versions)
            yield ((f"{name}{_day(update.start)} {versions}: no change of the level there", "dim"),)
    if series.lost:
        yield ((f"{name}without a rate {lost_words(series)}", "yellow"),)
    if series.older:
        yield ((f"{name}{series.older} launches before the newest {series.n} are left out", "dim"),)


def lost_words(series: RateSeries) -> str:
    """Return `3 failed, 1 INVALID`."""
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(series.lost.items()))
