"""`tune` on real launches: it finds a size that fits, goes on after a break, and leaves a job file that runs."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from cotenant.questions.tune import with_size
from cotenant.results.journal import Launched, read_journal
from cotenant.suite.cells import expand
from cotenant.suite.jobfile import load
from tenants.suites import RUN, Suites, job, until

MIB = 1 << 20
FOUR = job("batched.py", name="job", args={"--batch-size": 4, "--repeat": 8, "--number": 8})


def line(suites: Suites, *flags: object) -> list[str]:
    words = [*RUN, "tune", "--cgroup-base", suites.name, "--isolation", suites.isolation, "--out", "tuned.json"]
    return [*words, *map(str, flags)]


def entry(suites: Suites) -> dict[str, Any]:
    (content,) = json.loads((suites.folder / "tuned.json").read_text())
    return dict(content)


def launches(suites: Suites) -> list[Launched]:
    journal = read_journal(suites.folder / "tuned.tuning" / "job")
    return [entry for entry in journal.entries if isinstance(entry, Launched) and entry.finished]


@pytest.mark.slow
@pytest.mark.v1
def test_a_planted_limit_is_respected_and_the_new_file_runs(v1: Suites) -> None:
    """A row is a mebibyte, and a slice has about 120 of them: the rate rises until there."""
    reserve = psutil.virtual_memory().total - 2 * 120 * MIB
    asked = ("--jobs", v1.jobs([FOUR]), "--users", 2, "--reserve", reserve)
    ended = v1.typed(line(v1, *asked), 300, status=0)
    found = entry(v1)
    size = found["args"]["--batch-size"]
    assert f"batch {size} is taken, with " in ended.stdout
    refused = [each["size"] for each in found["tuned"]["launches"] if "out_of_memory" in each["flaw"]]
    assert min(refused) > size >= 48
    assert found["tuned"]["gain"]["ratio"] > 2
    v1.run(None, "--jobs", v1.folder / "tuned.json", "--users", 2, "--reserve", reserve, status=0)
    assert [record["batch_size"] for record in v1.records()] == [size] * 2


@pytest.mark.slow
@pytest.mark.v1
def test_killed_or_interrupted_it_goes_on(v1: Suites) -> None:
    asked = ("--users", 2, "--jobs", v1.jobs([FOUR]))
    for number, done in ((signal.SIGKILL, 1), (signal.SIGINT, 2)):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        runner = subprocess.Popen(line(v1, *asked), env=v1.environment, cwd=v1.folder, **quiet)
        until(lambda: len(launches(v1)) >= done and v1.inhabitants(), "a launch runs behind so many")  # noqa: B023
        before = launches(v1)
        time.sleep(0.2)
        runner.send_signal(number)
        assert runner.wait() == (-number if number == signal.SIGKILL else 130)
        assert launches(v1)[: len(before)] == before
        v1.gone(10)
    before = launches(v1)
    assert entry(v1)["tuned"]["ended"] == "interrupted"
    v1.typed(line(v1, *asked), 300, status=0)
    assert launches(v1)[: len(before)] == before
    assert [each.uid for each in launches(v1)] == list(range(len(launches(v1))))
    assert entry(v1)["tuned"]["ended"] == "complete"
    # All of it is there: nothing runs, and the same file is written.
    content, count = (v1.folder / "tuned.json").read_text(), len(launches(v1))
    v1.typed(line(v1, *asked), 300, status=0)
    assert ((v1.folder / "tuned.json").read_text(), len(launches(v1))) == (content, count)
    other = v1.typed(line(v1, *asked[2:], "--users", 1), 300, status=1)
    assert "began with other conditions" in other.stderr


@pytest.mark.slow
def test_what_cannot_be_tuned_is_named_and_nothing_is_written(loose: Suites) -> None:
    several = job("batched.py", name="several", args={"--batch-size": [4, 8]})
    broken = job("plain.sh", "0", "5", name="broken", args={"--batch-size": 4})
    jobs = loose.jobs([job("batched.py", name="none"), several, broken])
    ended = loose.typed(line(loose, "--jobs", jobs, "--users", 1), 60, status=1)
    assert "none: left out: none names no batch size. Add --batch-size" in ended.stderr
    assert "several: left out: several has several cells." in ended.stderr
    assert "broken: left out: It has no rate as it is: broken" in ended.stderr
    assert not (loose.folder / "tuned.json").exists()
    (loose.folder / "tuned.json").write_text(jobs.read_text())
    refused = loose.typed(line(loose, "--jobs", jobs), 60, status=2)
    assert "no search for jobs has written it" in refused.stderr


def test_another_size_leaves_the_items_of_an_observation(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    args = {"-b": 8, "data": "", "--number": 6, "--lr": 0.1}
    path.write_text(json.dumps([{"name": "a", "cmd": "x", "cgroup": "student", "args": args}]))
    (own,) = load(path).jobs
    (cell,) = expand(own)
    larger = with_size(cell, 32, 8)
    assert {flag: value for flag, (value,) in larger.args} == {"-b": 32, "data": "", "--number": 2, "--lr": 0.1}
    assert larger.stem == "a.b32"
    assert dict(with_size(cell, 2, 8).args)["--number"] == (24,)
    assert with_size(cell, 8, 8).args == own.args
