"""`tune` on real launches: it finds a size that fits, goes on after a break, and leaves a job file that runs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from commands.calling import call
from cotenant.commands import tune
from cotenant.commands.tune import _in_precisions, _tuners
from cotenant.errors import CotenantError
from cotenant.isolation.runs import RunName
from cotenant.launch.paths import RunPaths
from cotenant.launch.tuned_file import check_target
from cotenant.launch.tuning import trial_of, with_setting
from cotenant.results.journal import Launched, read_journal
from cotenant.suite.cells import Job, expand
from cotenant.suite.jobfile import load
from cotenant.tuning.trial import Setting
from report.making import launch
from results.made import a_part
from tenants.suites import ROOT, Suites, job, until

MIB = 1 << 20


@dataclass(frozen=True)
class FakeOptions:
    """The options of a suite that a search changes."""

    paths: RunPaths


def tune_line(suites: Suites, *flags: object) -> list[str]:
    line = [sys.executable, str(ROOT / "run.py"), "tune", "--cgroup-base", suites.name]
    return [*line, "--isolation", suites.isolation, "--out", str(out(suites)), *map(str, flags)]


def out(suites: Suites) -> Path:
    return suites.folder / "tweaked.json"


def tuned(suites: Suites, *flags: object, status: int | None = 0) -> subprocess.CompletedProcess[str]:
    asked = ("--users", 2, "--measured", "0.5s", "--only", "batch-size,channels-last")
    return suites.typed(tune_line(suites, *asked, *flags), 300, status)


def entry(suites: Suites) -> dict[str, Any]:
    (content,) = json.loads(out(suites).read_text())
    return dict(content)


def launches(suites: Suites) -> list[Launched]:
    journal = read_journal(suites.folder / "tweaked.tuning" / "job")
    return [entry for entry in journal.entries if isinstance(entry, Launched) and entry.finished]


@pytest.mark.slow
@pytest.mark.v1
def test_a_planted_limit_is_respected_and_the_new_file_runs(v1: Suites) -> None:
    """A row is a mebibyte, and a slice has about 120 of them: the rate rises until there."""
    jobs = v1.jobs([job("batched.py", name="job", args={"--batch-size": 4, "--repeat": 8, "--number": 8})])
    reserve = psutil.virtual_memory().total - 2 * 120 * MIB
    tuned(v1, "--jobs", jobs, "--reserve", reserve)
    found = entry(v1)
    sizes = {each["setting"]["--batch-size"]: each for each in found["tuned"]["settings"]}
    refused = [size for size, each in sizes.items() if each["outcome"] == "out_of_memory"]
    assert refused, sizes
    assert min(refused) > found["args"]["--batch-size"] >= 48
    assert found["tuned"]["changes"]["--batch-size"] == [4, found["args"]["--batch-size"]]
    assert found["tuned"]["gain"]["ratio"] > 2
    assert sum(each["n"] for each in sizes.values()) <= 17
    assert found["tuned"]["settings"][-1]["outcome"] == "no_effect"
    v1.run(None, "--jobs", out(v1), "--users", 2, "--reserve", reserve, status=0)
    assert [record["batch_size"] for record in v1.records()] == [found["args"]["--batch-size"]] * 2


@pytest.mark.slow
@pytest.mark.v1
def test_killed_or_interrupted_it_keeps_what_it_has_and_goes_on(v1: Suites) -> None:
    jobs = v1.jobs([job("batched.py", name="job", args={"--batch-size": 4, "--repeat": 8, "--number": 8})])
    flags = ("--users", 2, "--measured", "0.5s", "--only", "batch-size", "--jobs", jobs)
    for number, done in ((signal.SIGKILL, 0), (signal.SIGKILL, 1), (signal.SIGTERM, 2), (signal.SIGINT, 3)):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        runner = subprocess.Popen(tune_line(v1, *flags), env=v1.environment, cwd=v1.folder, **quiet)
        until(lambda: len(launches(v1)) >= done and v1.inhabitants(), "a launch runs behind so many", 60)  # noqa: B023
        before = launches(v1)
        time.sleep(0.2)
        runner.send_signal(number)
        assert runner.wait() == (-number if number == signal.SIGKILL else 130)
        assert launches(v1)[: len(before)] == before
        v1.gone(10)
    before = launches(v1)
    assert entry(v1)["tuned"]["ended"] == "interrupted"
    tuned(v1, "--jobs", jobs)
    assert launches(v1)[: len(before)] == before
    assert [each.uid for each in launches(v1)] == list(range(len(launches(v1))))
    assert entry(v1)["tuned"]["ended"] == "complete"
    # All of it is there: nothing runs, and the same file is written.
    content, count = out(v1).read_text(), len(launches(v1))
    tuned(v1, "--jobs", jobs)
    assert (out(v1).read_text(), len(launches(v1))) == (content, count)
    other = tuned(v1, "--jobs", jobs, "--users", 1, status=None)
    assert "began with other conditions" in other.stderr


@pytest.mark.slow
def test_what_cannot_be_tuned_is_named_and_nothing_is_written(loose: Suites) -> None:
    args = {"--batch-size": [4, 8]}
    jobs = loose.jobs([job("batched.py", name="none"), job("batched.py", name="several", args=args)])
    ended = tuned(loose, "--jobs", jobs, status=1)
    assert "none: left out: none names no batch size. Add --batch-size" in ended.stderr
    assert "several: left out: several has several cells." in ended.stderr
    assert not out(loose).exists()
    out(loose).write_text(jobs.read_text())
    assert "no search has written it" in tuned(loose, "--jobs", jobs, status=2).stderr


def test_a_setting_changes_what_it_names_and_no_item(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    args = {"-b": 8, "data": "", "--number": 6, "--workers": 1, "--lr": 0.1}
    path.write_text(json.dumps([{"name": "a", "cmd": "x", "cgroup": "student", "args": args}]))
    (own,) = load(path).jobs
    (cell,) = expand(own)

    def changed(setting: Setting) -> Job:
        return with_setting(cell, setting, Setting(8))

    larger = changed(Setting(32, (("--workers", 4), ("--channels-last", ""))))
    wanted = {"-b": 32, "data": "", "--number": 2, "--workers": 4, "--lr": 0.1, "--channels-last": ""}
    assert {flag: value for flag, (value,) in larger.args} == wanted
    assert larger.stem == "a.b32.workers4.channels-last"
    assert dict(changed(Setting(2)).args)["--number"] == (24,)
    assert changed(Setting(8)).args == own.args
    assert dict(changed(Setting(8, (("--no-compile", ""),))).args)["--no-compile"] == ("",)
    with pytest.raises(CotenantError, match="no search has written it"):
        check_target(path, tmp_path / "other.json")
    path.write_text(json.dumps([{"name": "a", "cmd": "x", "tuned": {"ended": "complete"}}]))
    check_target(path, tmp_path / "other.json")
    with pytest.raises(CotenantError, match="is the job file that is to be tuned"):
        check_target(path, path)


def test_a_launch_says_what_its_setting_is_worth() -> None:
    """Tenants have batches of 128; arguments of the job itself that have no effect do not condemn a knob."""
    part, base = a_part(item="image", ignored=["--batch-size"]), Setting(128)
    (first, _) = launch("a", part=part)
    for setting, outcome, items in (
        (base, "completed", 256),
        (base.with_flag("--compile", ""), "completed", 256),
        (Setting(256), "no_effect", None),
    ):
        trial = trial_of(setting, launch("a", uid=1, part=part), first, base)
        assert (trial.outcome, trial.items) == (outcome, items)


def test_a_job_file_with_curves_can_be_tuned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was refused for a --baseline that nobody had given."""
    words = ("tune", "--jobs", ROOT / "profiles" / "cotenancy.json", "--out", tmp_path / "absent" / "jobs.json")
    status, said, errors = call(capsys, *words)
    assert (status, said) == (2, "")
    assert "The directory of " in errors


def test_jobs_of_one_name_are_tuned_in_other_precisions_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps([{"name": "a", "cmd": "x"}] * 2))
    made = [precise for own in load(path).jobs for precise in _in_precisions(own, ["bf16"])]
    named = [("a", "a"), ("a_bf16", "a_bf16"), ("a", "a-2"), ("a_bf16", "a-2_bf16")]
    assert [(each.name, each.stem) for each in made] == named
    monkeypatch.setattr(tune, "Tuner", lambda options, _, job, __: (job, options.paths.output))
    options = FakeOptions(RunPaths.of_run(tmp_path, tmp_path, tmp_path, RunName()))
    assert list(_tuners(made, options, None, ()).values()) == [(each, tmp_path / each.stem) for each in made]
