"""A history as series: the launches that belong together, the dates of their changes, and the text on them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotenant.report.history import BARS, NEWEST, SHOWN, RateSeries, history_grid, series_of, sparkline
from cotenant.report.renderers import as_csv
from cotenant.results.history import HistoryEntry
from report.making import text_of
from results import tabled
from results.made import NOON

WORK = tabled.WORK | {"software": "2.14.0"}


def entry(day: int, rate: float | None = 100.0, **changes: Any) -> HistoryEntry:
    setting = {"torch": "2.14.0", "git": f"commit{day}"}
    own = {"start": NOON + timedelta(days=day), "rate": rate, "work": WORK, "setting": setting}
    return tabled.an_entry(**own | {"outcome": "failed" if rate is None else "completed"} | changes)


def history(*levels: tuple[int, float], **changes: Any) -> list[HistoryEntry]:
    """A launch a day around each level in turn, with half a percent of noise."""
    generator = np.random.default_rng(5)
    rates = [level * float(np.exp(generator.normal(0, 0.005))) for count, level in levels for _ in range(count)]
    return [entry(day, rate, **changes) for day, rate in enumerate(rates)]


def only(entries: list[HistoryEntry], margin: float = 0.02) -> RateSeries:
    (found,) = series_of(entries, margin)
    return found


def text(*found: RateSeries, width: int = 200) -> str:
    return text_of(history_grid(found), width=width)


def test_a_change_is_dated_sized_and_says_what_else_changed() -> None:
    entries = history((12, 100.0), (12, 92.0))
    later = {"work": WORK | {"software": "2.14.1"}, "setting": {"torch": "2.14.1", "git": "later"}}
    entries[12:] = [replace(one, **later) for one in entries[12:]]
    found = only(entries)
    (change,) = found.changes
    assert (change.start, change.ratio) == (NOON + timedelta(days=12), pytest.approx(0.92, abs=0.01))
    assert change.versions == ("git commit11 -> later", "torch 2.14.0 -> 2.14.1")
    assert (found.level.n, found.work["software"]) == (12, "2.14.1")
    assert found.level.interval[0] < 92 < found.level.interval[1]
    assert "vae: 2026-03-26 -8." in text(found)
    assert "git commit11 -> later, torch 2.14.0 -> 2.14.1" in text(found)
    # A narrow terminal loses the sparkline and cuts no number.
    assert sparkline(found.rates) in text(found)
    for narrow in (text(found, width=width) for width in (40, 80)):
        assert not set(BARS) & set(narrow)
        assert all(number in narrow for number in ("2026-03-14", "2026-04-06", "91.73", "91.59-92.10", "image/s"))


def test_an_update_without_a_change_is_said_too_and_commits_are_not() -> None:
    entries = history((12, 100.0))
    entries[6:] = [replace(one, setting=one.setting | {"torch": "2.14.1"}) for one in entries[6:]]
    found = only(entries)
    assert found.changes == ()
    assert [update.versions for update in found.updates] == [("torch 2.14.0 -> 2.14.1",)]
    assert "vae: 2026-03-20 torch 2.14.0 -> 2.14.1: no change of the level there" in text(found)
    assert "commit" not in text(found)


def test_a_slow_decline_is_a_trend() -> None:
    found = only([entry(day, 100.0 * 0.999**day) for day in range(20)], margin=0.5)
    assert (found.trend.real, found.trend.ratio) == (True, pytest.approx(0.999**19))
    assert "-1.9 % (-1.9 .. -1.9)" in text(found)
    assert "none (p" in text(only(history((12, 100.0))))


def test_other_hosts_devices_and_work_are_other_series() -> None:
    works = [{"work": WORK | {"precision": "bf16"}}, {"work": WORK | {"benchmark": "other source"}}]
    for other in ({"host": "node2"}, {"device": "Slide rule"}, {"suite": "mine"}, *works):
        found = series_of([*history((5, 100.0)), *history((5, 50.0), **other)], 0.02)
        assert [series.n for series in found] == [5, 5]
        assert {round(series.rates[0], -1) for series in found} == {100, 50}


def test_a_difference_of_work_is_the_series_name() -> None:
    more = WORK | {"tenants": 4}
    found = series_of([*history((4, 100.0)), *history((4, 60.0), work=more)], 0.02)
    assert [series.label for series in found] == ["users 2", "users 4"]
    assert "vae (users 4)" in text(*found)


def test_launches_from_before_a_column_of_work_stand_with_those_of_now() -> None:
    for known, other in (
        ({"isolation": "v1"}, {"isolation": "none"}),
        ({"processors": 4}, {"processors": 2}),
        ({"processors": 4, "isolation": "v1"}, {"processors": 2}),
    ):
        old, now = history((4, 100.0)), history((4, 100.0), work=WORK | known)
        assert only([*old, *now]).n == only([*now, *old]).n == 8
        half = history((4, 60.0), work=WORK | known | other)
        failed = [entry(9, None, work=WORK | known | other)]
        assert sorted(series.n for series in series_of([*old, *now, *failed], 0.02)) == [0, 8]
        labels = {f"{name} {values[name]}" for values in (known | other, known) for name in other}
        assert {series.label for series in series_of([*now, *half], 0.02)} == labels


def test_launches_without_a_rate_are_counted_and_not_averaged() -> None:
    unknown = WORK | {"benchmark": "", "batch_size": None, "precision": "", "software": ""}
    lost = [entry(3, None), entry(4, None, work=unknown), entry(5, None, outcome="INVALID", work=unknown)]
    found = only([*history((6, 100.0)), *lost])
    assert (found.n, found.lost) == (6, {"failed": 2, "INVALID": 1})
    assert "vae: without a rate 1 INVALID, 2 failed" in text(found)
    alone = only(lost[1:])
    assert (alone.n, alone.level, alone.trend) == (0, None, None)
    assert " 0 " in text(alone)
    assert as_csv(history_grid((alone,))).splitlines()[1].endswith('"1 INVALID, 1 failed"')


def test_of_a_very_long_series_the_newest_are_described() -> None:
    found = only([entry(day) for day in range(NEWEST + 7)])
    assert (found.n, found.older) == (NEWEST, 7)
    assert "7 launches before the newest 1000 are left out" in text(found)


@given(st.lists(st.floats(1e-300, 1e300), max_size=40))
def test_a_sparkline_has_a_bar_per_launch(rates: list[float]) -> None:
    found = sparkline(rates)
    shown = rates[-SHOWN:]
    assert len(found) == (len(shown) if len(shown) > 1 else 0)
    for rate, bar in zip(shown, found, strict=False):
        if min(shown) < max(shown):
            assert (bar == BARS[0]) or rate > min(shown)
            assert (bar == BARS[-1]) or rate < max(shown)
