"""mlbench-report against an independent calculation with pandas, by the formulas of the original."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotenant.report import mlbench
from cotenant.report.matrix import colour, matrix
from cotenant.results.columns import checked, schema
from cotenant.results.targets import Target

TARGETS = {"a": Target(100.0), "b": Target(50.0, 0.5, 0.1), "scaling": Target(1.0, 0.85, 0.02)}
JOBS = st.sampled_from(sorted(TARGETS))


def row(job: str, rate: float | None, run_id: int = 0, vcd: str = "0", **more: Any) -> dict[str, Any]:
    ended = {"completed": rate is not None, "outcome": "failed" if rate is None else "completed"}
    place = {"suite": "s", "group": "student", "name": job, "run_id": run_id, "vcd": vcd, "ours": False}
    return place | ended | {"rate_items_s": rate, "rate_mean_items_s": rate} | more


def rows_of(job: str, rate: float = 100.0) -> list[dict[str, Any]]:
    return [row(job, rate, uid) for uid in range(3)]


RATES = st.floats(0.5, 500)
# Suites of which none fails, and others.
records = st.sampled_from((RATES, st.none() | RATES)).flatmap(
    lambda rates: st.lists(st.builds(row, JOBS, rates, st.integers(0, 9), st.sampled_from("01")), max_size=40)
)


def frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    table = pd.DataFrame(
        [(one["name"], one["vcd"], one["rate_mean_items_s"]) for one in rows], columns=["job", "vcd", "rate"]
    )
    return table.astype({"rate": float})


def tabled(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return checked(pl.LazyFrame(rows, schema())).collect().with_columns(job="name")


@settings(max_examples=20)
@given(records)
def test_every_column_is_what_pandas_says(rows: list[dict[str, Any]]) -> None:
    rates = frame(rows).dropna().groupby("job")["rate"]
    means, sds, counts = rates.mean(), rates.std(), rates.count()
    lines = mlbench.results(tabled(rows), TARGETS).to_dicts()
    assert {line["job"] for line in lines if line["n"]} == {*counts[counts > 0].index}
    for line in lines:
        job, target = line["job"], TARGETS[line["job"]]
        assert line["n"] == counts.get(job, 0)
        if line["n"] == 0:
            assert (line["mean"], line["perf"], line["sd%"], line["perf_pass"]) == (None, None, None, False)
            continue
        assert line["mean"] == pytest.approx(means[job])
        assert line["perf"] == pytest.approx(means[job] / target.rate)
        if line["n"] == 1:
            assert (line["sd%"], line["sd%_pass"]) == (None, False)
        else:
            assert line["sd%"] == pytest.approx(100 * sds[job] / means[job], abs=1e-9)


@settings(max_examples=20)
@given(records)
def test_the_score_is_what_the_formula_says(rows: list[dict[str, Any]]) -> None:
    lines = mlbench.results(tabled(rows), TARGETS, list(TARGETS))
    table = frame(rows)
    failed = int(table["rate"].isna().sum())
    passed = mlbench.failures_pass(len(mlbench.failures(tabled(rows))), len(rows))
    assert passed == (len(rows) > 0 and failed / len(rows) <= 0.01)
    stats = table.dropna().groupby("job")["rate"].agg(["mean", "std"]).reindex(list(TARGETS))
    targets = pd.DataFrame(
        {job: (one.rate, one.least_share, one.most_spread) for job, one in TARGETS.items()}, ["rate", "share", "spread"]
    ).T
    perf = stats["mean"] / targets["rate"]
    pm = float((perf >= targets["share"]).mean())
    st_share = float((stats["std"] / stats["mean"] <= targets["spread"]).mean())
    pg = float(np.exp(np.log(perf.drop("scaling").dropna()).mean()))
    found = mlbench.score(lines, passed)
    assert found.pm == pytest.approx(pm)
    assert found.st == pytest.approx(st_share)
    assert found.missing == tuple(perf.index[perf.isna()])
    assert found.pg == (None if math.isnan(pg) else pytest.approx(pg))
    if found.pg is not None:
        assert found.present_only == pytest.approx(passed * (2 * pm + st_share + 5 * pg))
    assert (found.value is None) == bool(found.missing or found.pg is None)


@settings(max_examples=20)
@given(st.lists(st.floats(1, 100), min_size=1, max_size=12), st.lists(st.floats(1, 100), min_size=4, max_size=12))
def test_the_classic_table_is_trimmed(a: list[float], b: list[float]) -> None:
    """A repetition's rate is the mean over its two devices; the best and the worst repetition are left out."""
    rows = [
        row(job, share * rate, uid, vcd)
        for job, rates in (("a", a), ("b", b))
        for uid, rate in enumerate(rates)
        for vcd, share in (("0", 0.5), ("1", 1.5))
    ]
    lines, short = mlbench.classic(tabled(rows), {"a": TARGETS["a"], "b": TARGETS["b"]})
    assert ("a" in short) == (len(a) < 4)
    for job, _, result, sd, *_ in lines.iter_rows():
        rates = pd.Series(a if job == "a" else b)
        assert (result, sd) == (pytest.approx(rates.sort_values()[1:-1].mean()), pytest.approx(rates.std(), abs=1e-9))
    table = pd.DataFrame(lines.to_dicts())
    total = mlbench.classic_total(lines, complete=True)
    quantile = (table["sd"] / table["result"]).quantile(0.8)
    assert total == (
        pytest.approx(quantile),
        pytest.approx(((table["result"] - table["target"]) / table["target"]).mean()),
        total[0] < 0.05,
    )
    incomplete = mlbench.classic_total(lines, complete=False)
    assert incomplete == (*total[:2], False)


@settings(max_examples=20)
@given(records)
def test_the_matrix_is_relative_to_the_best_device(rows: list[dict[str, Any]]) -> None:
    devices, lines = matrix(tabled(rows))
    stats = frame(rows).dropna().groupby(["job", "vcd"])["rate"].agg(["mean", "min", "max"])
    assert lines.keys() == set(stats.index.get_level_values("job"))
    for job, of_devices in lines.items():
        of_job = stats.loc[job]
        for device, shares in of_devices.items():
            assert device in devices
            assert shares == pytest.approx(tuple(of_job.loc[device] / of_job["mean"].max()))
        assert max(mean for mean, _, _ in of_devices.values()) == pytest.approx(1)


def test_scaling_is_the_efficiency_of_its_largest_cell() -> None:
    cells = {1: None, 2: 0.95, 4: 0.9, 12: 0.8}
    rows = [
        row(f"scaling.c{cell}", 100.0 * cell, uid, ours=True, efficiency=found and found + uid / 100, group="all")
        for cell, found in cells.items()
        for uid in range(3)
    ]
    (line,) = mlbench.results(tabled(rows), {"scaling": TARGETS["scaling"]}).to_dicts()
    assert (line["n"], line["mean"], line["perf_pass"]) == (3, pytest.approx(0.81), False)
    assert mlbench.measured_targets(tabled(rows), TARGETS) == {"scaling": Target(pytest.approx(0.81), 0.85, 0.02)}
    # The job `scaling` is missing only where it is expected.
    rows = [row("a", 100.0), row("b", 50.0), row("scaling.c1", 5.0, ours=True, group="all")]
    assert mlbench.results(tabled(rows), TARGETS)["job"].to_list() == ["a", "b"]
    assert mlbench.score(mlbench.results(tabled(rows), TARGETS, list(TARGETS)), True).missing == ("scaling",)


def test_whole_machine_rates_are_left_out_of_device_means() -> None:
    whole = row("a", 700.0, vcd="0,1", group="all")
    rows = [whole, row("a", 100.0), row("b", 60.0, vcd="0,1", group="all")]
    assert mlbench.results(tabled(rows), TARGETS)["mean"].to_list() == [100.0, 60.0]
    (said,) = mlbench.beside_devices(tabled(rows))
    assert said == "a: 1 record of the whole machine does not count beside those of single devices."
    assert mlbench.beside_devices(tabled([whole, row("a", None)])) == []
    devices, lines = matrix(tabled([whole, row("b", 2.0)]))
    assert (devices, [*lines]) == (["0"], ["b"])


def test_eight_records_of_one_repetition_are_no_four_runs() -> None:
    tenants = [row("a", 100.0 + vcd, 0, str(vcd)) for vcd in range(8)]
    lines, short = mlbench.classic(tabled(tenants), {"a": TARGETS["a"]})
    assert (len(lines), short) == (0, ["a"])
    repeated = [row("a", 100.0 + uid, uid) for uid in range(4)]
    assert mlbench.classic(tabled(repeated), {"a": TARGETS["a"]})[0]["result"].to_list() == [101.5]


def test_what_is_no_number_is_a_failure_and_in_no_mean() -> None:
    rows = [
        row("a", 100.0),
        row("a", 1e9, losses_non_finite=3),
        row("a", 1e9, findings="overlap,budget", error_findings="overlap"),
        row("a", None, message="It died."),
    ]
    assert mlbench.results(tabled(rows), {"a": TARGETS["a"]})["mean"].to_list() == [100]
    reasons = [reason for *_, reason in mlbench.failures(tabled(rows))]
    assert reasons == ["3 losses are not finite", "INVALID: overlap", "failed: It died."]


def test_a_job_without_a_target_has_a_line_but_no_score() -> None:
    rows = rows_of("a")
    more = [*rows, *(row("new", 7.0 + uid, uid) for uid in range(3)), row("none", None)]
    lines = mlbench.results(tabled(more), {"a": TARGETS["a"]})
    assert lines["job"].to_list() == ["a", "new"]
    unknown = dict.fromkeys(("target", "perf_tgt", "sd%_tgt", "perf", "perf_pass", "sd%_pass"))
    assert lines.to_dicts()[1] == {"job": "new", "n": 3, "mean": 8.0, "sd%": pytest.approx(12.5)} | unknown
    assert mlbench.score(lines, True) == mlbench.score(mlbench.results(tabled(rows), {"a": TARGETS["a"]}), True)
    assert mlbench.results(tabled(more), {"a": TARGETS["a"]}, ["a"])["job"].to_list() == ["a"]
    assert mlbench.scored(tabled(more), tabled(more), {}, None) is None


def test_the_originals_default_score_leaves_three_jobs_out() -> None:
    targets = {"a": TARGETS["a"], "dcgan_all": Target(10.0)}
    lines = mlbench.results(tabled([row("a", 100.0, uid) for uid in range(2)]), targets)
    assert mlbench.score(lines, True).missing == ("dcgan_all",)
    score = mlbench.score(lines, True, mlbench.ORIGINAL_LEFT_OUT)
    assert (score.value, score.missing, score.left_out) == (pytest.approx(8), (), ("dcgan_all",))
    rows = [*rows_of("a"), row("dcgan_all.c2", None), row("dcgan_all", 10.0)]
    both = [mlbench.scored(tabled(rows), tabled(rows), TARGETS, ["a"], out) for out in ((), ("dcgan_all",))]
    found = [(len(failed), total, score.failures_pass) for _, failed, total, score in both]
    assert found == [(1, 5, False), (0, 3, True)], "failures of such jobs are in neither number"


def test_another_number_of_devices_than_expected_is_named() -> None:
    rows = [row("a", 1.0, vcd=str(vcd)) for vcd in range(3)] + [row("a", 9.0, vcd="0,1,2,3", group="all")]
    assert mlbench.other_devices(tabled(rows), 4) == ["There are records of 3 devices, not of 4."]
    assert mlbench.other_devices(tabled(rows), 3) == mlbench.other_devices(tabled(rows), None) == []
    nowhere = row("a", None, hostname="")
    here = [row("a", 1.0, vcd=str(vcd), hostname="node1") for vcd in range(3)]
    assert mlbench.other_devices(tabled([*here, nowhere]), 3) == []


def test_one_record_in_a_hundred_may_fail() -> None:
    passes = {(0, 0): False, (0, 1): True, (1, 100): True, (2, 199): False}
    assert {numbers: mlbench.failures_pass(*numbers) for numbers in passes} == passes


def test_zero_variance_and_one_launch() -> None:
    constant = mlbench.results(tabled(rows_of("a")), {"a": TARGETS["a"]})
    assert constant.select("sd%", "sd%_pass").rows() == [(0, True)]
    assert mlbench.score(constant, failures_passed=True).value == pytest.approx(2 + 1 + 5)
    assert mlbench.score(constant, failures_passed=True).price_per_score(1600) == pytest.approx(200)
    assert mlbench.score(constant, failures_passed=False).price_per_score(1600) is None


def test_the_colours_step_at_90_80_and_70() -> None:
    colours = {1.0: "green", 0.9: "green", 0.89: "yellow", 0.79: "dark_orange", 0.1: "red"}
    assert {share: colour(share) for share in colours} == colours


def test_a_job_name_with_non_ascii_digits_is_its_own_job() -> None:
    rows = [row("a", 100.0), row("a.c\u0663", 50.0)]
    lines = mlbench.results(tabled(rows), TARGETS).to_dicts()
    assert [(line["n"], line["mean"]) for line in lines if line["job"] == "a"] == [(1, 100.0)]
