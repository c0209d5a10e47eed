"""A suite where all goes well: what stands in its records and its summary."""

import json
import re

import pytest

from cotenant.machine.topology import discover
from cotenant.procfs import parse_list
from tenants.suites import Suites, job

SUMMARY = r"\[ 1/ 1\]\[  /  \] PASSED \| {5}\d\.\d\d MIN \| \S+/sums\.py\nTotal Time {5}\d\.\d\d s\n"


@pytest.mark.v1
def test_two_tenants_are_measured_side_by_side_each_in_its_slice(v1: Suites) -> None:
    ended = v1.run([job(args={"--repeat": 8, "--number": 20})], "--users", 2, "--reserve", discover().memory_bytes // 2)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    records = v1.records()
    assert [(record["tenant"], record["outcome"], record["completed"]) for record in records] == [
        (0, "completed", True),
        (1, "completed", True),
    ]
    processors = [set(parse_list(record["isolation"]["read_back"]["processors"])) for record in records]
    assert processors[0]
    assert processors[1]
    assert processors[0].isdisjoint(processors[1])
    for record in records:
        inside = record["isolation"]
        assert inside["backend"] == "v1"
        assert inside["read_back"]["memory_bytes"] == inside["planned"]["memory_bytes"]
        assert 0 < inside["planned"]["memory_bytes"] <= discover().memory_bytes // 4
        assert inside["counters"]["processor_ns"] > 0
        assert record["comparable"]
        assert len(record["observations"]) == 8
        assert record["train"]["count"] == 8 - record["skip"]
    assert re.fullmatch(SUMMARY, (v1.output / "summary.txt").read_text())


@pytest.mark.v1
def test_observations_lie_inside_the_common_load(v1: Suites) -> None:
    assert v1.run([job(args={"--repeat": 8, "--number": 20})], "--users", 2).returncode == 0
    meetings = [record["rendezvous"] for record in v1.records()]
    begin_ns = max(meeting["start_ns"] for meeting in meetings)
    end_ns = min(meeting["load_end_ns"] for meeting in meetings)
    assert len({meeting["t0_ns"] for meeting in meetings}) == 1
    for record, meeting in zip(v1.records(), meetings, strict=True):
        assert meeting["overlap"] >= 0.99
        assert meeting["ready_ns"] < meeting["t0_ns"] <= meeting["start_ns"]
        for one in record["observations"][record["skip"] :]:
            assert begin_ns <= one["start_ns"] < one["end_ns"] <= end_ns


def test_a_list_makes_one_launch_and_one_log_per_cell(loose: Suites) -> None:
    ended = loose.run([job(args={"--repeat": [3, 4], "--number": 2})], "--users", 1)
    assert ended.returncode == 0, ended.stderr
    assert [record["repeat"] for record in loose.records()] == [3, 4]
    assert sorted(path.name for path in (loose.output / "logs").iterdir()) == ["job.c1.R0.T0.log", "job.c2.R0.T0.log"]
    lines = (loose.output / "summary.txt").read_text().splitlines()
    assert [line[:7] for line in lines] == ["[ 1/ 2]", "[ 2/ 2]", "Total T"]


def test_two_jobs_of_one_name_are_kept_apart(loose: Suites) -> None:
    ended = loose.run([job(args={"--repeat": 3}), job(args={"--repeat": 4})], "--users", 1)
    assert ended.returncode == 0, ended.stderr
    assert [(record["name"], record["repeat"]) for record in loose.records()] == [("job", 3), ("job-2", 4)]
    assert sorted(path.name for path in (loose.output / "logs").iterdir()) == ["job-2.R0.T0.log", "job.R0.T0.log"]


@pytest.mark.v1
def test_a_launch_that_owns_the_machine_has_many_ranks_and_one_record(v1: Suites) -> None:
    words = {"3": "", "--repeat": 6, "--number": 3}
    ended = v1.run([job("ranks.sh", group="all", args=words)], "--users", 2)
    assert ended.returncode == 0, ended.stdout + v1.log()
    (record,) = v1.records()
    assert record["outcome"] == "completed"
    assert record["group"] == "all"
    assert sorted(record["rank_observations"]) == ["0", "1", "2"]
    assert {len(rows) for rows in record["rank_observations"].values()} == {6}
    assert set(parse_list(record["isolation"]["read_back"]["processors"])) == {one.id for one in discover().processors}


def test_a_rank_that_dies_ends_its_launch(loose: Suites) -> None:
    words = ["--at", "go", "--do", "exit", "5"]
    ended = loose.run([job("ranks.sh", "2", *words, group="all", args={"--repeat": 6})], "--users", 1)
    assert ended.returncode == 1
    (record,) = loose.records()
    assert record["outcome"] == "failed"
    # An older kernel does not say how a rank ended for which its parent has waited already.
    assert re.match(r"(Rank [01] of 2|It) ended (with exit status 5|before its record)", record["message"])
    assert "Its log ends: last words of the log" in record["message"]


def test_a_program_that_never_says_hello_runs_unsynchronised(loose: Suites) -> None:
    ended = loose.run([job("plain.sh", "0.1")], "--users", 2)
    assert ended.returncode == 0, ended.stderr
    for record in loose.records():
        assert record["outcome"] == "completed"
        assert record["train"] is None
        assert "unsynchronised" in [finding["rule"] for finding in record["findings"]]
    assert "plain in" in loose.log()


def test_a_caller_that_is_a_rank_itself_makes_no_rank_of_a_tenant(loose: Suites) -> None:
    """A pod of a training operator or a batch script says such variables to all that it starts."""
    caller = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "COTENANT_RANKS": "0;0"}
    jobs = [job(), job("echo.py", name="echo")]
    ended = loose.run(jobs, "--users", 2, "--ready-timeout", 20, **caller)
    assert (ended.returncode, loose.outcomes()) == (0, ["completed"] * 4)
    assert not caller.keys() & json.loads(loose.log("echo"))["env"].keys()


def test_what_could_not_be_measured_is_a_finding_only_for_those_who_ask(loose: Suites) -> None:
    quiet = loose.run([job()], "--users", 2, "--strict")
    told = loose.run([job()], "--users", 2, "--strict", "--verbose")
    assert (quiet.returncode, told.returncode) == (0, 0), quiet.stdout + told.stdout
    for record in loose.records():
        missing = {*record["meters"]["absent"], *record["isolation"]["uncounted"]}
        (found,) = [one for one in record["findings"] if one["rule"] == "meters_absent"]
        assert found["severity"] == "info"
        assert found["sentence"] == f"Not measured in this launch: {', '.join(sorted(missing))}."
        assert "--isolation require says what they need" in found["remedy"]
    assert "Not measured" not in quiet.stdout
    assert told.stdout.count("info: Not measured in this launch: ") == 1


def test_an_invalid_launch_fails_only_when_asked_to_be_strict(loose: Suites) -> None:
    jobs = [job("rogue.py", "--malformed", args={"--repeat": 6})]
    assert loose.run(jobs, "--users", 1).returncode == 0
    assert loose.run(jobs, "--users", 1, "--strict").returncode == 1
    assert loose.outcomes() == ["completed", "completed"]
    assert "malformed_part" in [finding["rule"] for finding in loose.records()[0]["findings"]]
