"""A history as series: launches of equal work on one host and device in the order they ran, and what became of them."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cotenant.results.columns import equal_columns
from cotenant.results.drawn import CHECKOUT, differences
from cotenant.results.history import FIRST_WORDS, Entry
from cotenant.results.launches import Work, told_apart
from cotenant.stats.history import Trend, change_points, trend
from cotenant.stats.launches import AcrossLaunches, across_launches

SOFTWARE = "software"
"""Another version of torch is no other work: to see what it changes is the point."""
NEWEST = 1000
"""Of a longer series the newest launches are described: a trend looks at every pair of them."""


@dataclass(frozen=True, slots=True)
class Change:
    """From the launch at `start` on the rate is `ratio` times what it was, with Pettitt's chance `p`.

    `versions` are what differs between that launch and the one before, as far as their records know.
    """

    start: datetime
    ratio: float
    p: float
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Update:
    """Other versions from the launch at `start` on; the checkout's, which may change with every launch, left out."""

    start: datetime
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """Launches of one job that did equal work; `label` says in what it differs from others of the job.

    `level` is of the launches since the last change. Without a launch that has a rate, `rates` is empty and the rest
    None. `lost` counts the launches without one, by what became of them.
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
    changes: tuple[Change, ...]
    updates: tuple[Update, ...]
    lost: Mapping[str, int]
    older: int

    @property
    def n(self) -> int:
        return len(self.rates)


def series_of(entries: Iterable[Entry], margin: float) -> tuple[Series, ...]:
    """Return the series of all entries, by suite, job, host and device; a change is one of more than `margin`."""
    groups: dict[tuple[str, str, str, str], list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: entry.start):
        groups[entry.suite, entry.job, entry.host, entry.device].append(entry)
    found: list[Series] = []
    for _, members in sorted(groups.items(), key=lambda pair: pair[0]):
        works = _by_work(members)
        found += [_series(launches, work, told_apart(work, works), margin) for work, launches in works.items()]
    return tuple(found)


def _by_work(entries: Sequence[Entry]) -> dict[Work, list[Entry]]:
    """Group entries by equal work, whatever their version of torch.

    A launch without a rate may know little of its work: it stands with the newest work that it does not contradict. So
    does one from before there was a column for what is compared today, where all else is equal.
    """
    later = [word for word in equal_columns() if word not in FIRST_WORDS]
    newest = {_work(entry): None for entry in reversed(entries) if entry.rate is not None}
    whole_first = sorted(newest, key=lambda work: sum(value in ("", None) for word, value in work if word in later))
    works: dict[Work, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.rate is None):
        work = _work(entry)
        work = next((known for known in whole_first if _agree(work, known, later)), work)
        if entry.rate is None:
            work = next((known for known in reversed(works) if _agree(work, known, equal_columns())), work)
        works.setdefault(work, []).append(entry)
    return works


def _work(entry: Entry) -> Work:
    """Return an entry's work but for its software."""
    known = entry.work | {SOFTWARE: ""}
    return tuple((word, known.get(word, column.default)) for word, column in equal_columns().items())


def _agree(work: Work, known: Work, unknown: Collection[str]) -> bool:
    """Are they equal but for words among `unknown` that `work` lacks?"""
    pairs = zip(work, known, strict=True)
    return all(mine == other or (word in unknown and mine in ("", None)) for (word, mine), (_, other) in pairs)


def _series(launches: Sequence[Entry], work: Work, label: str, margin: float) -> Series:
    measured = [(one, one.rate) for one in launches if one.rate is not None]
    kept, rates = [one for one, _ in measured[-NEWEST:]], tuple(rate for _, rate in measured[-NEWEST:])
    points = change_points(rates, margin)
    since = points[-1].index if points else 0
    last = launches[-1]
    return Series(
        suite=last.suite,
        job=last.job,
        label=label,
        host=last.host,
        device=last.device,
        unit=next((one.unit for one in reversed(launches) if one.unit), ""),
        work=dict(work) | {SOFTWARE: kept[-1].work[SOFTWARE] if kept else ""},
        starts=tuple(one.start for one in kept),
        rates=rates,
        level=across_launches(rates[since:]) if rates else None,
        trend=trend([one.start.timestamp() for one in kept], rates),
        changes=tuple(
            Change(kept[one.index].start, one.ratio, one.p, _versions(kept[one.index - 1], kept[one.index]))
            for one in points
        ),
        updates=tuple(
            Update(after.start, versions)
            for before, after in itertools.pairwise(kept)
            if (versions := _versions(before, after, beside=CHECKOUT))
        ),
        lost=dict(Counter(one.outcome for one in launches if one.rate is None)),
        older=len(measured) - len(kept),
    )


def _versions(before: Entry, after: Entry, beside: str = "") -> tuple[str, ...]:
    known = {name: version for name, version in before.setting.items() if name != beside}
    return tuple(differences(known, after.setting))
