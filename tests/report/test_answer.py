"""The sentence and the chart on top of a report: each user's rate, the user with the least, and their reliability."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from msgspec import structs
from scipy import stats

from cotenant.finding import Finding
from cotenant.report import numbers
from cotenant.report.answer import answer, job_shares, shares_of
from cotenant.report.sections.top import shares_chart
from cotenant.report.summary import JobSummary
from cotenant.report.trust import doubts
from cotenant.results.record import Record
from report.making import BUSY, UNSLICED, launch, lost, scaling, solo, summary_of
from results.made import NOON

DRIFT = Finding("drift", "warning", "The rate drifted. Look at clocks.", "")
HOST = Finding("governor", "warning", "Processors save power. Set them.", "")


def only(records: list[Record]) -> JobSummary:
    (job,) = summary_of(records).jobs
    return job


def test_one_job_says_each_users_rate_and_what_it_is_of() -> None:
    alone = [*launch("vae"), *solo("vae", mean_ms=450)]
    job = only(alone)
    rates = [estimate.rate for estimate in job.tenants.values()]
    lone = [job.alone.of(tenant)[0] for tenant in job.tenants]
    kept = [share.value for share in job_shares(job).shares.values()]
    assert kept == pytest.approx([rate / of for rate, of in zip(rates, lone, strict=True)])
    expected = re.escape(f"vae: each user gets {rates[0]:.0f} and {rates[1]:.0f} image/s; each user keeps 90 % (")
    assert re.fullmatch(
        expected + r"\d\d to \d\d % within one launch\) of what it has alone\.", answer(summary_of(alone))
    )
    equal = answer(summary_of(launch("vae")))
    assert equal.endswith("image/s. What each has alone was not measured (--baseline blocks measures it).")
    assert "2 users share the same processors." in answer(summary_of(launch("vae", place={"sharers": 2})))
    single = answer(summary_of(launch("vae", tenants=1)))
    assert "its user gets" in single
    assert not any(word in single for word in ("%", "alone"))
    several = [100.0, 400.0, 300.0, 150.0, 200.0]
    uneven = [launch("vae", tenants=5, mean_ms=mean_ms)[tenant] for tenant, mean_ms in enumerate(several)]
    rates = [estimate.rate for estimate in only(uneven).tenants.values()]
    words = f"vae: each user gets {numbers.rate(min(rates))} ... {numbers.rate(max(rates))} image/s"
    assert answer(summary_of(uneven)).startswith(words), "of many users the lowest and the highest"


def suite(shares: Mapping[str, float], uids: Sequence[int], noise: float = 0.0, uneven: float = 0.0) -> list[Record]:
    """Launches of jobs that keep these shares, with noise on each launch; tenant 1 keeps less by the share `uneven`."""
    draw, records = np.random.default_rng(5), []
    for name, share in shares.items():
        for uid in uids:
            for tenant, less in enumerate((0.0, uneven)):
                mean_ms = 300 / share / (1 - less) * math.exp(draw.normal(0, noise))
                records.append(launch(name, uid, mean_ms=mean_ms)[tenant])
            records += solo(name, uid, mean_ms=300)
    return records


def test_why_it_is_not_known_what_users_keep() -> None:
    """--baseline blocks, or alone, ran in all but the first of these."""
    wrong = [Finding("wrong", "error", "It is wrong.")]
    missed = Finding("not_alone", "info", "The rate that users like user 0 keep is unknown: it was late.")
    for records, why in (
        (launch("vae"), "What each has alone was not measured (--baseline blocks measures it)."),
        ([*launch("vae", place=UNSLICED), *solo("vae", place=UNSLICED)], "a user alone has the whole machine"),
        ([*launch("vae"), *(structs.replace(one, findings=wrong) for one in solo("vae"))], "no launch has a rate."),
        (launch("vae", findings=(missed,)), "What each keeps is not known: it was late."),
    ):
        said = answer(summary_of(records))
        assert why in said
        assert ("was not measured" in said) == ("was not measured" in why)


def test_several_jobs_are_summarised_by_a_geometric_mean() -> None:
    shares = dict(zip("abcd", (0.97, 0.98, 0.96, 0.97), strict=True))
    summary = summary_of([*suite(shares, [0]), *lost("e", 0)])
    logs = np.log([of.kept.value for of in shares_of(summary)])
    low, high = np.exp(stats.t.interval(0.95, 3, logs.mean(), logs.std(ddof=1) / 2))
    typical = f"{100 * np.exp(logs.mean()):.0f} % ({100 * low:.0f} to {100 * high:.0f} %)"
    text = answer(summary)
    assert text.startswith(f"Each user keeps {typical} of what it has alone, over 4 jobs (96 to 98 %).")
    assert text.endswith("1 of 5 jobs has no rate.")
    assert "least" not in text, "of one launch nobody knows what chance does"
    assert [of.job.name for of in shares_of(summary)] == ["c", "a", "d", "b"]
    assert answer(summary_of(lost("c", 0))) == "No job has a rate: 1 job failed or is INVALID."
    two = [*lost("c", 0), *lost("d", 0)]
    assert answer(summary_of(two)) == "No job has a rate: 2 jobs failed or are INVALID."
    assert answer(summary_of([])) == ""
    many_users = answer(summary_of([*launch("a", tenants=8), *launch("b", tenants=8)]))
    assert many_users == "What each has alone was not measured (--baseline blocks measures it)."


def test_only_differences_beyond_noise_are_mentioned() -> None:
    equal, odd = dict.fromkeys("abcdef", 0.97), {**dict.fromkeys("abcde", 0.97), "f": 0.8}
    same = answer(summary_of(suite(equal, range(3), 0.02)))
    assert "least" not in same.lower()
    assert "users differ" not in same.lower()
    assert "No difference between users of a job was detected." in same
    assert "; least: f, 80 % (" in answer(summary_of(suite(odd, range(3), 0.005)))
    uneven = answer(summary_of(suite(equal, range(3), 0.005, uneven=0.1)))
    assert uneven.startswith("Users differ: user 0 keeps 97 % and user 1 keeps 87 % of what it has alone, over 6 jobs")
    assert re.search(r"Least even: [a-f], \d+ % less for user 1 than for the fastest\.", uneven)


def test_without_a_reliable_answer_that_is_said_first() -> None:
    assert answer(summary_of(suite({"a": 0.9, "b": 0.8}, [0]))).startswith("No reliable answer yet: too few launches;")
    wide = answer(summary_of(suite({"a": 0.9, "b": 0.8, "c": 0.99}, [0])))
    more = "No reliable answer yet: more launches (--uid 1, --uid 2) narrow it; typical: each user keeps"
    assert wide.startswith(more)
    thrice = answer(summary_of(suite({"a": 0.9, "b": 0.95}, range(3), 0.1)))
    assert thrice.startswith("No reliable answer yet: more launches (--uid 3, --uid 4) narrow it;")
    busy = [*suite({"a": 0.97}, [0]), *launch("b", findings=(BUSY,)), *solo("b"), *launch("c", findings=(BUSY,))]
    suspect = answer(summary_of([*busy, *solo("c")]))
    assert suspect.startswith("No reliable answer: 2 of 3 jobs are suspect, by other programs; typical: ")


def test_a_job_without_neighbours_or_baseline_has_no_share() -> None:
    assert job_shares(only(launch("vae", tenants=1))) is None
    assert all(job_shares(job) is None for job in summary_of([scaling(1, 0), scaling(2, 0)]).jobs)
    assert job_shares(only([*launch("vae", tenants=1), *solo("vae", tenants=1)])).of_alone


def test_intervals_are_over_launches_or_labelled_as_of_one() -> None:
    shares = job_shares(only(launch("vae")))
    for share in shares.shares.values():
        assert (share.over, share.n) == ("observations", 20)
        assert share.interval[0] < share.value < share.interval[1]
    for launches, known in ((3, True), (2, False)):
        several = job_shares(only([record for uid in range(launches) for record in launch("vae", uid)]))
        found = [(share.over, share.n, share.interval is not None) for share in several.shares.values()]
        assert found == [("launches", launches, known)] * 2


def test_launches_within_one_hour_say_another_hour_may_differ() -> None:
    said = "The launches of a job lie within 120 s: another hour may have other rates."
    assert said in answer(summary_of([one for uid in range(3) for one in launch("vae", uid)]))
    days = [NOON + timedelta(days=uid) for uid in range(3)]
    apart = [one for uid, start in enumerate(days) for one in launch("vae", uid, started=start, ended=start)]
    for others in (apart, launch("vae", 0) + launch("vae", 1)):
        assert "another hour" not in answer(summary_of(others))


def test_the_worst_warning_becomes_the_doubt_of_a_job() -> None:
    for findings, rule in [((DRIFT, BUSY), BUSY.rule), ((HOST, DRIFT), "drift"), ((HOST,), "governor")]:
        job = only(launch("vae", findings=findings))
        assert (job.verdict, job.doubt.rule, job.doubt.records) == ("suspect", rule, 2)
    assert only(launch("vae")).verdict == "clean"
    half = only([*launch("vae", 0), *lost("vae", 1)])
    assert (half.verdict, half.doubt) == ("1/2 clean", None), "a launch that does not count raises no doubt of others"
    assert answer(summary_of(launch("vae", findings=(BUSY,)))).endswith(f"It is suspect: {BUSY.sentence}")
    sized = [replace(BUSY, effect=effect) for effect in (0.1, 0.2, 0.6)]
    records = [one for at, finding in enumerate(sized) for one in launch(f"j{at}", findings=(finding,))]
    drifting = launch("z", findings=(replace(DRIFT, effect=0.3),))
    text = answer(summary_of([*records, *drifting, *launch("y")]))
    moved = "by other programs, which can have moved them by 20 % (median), 60 % "
    assert f"4 of 5 jobs are suspect, most of them {moved}" in text
    both = answer(summary_of([*records[:2], *drifting, *launch("y")]))
    assert "2 of 3 jobs are suspect, for several reasons." in both
    assert doubts([]) == []


def test_thirty_jobs_fit_the_height_of_a_screen() -> None:
    records = [record for number in range(30) for record in launch(f"job{number}")]
    rows = shares_of(summary_of(records))
    text = shares_chart(rows, "x")
    width, height = map(float, re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)[0])
    assert height / width * 1200 < 670
    assert all(f">job{number}<" in text for number in range(30))
    beyond = shares_chart(shares_of(summary_of([*launch("vae"), *solo("vae", mean_ms=50)])), "x")
    assert re.search(r">(10|9) · (10|9) %<", beyond), "a share beyond the chart has its number"
