"""`doctor` as a person calls it: its output, its exit status, and a suite that gives the same findings."""

import json
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from commands.calling import Capture, call
from cotenant.commands import doctor
from cotenant.findings.facts import SelfTest
from cotenant.machine.cpu import Speed
from cotenant.machine.load import Load
from tenants.suites import RUN, Suites, job, script


@pytest.fixture
def examine(here: Suites, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Callable[..., tuple[int, Any]]:
    """Return a function that calls `doctor` without its self-test (tested elsewhere) for its exit status and output."""
    monkeypatch.setenv("NO_COLOR", "1")

    def run(jobs: list[dict[str, Any]], *flags: object) -> tuple[int, Any]:
        words = ["doctor", "--quick", "--jobs", here.jobs(jobs), "--isolation", here.isolation]
        status, said, errors = call(capsys, *words, "--cgroup-base", here.name, *flags)
        assert bool(errors) == (status == 2)
        if "--json" not in flags or errors:
            return status, said + errors
        return status, answers_in(said)

    return run


def answers_in(said: str) -> dict[str, dict[str, Any]]:
    """Return the rows of checks by their names, each with its findings."""
    document = json.loads(said)
    assert (document["schema"], document["view"]) == ("cotenant-view-1", "doctor")
    answers = {row["check"]: row | {"findings": list[Any]()} for row in document["rows"]}
    assert len(answers) == len(document["rows"])
    for finding in document["parts"]["findings"]["rows"]:
        answers[finding["check"]]["findings"].append(finding)
    return answers


Examine = Callable[..., tuple[int, Any]]


def rules(answer: dict[str, Any]) -> list[str]:
    return [finding["rule"] for finding in answer["findings"]]


def test_a_table_by_group_without_escapes(loose: Suites, examine: Examine) -> None:
    status, said = examine([job()])
    assert status == 0, said
    groups = [line for line in said.splitlines() if not line.startswith(" ")]
    assert groups[:-1] == ["isolation", "processors", "memory", "devices", "disk", "software", "data"]
    assert groups[-1].split(":")[0].endswith("checks")
    assert "\x1b" not in said
    assert not loose.base.exists()
    assert not loose.leftovers()


def test_what_cannot_run_is_an_error(loose: Suites, examine: Examine) -> None:
    script(loose.folder / "odd/pytorch/run.sh")
    jobs = [
        {"name": "odd", "cmd": "odd/pytorch/run.sh", "args": {"--data": "$DATA_DIRECTORY/x"}, "cgroup": "student"},
        {"name": "gone", "cmd": "gone.sh", "args": {}},
    ]
    status, answers = examine(jobs, "--json")
    assert status == 1
    assert rules(answers["jobs"]) == ["job_not_startable"]
    assert rules(answers["input"]) == ["missing_data"]
    assert answers["input"]["severity"] == "error"
    assert examine(jobs, "--name", "none*")[0] == 2


def test_flags_of_a_run_say_what_is_asked_about(loose: Suites, examine: Examine) -> None:
    _, answers = examine([job()], "--json", "--users", 1)
    assert answers["slices"]["answer"].startswith("1 user: ")
    assert loose.isolation in answers["backend"]["answer"]
    status, crowded = examine([job()], "--json", "--users", 100_000)
    assert status == 1
    assert rules(crowded["slices"]) == ["no_plan"]
    assert "jobs" not in crowded
    status, answers = examine([job()], "--json", "--isolation", "require", "--cgroup-base", "no/such/base")
    assert status == 1
    assert rules(answers["backend"]) == ["not_isolated"]
    assert answers["slices"]["severity"] != "error"


def test_what_takes_seconds_is_asked_unless_it_is_to_be_quick(
    loose: Suites, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("BASE", "DATA_DIRECTORY", "OUTPUT_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(loose.folder)
    monkeypatch.setattr(doctor, "self_test", lambda: SelfTest(torch="2.14.1", lapack_error="RuntimeError: no LAPACK"))
    monkeypatch.setattr(doctor, "load_over", lambda window_s: Load(0.0, 0, 0.0))
    monkeypatch.setattr(doctor, "speed_over", lambda window_s: Speed(50.0, 90.0))
    words = ["--jobs", str(loose.jobs([job()])), "--isolation", loose.isolation, "--json"]
    assert doctor.main(words) == 1
    answers = answers_in(capsys.readouterr().out)
    assert [finding["rule"] for finding in answers["LAPACK"]["findings"]] == ["lapack"]
    assert [finding["rule"] for finding in answers["even speed"]["findings"]] == ["speed_uneven"]
    assert doctor.main([*words, "--quick"]) == 0
    quick = capsys.readouterr().out
    assert "LAPACK" not in quick
    assert "even speed" not in quick


def test_a_bad_host_is_an_error_to_a_process_of_its_own(loose: Suites) -> None:
    words = ["--jobs", str(loose.jobs([job()])), "--isolation", loose.isolation, "--json"]
    broken = script(loose.folder / "broken/torch/__init__.py", "raise ImportError('libcudart.so: wrong ELF class')")
    bad = loose.typed([*RUN, "doctor", *words], 60, status=1, PYTHONPATH=str(broken.parents[1]))
    answers = answers_in(bad.stdout)
    assert len(answers) > 20
    assert rules(answers["torch"]) == ["torch_broken"]


def test_a_missing_package_of_our_own_is_one_sentence(loose: Suites) -> None:
    ended = loose.typed([sys.executable, "-I", "-S", RUN[1], "doctor", "--quick"], 60, status=2)
    assert re.match(r"cotenant: The package '\w+' is missing. pip install", ended.stderr)


def test_a_suite_says_it_once_and_keeps_it_in_every_record(loose: Suites) -> None:
    tight = ("--reserve", "0", "--users", "2", "--isolation", "affinity")
    ended = loose.run([job(args={"--repeat": 8})], *tight)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    records = loose.records()
    assert len(records) == 2
    warnings = [line for line in ended.stdout.splitlines() if line.startswith("warning: ")]
    heading = ended.stdout.partition("1/1 job")[0]
    # Without a reserve the slices promise all memory, more than any host has free.
    (promised,) = [line for line in warnings if "The slices promise" in line]
    assert promised in heading
    for record in records:
        kept = [finding["rule"] for finding in record["findings"]]
        assert kept.count("memory_taken") == 1
        assert len(kept) == len(set(kept))
        assert record["meters"]["host"].keys() >= {"stolen_share", "swapped_in_bytes", "memory_kills_outside"}
