"""A directory's jobs against an independent calculation, and their views against golden files.

After a wanted change: GOLDEN=write python -m pytest tests/report, and read the difference.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from cotenant.finding import Finding, warning
from cotenant.report.jobs import jobs_view
from cotenant.report.renderers import markdown
from cotenant.report.summary import per_tenant, scores
from cotenant.results.targets import Target
from golden import check_golden
from report.making import BUSY, everything, frame, launch, printed, summary_of
from results.made import a_part

GOLDEN = Path(__file__).with_name("golden")


def test_every_number_is_what_pandas_and_scipy_say() -> None:
    records = [one for uid in range(5) for name in ("vae", "ssd") for one in launch(name, uid, 3)]
    rates = frame(records)
    for job in summary_of(records).jobs:
        of_job = rates[rates["job"] == job.name]
        logs = np.log(of_job.groupby("uid")["rate"].sum())
        assert job.node.rate == pytest.approx(np.exp(logs.mean()))
        assert job.node.spread == pytest.approx(logs.std())
        assert job.node.interval == pytest.approx(np.exp(stats.t.interval(0.95, 4, logs.mean(), logs.sem())))
        assert (job.node.launches, job.node.observations) == (5, None)
        for tenant, found in job.tenants.items():
            own = np.log(of_job[of_job["tenant"] == int(tenant)]["rate"])
            assert found.rate == pytest.approx(np.exp(own.mean()))
            assert found.interval == pytest.approx(np.exp(stats.t.interval(0.95, 4, own.mean(), own.sem())))
        wide = of_job.pivot_table(index="uid", columns="tenant", values="rate")
        # With next to no noise the estimates are hardly shrunk to their mean.
        means = np.log(wide).mean()
        assert job.evenness.worst_over_best == pytest.approx(np.exp(means.min() - means.max()), rel=1e-4)
        jain = wide.sum(axis=1) ** 2 / (3 * (wide**2).sum(axis=1))
        assert job.evenness.jain == pytest.approx(jain.median())
        # A difference of 2 % is beyond noise, but too small to matter.
        assert (job.evenness.slowest, job.evenness.p) == (None, pytest.approx(0, abs=1e-9))
        assert per_tenant(job) == pytest.approx(wide.mean(axis=1).to_dict())


def test_one_launch_of_a_lone_tenant_has_its_own_interval() -> None:
    (record,) = launch("toy_reg", 0, 1)
    alone, shared = summary_of([record, *launch("vae", 0, 2)]).jobs
    own = record.statistics
    assert (alone.node.rate, alone.node.interval) == (own.median, own.interval)
    assert (alone.node.launches, alone.node.observations, alone.evenness) == (1, 20, None)
    assert (shared.node.interval, shared.node.spread, shared.node.observations) == (None, None, None)
    assert [found.observations for found in shared.tenants.values()] == [20, 20]
    (twice,) = summary_of([*launch("vae", 0), *launch("vae", 1)]).jobs
    assert (twice.node.launches, twice.node.interval) == (2, None)
    assert twice.node.spread is not None
    (half,) = summary_of(launch("vae")[:1]).jobs
    assert (half.verdict, half.node) == ("incomplete", None), "a user has no record"


def test_users_are_no_less_even_for_what_they_have_learned() -> None:
    plain, learning = (launch("cart", part=a_part(observed=seen)) for seen in ({}, {"work_learned": True}))
    evenness = [summary_of(records).jobs[0].evenness for records in (plain, learning)]
    assert (evenness[0] is None, evenness[1]) == (False, None)


def test_different_work_or_hosts_are_never_averaged() -> None:
    free = [replace(one, isolation=replace(one.isolation, backend="none")) for one in launch("vae", 1)]
    again = [replace(one, start_time="2026-05-01T00:00:00+00:00") for one in launch("vae", 0, mean_ms=250)]
    newest = "vae, repetition 0: there are records of several runs; the newest count."
    for records, lines, notes in (
        (free, [("vae (isolation v1)", "node1"), ("vae (isolation none)", "node1")], ()),
        (launch("vae", place={"hostname": "node2"}), [("vae", "node1"), ("vae", "node2")], ()),
        (again, [("vae", "node1")], (newest,)),
    ):
        summary = summary_of([*launch("vae"), *records])
        assert [(job.label, job.host) for job in summary.jobs] == lines
        assert [job.node and job.node.launches for job in summary.jobs] == [1] * len(lines)
        assert summary.notes == notes
    assert {*summary.jobs[0].members.columns("start_time")["start_time"]} == {again[0].start_time}


def test_similar_findings_show_the_greatest_effect_or_value() -> None:
    for field in ("effect", "value"):
        small, great = (warning(f"It lost {share} %.", rule="lost", **{field: share / 100}) for share in (100, 2))
        great = dataclasses.replace(great, **{field: 9.0})
        summary = summary_of([*launch("vae", 0, findings=(small,)), *launch("ssd", 0, findings=(great,))])
        (found,) = summary.findings
        assert (found.sentence, found.count, found.alike, found.jobs) == ("It lost 2 %.", 4, False, ["vae", "ssd"])


def test_findings_are_ranked_by_the_greatest_effect_of_a_record() -> None:
    def found(rule: str, effect: float) -> Finding:
        return warning("It lost some.", rule=rule, effect=effect)

    records = [*launch("vae", 0, findings=(found("wide", 0.05), found("steady", 0.1)))]
    records += launch("ssd", 0, findings=(found("wide", 0.2), found("steady", 0.1)))
    ranked = [(finding.rule, finding.effect) for finding in summary_of(records).findings]
    assert ranked == [("wide", 0.2), ("steady", 0.1)]


def test_score_is_geometric_mean_over_targets_of_one_device() -> None:
    records = [one for uid in range(3) for name in ("vae", "ssd") for one in launch(name, uid)]
    summary = summary_of(records)
    targets = {"vae": Target(4000.0), "ssd": Target(9000.0), "dcgan": Target(1.0), "scaling": Target(1.0)}
    found = scores(summary, targets, list(targets))["node1"]
    means = frame(records).groupby(["job", "uid"])["rate"].mean().map(np.log).groupby("job").mean()
    expected = np.exp((means["vae"] - np.log(4000) + means["ssd"] - np.log(9000)) / 2)
    assert found.value == pytest.approx(expected)
    assert found.missing == ("dcgan",)
    assert found.interval is not None
    weighted = scores(summary, targets, list(targets), {"vae": 3.0, "dcgan": 9.0})["node1"]
    expected = np.exp((3 * (means["vae"] - np.log(4000)) + means["ssd"] - np.log(9000)) / 4)
    assert weighted.value == pytest.approx(expected)


def test_in_a_terminal_and_off_it() -> None:
    grid = jobs_view(everything())
    for width in (80, 120):
        text = printed([grid], width)
        check_golden(GOLDEN / f"summary-{width}.txt", text)
        assert all(len(line) <= width for line in text.splitlines())
    text = printed([grid], 160, on_terminal=False)
    assert "foreign_load" not in text
    assert f"warning: {BUSY.sentence} {BUSY.remedy}  [2 records: vae]" in text
    text = markdown(grid)
    check_golden(GOLDEN / "summary.md", text)
    assert len({line.replace("\\|", "").count("|") for line in text.splitlines()}) == 1
    assert printed([jobs_view(summary_of([]))]) == ""
