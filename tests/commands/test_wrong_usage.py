"""A person's mistakes: one sentence on stderr, a documented exit status, no traceback, and nothing left behind."""

import json
import os
import re
import resource
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from commands.calling import Capture, call, check_refusals
from cotenant.commands.flags import duration, share
from cotenant.isolation.lock import SuiteLock
from cotenant.launch.prepared import PreparedSuite
from patience import HANG_S
from tenants.suites import ROOT, RUN, Suites, job

FLAGS: dict[str, str | tuple[str, ...]] = {
    "--users 100000": "Use fewer --users",
    "--timeout inf": "--timeout",
    "--reserve -1": "--reserve",
    "--reserve 900T": "reserve",
    "--cgroup-base ../up": "--cgroup-base",
    "--singularity image.sif": "apptainer or singularity",
    "--share time": "There is no device for --share time.",
    "--outdir \udcff": "UTF-8",
    "--jobs ''": "--jobs: '' ",
    "--jobs baseline.json": "baseline.json",
    "--jobs .": "is a directory",
    "-users 2": ("There is no flag '-users'.", "Did you mean '--users'?"),
}
FILES: dict[str, str | tuple[str, ...]] = {
    '[{"name": "a", "cmd": "/no/such/run.sh"}]': "/no/such/run.sh",
    '[{"name": "a", "cmd": "./' + "x" * 300 + '"}]': ("there is no", "beside jobs.json"),
    '[{"name": "a", "cmd": "./jobs.json"}]': ("not executable", "chmod +x"),
}


def words(suites: Suites, *flags: object) -> tuple[object, ...]:
    return "run", "--cgroup-base", suites.name, "--isolation", suites.isolation, *flags


def test_a_wrong_flag_is_one_sentence(here: Suites, capsys: Capture) -> None:
    """Checks that need no lock come before the lock, so that nobody waits for a suite to read of a typo."""
    with SuiteLock(Path(here.environment["COTENANT_LOCK"])):
        check_refusals(capsys, " ".join(map(str, words(here, "--jobs", here.jobs([job()])))), FLAGS)
    assert not here.output.exists()


def test_a_command_that_cannot_be_started_is_one_sentence(here: Suites, capsys: Capture) -> None:
    for content, texts in FILES.items():
        (here.folder / "jobs.json").write_text(content)
        check_refusals(capsys, " ".join(map(str, words(here))), {"--jobs jobs.json": texts})
    assert not here.output.exists()


def test_what_flags_stand_for() -> None:
    times = {"60": 60, "60s": 60, "2m": 120, "1h": 3600, "1.5M": 90, "0.5": 0.5, "1e3": 1000}
    assert {text: duration(text) for text in times} == times
    shares = {"1%": 0.01, "0.01": 0.01, "0.5%": 0.005, "50%": 0.5}
    assert {text: share(text) for text in shares} == shares


def test_places_that_cannot_be_written(here: Suites, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    given = words(here, "--jobs", here.jobs([job()]))
    for place in ("/proc/nothing", "/sys/nothing"):
        status, _, errors = call(capsys, *given, "--outdir", place)
        assert status == 2
        assert errors.startswith(f"cotenant: Nothing can be written to {place}")
    # --outdir does not help where BASE cannot be written.
    monkeypatch.setenv("BASE", "/proc/nothing")
    status, _, errors = call(capsys, *given, "--outdir", here.output)
    assert status == 2
    assert errors.startswith("cotenant: Nothing can be written to /proc/nothing/tmp/")
    assert "BASE names another place for temporary files." in errors
    assert not here.leftovers()


def limited(
    suites: Suites, size_bytes: int, jobs: list[dict[str, Any]], *flags: object, status: int = 2
) -> subprocess.CompletedProcess[str]:
    """Run a suite under a limit on the size of files, which stands for a full disk, and return its end."""
    ended = subprocess.run(
        suites.line(jobs, "--users", 1, *flags),
        env=suites.environment,
        cwd=suites.folder,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, size_bytes)),
    )
    assert ended.returncode == status
    assert ended.stderr.startswith("cotenant: Nothing can be written to")
    assert ended.stderr.count("\n") == 1
    assert not suites.leftovers()
    return ended


def test_a_full_disk(loose: Suites) -> None:
    """The first write fails half-way; or there is room for the probe, the log and the summary, not for a record."""
    at_first = limited(loose, 1024, [job()], "--outdir", loose.output)
    assert str(loose.output) in at_first.stderr
    assert "File too large" in at_first.stderr
    # The measurements are shown all the same.
    later = limited(loose, 70_000, [job(args={"--repeat": 700, "--number": 1, "--sums": 1}, name="measured")], status=1)
    assert "File too large" in later.stderr
    assert "95 % interval" in later.stdout
    assert re.search("clean|suspect", later.stdout)
    assert not loose.records()


def test_a_command_that_there_is_not(capsys: Capture) -> None:
    status, said, errors = call(capsys, "nonsense")
    assert (status, said) == (2, "")
    assert errors.startswith("cotenant: There is no command 'nonsense'. Commands: run, exec, capacity, list, plan, ")
    ended = subprocess.run([*RUN, "nonsense"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (2, errors)


def test_what_an_error_quotes_controls_no_terminal(capsys: Capture) -> None:
    assert call(capsys, "\x1b]0;mine\x07")[2].startswith("cotenant: There is no command '?]0;mine?'. ")


def test_the_version(capsys: Capture) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for line in (["--version"], ["--users", 2, "--version"]):
        with pytest.raises(SystemExit, match="0"):
            call(capsys, *line)
        assert capsys.readouterr() == (f"cotenant {project['version']}\n", "")


def test_a_second_suite_at_the_same_time(here: Suites, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = SuiteLock(Path(here.environment["COTENANT_LOCK"]))
    monkeypatch.setattr(PreparedSuite, "settle", lambda suite: pytest.fail("nothing begins before the lock"))
    with lock:
        status, _, errors = call(capsys, *words(here, "--jobs", here.jobs([job()])))
    assert status == 2
    assert errors.startswith("cotenant: Another suite is running")
    assert f"pid {os.getpid()}, " in errors
    assert f"interrupt it with `kill -INT {os.getpid()}`" in errors
    assert not here.output.exists()


def test_required_isolation_that_cannot_be_had(here: Suites, capsys: Capture) -> None:
    for asked in ("require", "v1"):
        flags = shlex.split(f"--isolation {asked} --cgroup-base nobody/made/this")
        status, _, errors = call(capsys, "run", "--jobs", here.jobs([job()]), *flags)
        assert status == 4
        assert errors.startswith("cotenant: Isolation ")
    assert not here.outcomes()


def test_too_large_an_environment_and_names_not_to_be_shown(loose: Suites) -> None:
    """The job with that environment fails with a sentence, and the next one runs."""
    place = loose.folder / os.fsdecode(b"\xff")
    jobs = [job(env={"A": "x" * 200_000}), job(name="日本")]
    ended = loose.run(jobs, "--users", 1, PYTHONIOENCODING="ascii:strict", BASE=str(place))
    assert (ended.returncode, ended.stderr) == (1, "")
    assert "could not be executed: Argument list too long." in ended.stdout
    assert "Traceback" not in (place / "output/logs/job.R0.T0.log").read_text()
    assert f"records: {loose.folder}/?" in ended.stdout
    assert "2/2 ??" in ended.stdout
    (record,) = (json.loads(path.read_text()) for path in (place / "output").glob("jobs.日本.R0.*.json"))
    assert (record["name"], record["outcome"]) == ("日本", "completed")
    assert len([*(place / "output").glob("jobs.*.json")]) == 2


@pytest.mark.slow
def test_a_suite_whose_output_nobody_takes(loose: Suites) -> None:
    """A reader that has left, and a standard output that is closed."""
    reader, writer = os.pipe()
    os.close(reader)
    line = loose.line([job()], "--users", 1)
    with os.fdopen(writer, "wb") as nobody:
        for words in (line, ["sh", "-c", 'exec "$@" >&-', "sh", *line, "--uid", "1"]):
            ended = subprocess.run(
                words, env=loose.environment, cwd=loose.folder, stdout=nobody, stderr=subprocess.PIPE, text=True
            )
            assert (ended.returncode, ended.stderr) == (0, "")
    assert loose.outcomes() == ["completed"] * 2
