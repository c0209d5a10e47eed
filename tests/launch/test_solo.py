"""`--baseline whole`: behind each launch its tenants one at a time, as they are beside the others."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from cotenant.results.columns import JOB
from cotenant.results.launches import launches_of
from cotenant.results.read import read_records
from tenants.suites import SUMS, Suites, job, script


def solo(suites: Suites) -> list[dict[str, Any]]:
    return [record for record in suites.records() if record["solo"]]


def rates(records: list[dict[str, Any]]) -> list[float]:
    return [record["statistics"]["median"] for record in records]


@pytest.fixture(scope="module")
def printed(shared: Suites) -> str:
    """The output of a suite of a job, one that fails when it is started again, and one for the whole machine."""
    lines = ('[ -e "$BASE/seen$JOB_ID" ] && exit 3', 'touch "$BASE/seen$JOB_ID"', SUMS)
    again = job(name="again") | {"cmd": str(script(shared.folder / "again.sh", *lines))}
    flags = ("--users", 2, "--baseline", "whole", "--uid", 3, "--verbose")
    return shared.run([job(), again, job(name="whole", group="all")], *flags, status=1).stdout


def test_each_tenant_is_launched_alone_right_after_its_launch(shared: Suites, printed: str) -> None:
    """Without slices alone means the whole machine. Files keep their form, and no reader takes it for its job."""
    assert "7 launches (4 of one user alone on the whole machine, without slices; baseline whole)" in printed
    assert "job: user 0 alone on the whole machine, without a slice: " in printed
    assert [line[:9] for line in shared.summary()[:-1]] == [f"[ {at}/ 7][ " for at in range(1, 8)]
    records = shared.records()
    kinds = [(f"{name}{kind}", users) for name in ("job", "again") for kind, users in (("", 2), (".solo", 1))]
    launched = [(record["name"], record["tenant"], record["tenants"]) for record in records]
    assert launched == [*((name, tenant, users) for name, users in kinds for tenant in (0, 1)), ("whole", 0, 1)]
    assert records[0]["unique_id"] == records[2]["unique_id"] != ""
    alone = solo(shared)[:2]
    assert [(record["name"], record["seed"]) for record in alone] == [("job.solo", 103), ("job.solo", 203)]
    assert all(record["rendezvous"]["overlap"] == 1 for record in alone)
    assert {record["isolation"]["backend"] for record in alone} == {"none"}
    files = sorted(path.name.rsplit(".", 2)[0] for path in shared.output.glob("*.job*.D*.json"))
    assert files == sorted(f"jobs.{name}.R3.D{device}" for name in ("job", "job.solo") for device in (0, 1))
    logs = sorted(path.name for path in (shared.output / "logs").iterdir())
    assert logs == sorted([*(f"{name}.R3.T{tenant}.log" for name, _ in kinds for tenant in (0, 1)), "whole.R3.T0.log"])
    resolved = json.loads((shared.output / "jobs.R3.resolved").read_text())
    planned = [(start["label"], start["solo"], len(start["tenants"])) for start in resolved[:3]]
    assert planned == [("job", False, 2), ("job.solo", True, 1), ("job.solo", True, 1)]
    frame = read_records([Path(shared.output)]).frame
    launches, _ = launches_of(frame)
    (only,) = launches["job"]
    assert only.rate == pytest.approx(sum(rates(records[:2])))
    assert {*frame.select(JOB.alias("job"))["job"]} == {"job", "again", "whole"}


def test_a_failure_alone_is_a_failure_and_no_ratio(shared: Suites, printed: str) -> None:
    assert [record["outcome"] for record in shared.by_job()["again.solo"]] == ["failed"] * 2
    assert [line[7:24] for line in shared.summary()[4:6]] == ["[ 1/ 1] FAILED | "] * 2
    assert len(list(shared.output.glob("jobs.again.solo.R3.D?.FAIL.*.json"))) == 2
    assert "again alone, repetition 3: user 1 failed." in printed
    assert re.search(r"^again +all +- ", printed, re.MULTILINE)


@pytest.mark.slow
def test_tenants_share_a_processor_and_have_it_alone_for_once(loose: Suites) -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        flags = ("--users", 2, "--baseline", "whole", "--isolation", "affinity", "--verbose")
        ended = loose.run([job()], *flags, status=0)
    finally:
        os.sched_setaffinity(0, allowed)
    assert f"2 users: processors {min(allowed)} (shared by 2)" in ended.stdout
    together, alone = (list(filter(lambda record: record["solo"] == lone, loose.records())) for lone in (False, True))
    assert [(record["sharers"], record["cpu_cores"]) for record in (*together, *alone)] == [(2, 1)] * 2 + [(1, 1)] * 2
    assert [record["rendezvous"]["overlap"] for record in together] == [1, 1]
    planned, planned_alone = ([record["isolation"]["planned"] for record in of] for of in (together, alone))
    assert planned == planned_alone
    assert ["weight" in record["isolation"]["unenforced"] for record in (together[0], alone[0])] == [True, False]
    memory = together[0]["isolation"]["planned"]["memory_bytes"]
    assert 2 * memory <= together[0]["machine"]["memory_bytes"]
    assert "processors shared by 2" in ended.stdout
    assert "1 - (/ alone) is what neighbours cost" in ended.stdout


def test_a_job_called_like_a_tenant_alone_is_refused_beside_it(loose: Suites) -> None:
    jobs = [job(), job(name="job.solo")]
    ended = loose.run(jobs, "--users", 2, "--baseline", "whole", status=2)
    assert "Job 'job.solo' has the name of a launch of a user of 'job' alone. Rename one" in ended.stderr
    loose.run(jobs, "--users", 2, "--baseline", "whole", "--dry", "--name", "job.solo", status=0)


@pytest.mark.v1
def test_alone_it_is_what_it_is_beside_the_others(v1: Suites) -> None:
    """The same command, environment and slice; only the log is another."""
    v1.run([job("echo.py", args={"--n": "$DEVICE_TOTAL"})], "--users", 2, "--baseline", "whole", status=0)
    for tenant in (0, 1):
        beside, alone = json.loads(v1.log("job", tenant)), json.loads(v1.log("job.solo", tenant))
        assert (alone["argv"], alone["processors"]) == (beside["argv"], beside["processors"])
        assert alone["argv"][:2] == ["--n", "2"]
        different = {name for name, value in beside["env"].items() if alone["env"].get(name) != value}
        assert different == {"COTENANT_LOG"}
        assert alone["env"].keys() == beside["env"].keys()
    planned = {record["tenant"]: record["isolation"]["planned"] for record in v1.records() if not record["solo"]}
    for record in solo(v1):
        assert record["isolation"]["planned"] == planned[record["tenant"]]
        assert record["isolation"]["read_back"]["processors"] == planned[record["tenant"]]["processors"]
    v1.gone(2)


def test_with_counted_observations_a_user_continues_alone(loose: Suites) -> None:
    """Its observations are as long as those beside the others, and about as many as fill two seconds."""
    flags = ("--repeat", 40, "--number", 4, "--sleep", 0.012, "--sums", 20)
    words = ("--users", 2, "--baseline", "blocks", "--", "--repeat", 40)
    ended = loose.run([job("sums.py", *flags)], *words, status=0)
    assert "1 launch (baseline quick: a user of each job and kind of slice goes on alone for 2 s" in ended.stdout
    assert "no blocks, as --repeat says how much is observed" in ended.stdout
    beside, alone, _ = sorted(loose.records(), key=lambda record: (record["tenant"], record["solo"]))
    assert (alone["baseline"], alone["stands_for"], alone["tenant"], alone["name"]) == ("quick", [0, 1], 0, "job.solo")
    assert (beside["baseline"], beside["stands_for"]) == (None, [])
    assert alone["given"]["number"] == beside["given"]["number"] == 4
    assert len(beside["observations"]) == beside["given"]["repeat"] == 40
    assert min(row["start_ns"] for row in alone["observations"]) > beside["rendezvous"]["load_end_ns"]
    assert alone["statistics"]["interval"] is not None
    assert 6 <= alone["statistics"]["n"] <= 50, "of 48 ms each: two seconds"
    assert alone["asked"] == beside["asked"], "equal work"
    (why,) = [each for each in beside["findings"] if each["rule"] == "no_blocks"]
    assert "--repeat says how much is observed" in why["sentence"]
    assert not [each for each in alone["findings"] if each["rule"] in ("no_blocks", "not_alone")]


@pytest.mark.slow
def test_where_nobody_has_neighbours_a_baseline_adds_nothing(loose: Suites) -> None:
    ended = loose.run([job(), job(name="whole", group="all")], "--users", 1, "--baseline", "whole", status=0)
    assert "2 launches (--baseline whole adds none: no job here has several users)" in ended.stdout
    assert solo(loose) == []
