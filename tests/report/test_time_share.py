"""How much of the launches' time lies inside observations."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from cotenant.report.page import page
from cotenant.report.sections.contents import PageContents
from cotenant.report.suite_end import suite_views
from cotenant.report.time_share import observed_words, spent_of
from cotenant.results.record import Observed, Record
from report.making import launch, lost, quick, summary_of, text_of


def longest_s(records: list[Record]) -> float:
    """Return the time of the tenant whose observations of any kind last longest."""
    return max(sum(one.end_ns - one.start_ns for one in of.observations if one.kind) / 1e9 for of in records)


def test_measured_time_is_that_of_the_longest_observing_tenant() -> None:
    together, alone, failed = launch("vae"), quick("vae"), lost("ssd", 0)
    seconds = [longest_s(records) for records in (together, alone)]
    meetings = [[record.rendezvous for record in records] for records in (together, alone)]
    loads = [max((meeting.load_end_ns - meeting.t0_ns) / 1e9 for meeting in of) for of in meetings]
    summary = summary_of([*together, *alone, *failed])
    spent = spent_of(summary)
    # Each launch lasted half a minute; the time of the one that failed counts as well.
    assert spent.lasted_s == pytest.approx(60 + 30 * bool(failed[0].start_time != failed[0].end_time))
    assert (spent.loaded_s, spent.observed_s) == pytest.approx((sum(loads), sum(seconds)))
    whole, share = (f"{100 * sum(seconds) / of:.0f} %" for of in (spent.lasted_s, sum(loads)))
    words = f"{whole} of {spent.lasted_s:.0f} s was measured ({share} of the time from GO to STOP)"
    for text in (
        observed_words(summary),
        text_of(*suite_views(summary), width=120),
        page("A page", PageContents(summary)),
    ):
        assert words in text


def test_observations_across_a_block_border_are_not_counted() -> None:
    def every_other(made: Sequence[Observed]) -> list[Observed]:
        return [replace(one, kind="" if at % 2 else "all") for at, one in enumerate(made)]

    records = [replace(record, observations=every_other(record.observations)) for record in launch("vae")]
    assert spent_of(summary_of(records)).observed_s == pytest.approx(longest_s(records))


def test_without_observations_there_is_no_share() -> None:
    assert spent_of(summary_of(failed := lost("ssd", 0))) is None
    assert observed_words(summary_of(failed)) == ""


def test_measured_time_is_unknown_if_several_pairs_met() -> None:
    """Each of its records has the whole launch's time, and observed a part of it."""
    alone = quick("vae")
    met = [
        replace(record, mix=mix, name=f"{record.name}.in.{mix}")
        for mix in ("vae+wlm", "vae+ssd")
        for record in launch("vae")
    ]
    assert spent_of(summary_of([*alone, *met])) is None
    assert spent_of(summary_of([*alone, *met[: len(met) // 2]])) is not None
