"""Suites where all goes well, or nearly: the contents of their records, logs and summaries."""

import json
import re

import pytest

from cotenant.machine.topology import discover
from cotenant.procfs import parse_list
from tenants.suites import ByJob, Suites, found, job

RANK = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "COTENANT_RANKS": "0;0"}
"""The variables that a training operator's pod or a batch script sets for every process that it starts."""


@pytest.mark.v1
def test_users_are_measured_in_slices_and_ranks_on_the_whole(v1: Suites) -> None:
    flags = ["--users", 2, "--reserve", discover().memory_bytes // 2, "--strict"]
    words = {"3": "", "--repeat": 6, "--number": 3}
    v1.run(
        [job(args={"--repeat": 8, "--number": 20}), job("ranks.sh", group="all", args=words, name="w")],
        *flags,
        status=0,
    )
    *records, whole = v1.records()
    ends = [(record["tenant"], record["outcome"], record["completed"]) for record in records]
    assert ends == [(0, "completed", True), (1, "completed", True)]
    processors = [set(parse_list(record["isolation"]["read_back"]["processors"])) for record in records]
    assert all(processors)
    assert processors[0].isdisjoint(processors[1])
    meetings = [record["rendezvous"] for record in records]
    begin_ns = max(meeting["start_ns"] for meeting in meetings)
    end_ns = min(meeting["load_end_ns"] for meeting in meetings)
    assert len({meeting["t0_ns"] for meeting in meetings}) == 1
    for record, meeting in zip(records, meetings, strict=True):
        inside = record["isolation"]
        assert inside["backend"] == "v1"
        assert inside["read_back"]["memory_bytes"] == inside["planned"]["memory_bytes"]
        assert 0 < inside["planned"]["memory_bytes"] <= discover().memory_bytes // 4
        assert inside["counters"]["processor_ns"] > 0
        assert record["comparable"]
        assert len(record["observations"]) == 8
        assert record["train"]["count"] == 8 - record["skip"]
        assert meeting["overlap"] >= 0.99
        assert meeting["ready_ns"] < meeting["t0_ns"] <= meeting["start_ns"]
        for row in record["observations"][record["skip"] :]:
            assert begin_ns <= row["start_ns"] < row["end_ns"] <= end_ns
    passed = r"\[ 1/ 2\]\[  /  \] PASSED \| {5}\d\.\d\d MIN \| \S+/sums\.py\n.*\nTotal Time {5}\d\.\d\d s\n"
    assert re.fullmatch(passed, (v1.output / "summary.txt").read_text())
    assert (whole["outcome"], whole["group"]) == ("completed", "all")
    assert sorted(whole["rank_observations"]) == ["0", "1", "2"]
    assert {len(rows) for rows in whole["rank_observations"].values()} == {6}
    everywhere = {processor.id for processor in discover().processors}
    assert set(parse_list(whole["isolation"]["read_back"]["processors"])) == everywhere


@pytest.fixture(scope="module")
def records(shared: Suites) -> ByJob:
    """Those of one suite, whose caller is a rank itself, and which passes without --strict."""
    jobs = [job("echo.py", name="echo"), job("rogue.py", "--malformed", name="malformed", args={"--repeat": 6})]
    ended = shared.run(jobs, "--users", 2, "--verbose", **RANK, status=0)
    lines = [line for line in ended.stdout.splitlines() if line.startswith("info: Not measured in this launch: ")]
    assert 1 <= len(lines) == len({*lines})
    return shared.by_job()


def test_a_caller_that_is_a_rank_makes_no_rank_of_a_tenant(records: ByJob, shared: Suites) -> None:
    assert [record["outcome"] for record in records["echo"]] == ["completed"] * 2
    assert not RANK.keys() & json.loads(shared.log("echo"))["env"].keys()


def test_what_could_not_be_measured_is_a_finding(records: ByJob) -> None:
    for record in records["echo"]:
        missing = {*record["meters"]["absent"], *record["isolation"]["uncounted"]}
        (finding,) = found(record, "meters_absent")
        assert finding["severity"] == "info"
        assert finding["sentence"] == f"Not measured in this launch: {', '.join(sorted(missing))}."
        assert "--isolation require says what they need" in finding["remedy"]


def test_an_invalid_launch_fails_only_in_strict_mode(records: ByJob, loose: Suites) -> None:
    for record in records["malformed"]:
        assert record["outcome"] == "completed"
        assert found(record, "malformed_part")
    jobs = [job("rogue.py", "--malformed", args={"--repeat": 6})]
    strict = loose.run(jobs, "--users", 1, "--strict", status=1)
    assert "Not measured" not in strict.stdout
