"""The sentence and the chart on top of a report: what each user has, who has least, and how far to trust it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from cotenant.finding import Finding
from cotenant.report import numbers
from cotenant.report.answer import answer, job_shares, shares_of
from cotenant.report.pictures.shares import shares_picture
from cotenant.report.summary import JobSummary
from cotenant.report.trust import doubts
from cotenant.results.record import Record
from report.making import BUSY, launch, lost, scaling, solo, summary_of

DRIFT = Finding("drift", "warning", "The rate drifted. Look at clocks.", "")
HOST = Finding("governor", "warning", "Processors save power. Set them.", "")


def only(records: list[Record], **more: Any) -> JobSummary:
    (job,) = summary_of(records, **more).jobs
    return job


def test_one_job_says_each_users_rate_and_what_it_is_of() -> None:
    alone = [*launch("vae"), *solo("vae", mean_ms=450)]
    text = answer(summary_of(alone))
    job = only(alone)
    rates = [estimate.rate for estimate in job.tenants.values()]
    assert text.startswith(f"vae: each user gets {rates[0]:.0f} and {rates[1]:.0f} image/s, ")
    kept = [share.ratio for share in (job_shares(job) or pytest.fail("no shares")).shares]
    assert kept == pytest.approx([rate / lone for rate, lone in zip(rates, _alone(job), strict=True)])
    percents = " and ".join(f"{100 * ratio:.0f} %" for ratio in kept)
    assert f"{percents} of what each has alone" in text
    equal = answer(summary_of(launch("vae")))
    assert equal.endswith(
        "of an equal share; what each has alone was not measured; 1 % less for the slowest user than for the fastest."
    )
    shared = answer(summary_of(launch("vae", place={"sharers": 2})))
    assert "; shared: 2 users have the same processors; 1 % less" in shared
    single = answer(summary_of(launch("vae", tenants=1)))
    assert "its user gets" in single
    assert "%" not in single
    several = [100.0, 400.0, 300.0, 150.0, 200.0]
    uneven = [launch("vae", tenants=5, mean_ms=mean_ms)[tenant] for tenant, mean_ms in enumerate(several)]
    rates = [estimate.rate for estimate in only(uneven).tenants.values()]
    words = f"vae: each user gets {numbers.rate(min(rates))} ... {numbers.rate(max(rates))} image/s, "
    assert answer(summary_of(uneven)).startswith(words), "of many users the lowest and the highest"


def _alone(job: JobSummary) -> list[float]:
    assert job.alone is not None
    return [next(iter(job.alone.of(tenant).values())) for tenant in job.tenants]


def test_several_jobs_say_the_geometric_mean_and_the_least_even_and_what_is_lost() -> None:
    records = [*launch("a"), *solo("a", mean_ms=450), *launch("b", tenants=2, mean_ms=300), *solo("b", mean_ms=150)]
    summary = summary_of([*records, *lost("c", 0)])
    kept = np.array([[share.ratio for share in shares.shares] for shares in shares_of(summary)])
    means = np.exp(np.log(kept).mean(axis=0))
    text = answer(summary)
    assert text.startswith(f"Two users keep {100 * means[0]:.0f} % and {100 * means[1]:.0f} % of what each has alone")
    assert "(geometric mean of 2 jobs)" in text
    assert re.search(r"least even: [ab], 1 % less for the slowest user than for the fastest", text)
    assert text.endswith("1 of 3 jobs has no rate.")
    assert [shares.job.name for shares in shares_of(summary)] == ["b", "a"]
    assert answer(summary_of(lost("c", 0))) == "No job has a rate: 1 job failed or is INVALID."
    assert answer(summary_of([])) == ""
    many_users = answer(summary_of([*launch("a", tenants=8), *launch("b", tenants=8)]))
    assert re.match(r"Eight users get \d+ to \d+ % of an equal share", many_users)


def test_a_job_without_neighbours_or_baseline_has_no_share() -> None:
    assert job_shares(only(launch("vae", tenants=1))) is None
    assert all(job_shares(job) is None for job in summary_of([scaling(1, 0), scaling(2, 0)]).jobs)
    (one,) = (job_shares(only([*launch("vae", tenants=1), *solo("vae", tenants=1)])),)
    assert one is not None
    assert one.of_alone


def test_intervals_are_over_launches_or_labelled_as_of_one() -> None:
    shares = job_shares(only(launch("vae")))
    assert shares is not None
    for share in shares.shares:
        assert share.within
        assert share.interval is not None
        assert share.interval[0] < share.ratio < share.interval[1]
    several = job_shares(only([record for uid in range(3) for record in launch("vae", uid)]))
    assert several is not None
    assert [share.within for share in several.shares] == [False, False]
    two = job_shares(only([record for uid in range(2) for record in launch("vae", uid)]))
    assert two is not None
    assert [share.interval for share in two.shares] == [None, None]


def test_the_worst_warning_is_the_doubt_and_what_others_took_is_worse_than_its_effects() -> None:
    for findings, rule in [((DRIFT, BUSY), BUSY.rule), ((HOST, DRIFT), "drift"), ((HOST,), "governor")]:
        job = only(launch("vae", findings=findings))
        assert job.doubt is not None
        assert (job.verdict, job.doubt.rule, job.doubt.records) == ("suspect", rule, 2)
    assert only(launch("vae")).verdict == "clean"
    assert answer(summary_of(launch("vae", findings=(BUSY,)))).endswith(
        "suspect: While tenants were timed other work kept 3 of 8 processors busy."
    )
    both = answer(summary_of([*launch("vae", findings=(BUSY,)), *launch("wlm")]))
    assert (
        "1 of 2 jobs is suspect, most for this: While tenants were timed other work kept 3 of 8 processors busy" in both
    )
    assert doubts([]) == []


def test_launches_that_do_not_count_raise_no_doubt_of_those_that_do() -> None:
    job = only([*launch("vae", 0), *lost("vae", 1)])
    assert (job.verdict, job.doubt) == ("1/2 clean", None)


def test_thirty_jobs_stand_in_the_height_of_a_screen_and_the_fair_line_at_one() -> None:
    records = [record for number in range(30) for record in launch(f"job{number}")]
    rows = shares_of(summary_of(records))
    text = shares_picture(rows, "x")
    width, height = map(float, re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)[0])
    assert height / width * 1200 < 670
    assert all(f">job{number}<" in text for number in range(30))
    assert shares_picture(rows, "x") == text


def test_shares_beyond_the_chart_stand_at_its_edge_with_their_number() -> None:
    records = [*launch("vae"), *solo("vae", mean_ms=50)]
    text = shares_picture(shares_of(summary_of(records)), "x")
    assert re.search(r">10 · 10 %<|>9 · 9 %<|>10 · 9 %<", text)
