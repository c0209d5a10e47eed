"""Every number of `mlbench-report`, from files to its table and score, against pandas by the original's formulas."""

from __future__ import annotations

import csv
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from commands.test_damaged_files import said_by

TARGETS = pd.DataFrame(
    {"rate": [100.0, 50.0, 1.0, 30.0], "share": [0.5, 0.9, 0.85, 0.5], "spread": [0.05, 0.10, 0.02, 0.05]},
    index=["a", "b", "scaling", "missing"],
)
Record = tuple[str, int, int, float, str]
"""Job, uid, device, rate, and what became of it."""
FATES = st.sampled_from(["completed"] * 12 + ["failed", "losses", "nan", "invalid"])
RECORDS = st.lists(
    st.tuples(
        st.sampled_from("ab") | st.just("scaling"), st.integers(0, 5), st.integers(0, 1), st.floats(0.5, 200), FATES
    ),
    min_size=1,
    max_size=30,
    unique_by=lambda one: one[:3],
)
ONE_LAUNCH: list[Record] = [("a", 0, 0, 80.0, "completed"), ("b", 0, 0, 50.0, "completed")]
NO_VARIANCE: list[Record] = [(job, uid, 0, 40.0, "completed") for job in ("a", "b", "scaling") for uid in range(5)]
ALL_FAIL: list[Record] = [("a", uid, 0, 1.0, "failed") for uid in range(10, 14)]


def fields(one: Record) -> dict[str, Any]:
    job, uid, device, rate, fate = one
    number = {"nan": float("nan")}.get(fate, rate)
    return {
        "suite": "s",
        "name": job,
        "run_id": uid,
        "tenant": device,
        "vcd": str(device),
        "completed": fate != "failed",
        "outcome": "failed" if fate == "failed" else "completed",
        "train": {"avg": 1.0, "sd": 0.1, "count": 20},
        "train_item": {"avg": number, "min": number, "max": number},
        "losses_non_finite": 2 if fate == "losses" else 0,
        "findings": [{"rule": "overlap", "severity": "error", "sentence": "."}] if fate == "invalid" else [],
    }


def report(records: list[Record], *flags: str) -> tuple[str, list[dict[str, str]]]:
    """Return what mlbench-report prints of these records, and its table."""
    with tempfile.TemporaryDirectory() as directory:
        place, targets, table = (Path(directory, name) for name in ("output", "targets.csv", "table.csv"))
        place.mkdir()
        for number, one in enumerate(records):
            (place / f"{number}.json").write_text(json.dumps(fields(one)))
        lines = [",".join(map(str, (job, *numbers))) for job, *numbers in TARGETS.itertuples()]
        targets.write_text("\n".join(["job,target,perf_target,sd_target", *lines]) + "\n")
        words = ["mlbench-report", "--reports", str(place), "--gpu-model", str(targets), "--csv", str(table), *flags]
        status, said, errors = said_by(words, place)
        assert (status, errors) == (0, "")
        return said, list(csv.DictReader(table.read_text().splitlines()))


def counted(records: list[Record]) -> pd.DataFrame:
    frame = pd.DataFrame(records, columns=["job", "uid", "device", "rate", "fate"])
    return frame[frame["fate"] == "completed"]


def of_jobs(records: list[Record]) -> pd.DataFrame:
    """The results per job: n, mean, perf, sd / mean, and what of it passes; of scaling only where it was measured."""
    stats = counted(records).groupby("job")["rate"].agg(["count", "mean", "std"]).reindex(TARGETS.index)
    found = TARGETS.assign(n=stats["count"].fillna(0), mean=stats["mean"], perf=stats["mean"] / TARGETS["rate"])
    found["sd"] = stats["std"] / stats["mean"]
    found = found if found.loc["scaling", "n"] else found.drop("scaling")
    return found.assign(perf_pass=found["perf"] >= found["share"], sd_pass=found["sd"] <= found["spread"])


@settings(max_examples=15, deadline=None)
@given(RECORDS)
@example(ONE_LAUNCH)
@example(NO_VARIANCE)
@example(ALL_FAIL)
def test_every_column_and_the_score_are_what_pandas_says(records: list[Record]) -> None:
    said, table = report(records, "--price", "1000")
    expected = of_jobs(records)
    assert [line["job"] for line in table] == list(expected.index)
    for line in table:
        of_job = expected.loc[line["job"]]
        assert int(line["n"]) == of_job["n"]
        assert float(line["target"]) == of_job["rate"]
        assert float(line["perf_tgt"]) == of_job["share"]
        assert float(line["sd%_tgt"]) == pytest.approx(100 * of_job["spread"])
        for column, value in (("mean", of_job["mean"]), ("perf", of_job["perf"]), ("sd%", 100 * of_job["sd"])):
            if pd.isna(value):
                assert line[column] == "", column
            else:
                assert float(line[column]) == pytest.approx(value, abs=1e-9), column
        assert bool(int(line["perf_pass"])) == of_job["perf_pass"]
        assert bool(int(line["sd%_pass"])) == of_job["sd_pass"]

    failed = sum(one[-1] != "completed" for one in records)
    assert f"{failed} of {len(records)} records failed" in said
    assert "Score -: without" in said
    assert "missing" in said.partition("Score -: without ")[2].splitlines()[0]


@settings(max_examples=15, deadline=None)
@given(RECORDS)
@example([*NO_VARIANCE, *ALL_FAIL])
@example(NO_VARIANCE)
def test_the_score_of_a_whole_suite_is_the_formula(records: list[Record]) -> None:
    whole = [*records, *(("missing", uid, 0, 20.0 + uid, "completed") for uid in range(2))]
    said, _ = report(whole, "--price", "1000")
    expected = of_jobs(whole)
    failed = sum(one[-1] != "completed" for one in whole)
    bf = failed <= 0.01 * len(whole)
    perfs = expected["perf"].drop("scaling", errors="ignore").dropna()
    score = bf * (2 * expected["perf_pass"].mean() + expected["sd_pass"].mean() + 5 * np.exp(np.log(perfs).mean()))
    missing = [job for job in expected.index if expected.loc[job, "n"] == 0]
    found = re.search(r"Score = .*= ([\d.e+-]+)$", said, re.MULTILINE)
    if missing:
        assert found is None
        assert f"Score -: without {', '.join(missing)}" in said
    else:
        assert found is not None
        assert float(found[1]) == pytest.approx(score, rel=2e-4, abs=1e-9)
        rpp = said.partition("RPP = price / score = ")[2].splitlines()[0].replace(",", "")
        assert rpp == "-" if score == 0 else float(rpp) == pytest.approx(1000 / score, rel=1e-3)


@settings(max_examples=10, deadline=None)
@given(RECORDS)
@example(NO_VARIANCE)
def test_the_older_table_has_trimmed_means(records: list[Record]) -> None:
    said, _ = report(records, "--classic")
    for job, target in of_jobs(records)["rate"].items():
        of_job = counted(records).query("job == @job")
        rates = of_job["rate"].sort_values()
        if of_job["uid"].nunique() < 4:
            (short,) = [line for line in said.splitlines() if line.startswith("Fewer than 4 repetitions, so no line: ")]
            assert job in short.partition(": ")[2].split(", ")
            continue
        lines = [line.replace(",", "").split() for line in said.splitlines() if line.split()[:1] == [job]]
        kept = rates.iloc[1:-1]
        numbers = [float(word) for word in lines[0][1:] if re.fullmatch(r"[\d.e+-]+", word)]
        assert numbers[0] == pytest.approx(target, rel=1e-3)
        assert numbers[1] == pytest.approx(kept.mean(), rel=2e-3)
        assert numbers[2] == pytest.approx(kept.std(), rel=2e-2, abs=2e-3 * kept.mean())
