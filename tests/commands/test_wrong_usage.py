"""What a person can get wrong: one sentence on stderr, a documented exit status, no traceback, and nothing left."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from cotenant.isolation.lock import SuiteLock
from tenants.suites import ROOT, Suites, has_v1, job


def refused(ended: "subprocess.CompletedProcess[str]", status: int, *texts: str) -> None:
    """Assert that a suite did not run, and that its one line of complaint holds these texts."""
    assert ended.returncode == status, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stderr.startswith("cotenant: ")
    assert ended.stderr.count("\n") == 1
    for text in texts:
        assert text in ended.stderr


FLAGS: list[tuple[list[object], list[str]]] = [
    (["--nmae", "x"], ["There is no flag '--nmae'.", "Did you mean '--name'?"]),
    (["--isolation", "strong"], ["--isolation", "'strong'"]),
    (["--name", "vea"], ["vea", "job"]),
    (["--name", "zz*"], ["zz*", "job"]),
    (["--exclude", "*"], []),
    (["--users", 0], ["--users 1 or more"]),
    (["--users", -3], ["--users 1 or more"]),
    (["--users", 100_000], [f"--users {len(os.sched_getaffinity(0))} or fewer"]),
    (["--users", "two"], ["--users", "'two'"]),
    (["--uid", -1], ["--uid"]),
    (["--uid", "x"], ["--uid", "'x'"]),
    (["--timeout", -5], ["--timeout"]),
    (["--timeout", 0], ["--timeout"]),
    (["--timeout", "nan"], ["--timeout"]),
    (["--timeout", "inf"], ["--timeout"]),
    (["--ready-timeout", "0s"], ["--ready-timeout", "'0s'"]),
    (["--budget", "soon"], ["--budget", "'soon' is no time such as 60, 60s, 2m or 1h"]),
    (["--budget", "s"], ["--budget", "'s' is no time"]),
    (["--budget", ""], ["--budget", "'' is no time"]),
    (["--budget", "-1m"], ["--budget"]),
    (["--budget", "60ms"], ["--budget", "'60ms' is no time"]),
    (["--budgte", "60"], ["There is no flag '--budgte'.", "Did you mean '--budget'?"]),
    (["--until-interval", "tight"], ["--until-interval", "'tight' is no share such as 1% or 0.01"]),
    (["--until-interval", "1"], ["--until-interval", "'1' does not lie between 0 and 1: 1% is 0.01"]),
    (["--until-interval", "0%"], ["--until-interval", "'0%'"]),
    (["--until-interval", "100%"], ["--until-interval", "'100%'"]),
    (["--until-interval", "nan"], ["--until-interval", "'nan'"]),
    (["--reserve", "much"], ["--reserve", "'much'"]),
    (["--reserve", "2X"], ["--reserve", "'2X'"]),
    (["--reserve", "-1"], ["--reserve"]),
    (["--reserve", "900T"], ["reserve"]),
    (["--cgroup-base", "../up"], ["--cgroup-base"]),
    (["--singularity", "image.sif"], ["apptainer or singularity"]),
    (["--outdir", ""], ["--outdir: it is empty"]),
    (["--jobs", ""], ["--jobs: '' "]),
    (["extra"], ["extra"]),
    (["-users", 2], ["There is no flag '-users'.", "Did you mean '--users'?"]),
    (["--frobnicate"], ["There is no flag '--frobnicate'. --help lists the flags"]),
    (["--name"], ["--name"]),
]


@pytest.mark.parametrize(("flags", "texts"), FLAGS, ids=lambda value: " ".join(map(str, value))[:30] or "-")
def test_a_wrong_flag_is_one_sentence(loose: Suites, flags: list[object], texts: list[str]) -> None:
    refused(loose.run([job()], *flags), 2, *texts)
    assert not loose.output.exists()


FILES: list[tuple[str, list[str]]] = [
    ("[{]", ["jobs.json:1:3"]),
    ('[\n {"name": "a" "cmd": "b"}]', ["jobs.json:2:15"]),
    ('[{"name": "a", "cmd": "x", "comand": "b"}]', ["comand", "Did you mean"]),
    ('[{"name": "a/b", "cmd": "x"}]', ["a/b"]),
    ('[{"name": "a", "cmd": "/no/such/run.sh"}]', ["/no/such/run.sh"]),
    ('[{"name": "a", "cmd": "./' + "x" * 300 + '"}]', ["there is no", "beside jobs.json"]),
    ('[{"name": "a", "cmd": "./jobs.json"}]', ["not executable", "chmod +x"]),
    ('[{"name": "a", "cmd": "/bin/true", "args": {"--x": "$DATA_DIRECTROY"}}]', ["DATA_DIRECTROY", "Did you mean"]),
    ('[{"name": "a", "cmd": "/bin/true", "args": {"--x": "a\\u0000b"}}]', []),
    ('[{"name": "a", "cmd": "/bin/true", "env": {"A": "a\\u0000b"}}]', []),
    ('[{"name": "a", "cmd": "/bin/tr\\u0000ue"}]', []),
    ('[{"name": "a", "cmd": "/bin/true", "args": {"--x": true}}]', []),
    ("", []),
    ("{}", []),
]


@pytest.mark.parametrize(("content", "texts"), FILES, ids=[content[:50] or "empty" for content, _ in FILES])
def test_a_wrong_job_file_is_one_sentence(loose: Suites, content: str, texts: list[str]) -> None:
    (loose.folder / "jobs.json").write_text(content)
    refused(loose.run(None, "--jobs", "jobs.json"), 2, *texts)
    assert not loose.output.exists()


def test_a_job_file_that_is_not_there(loose: Suites) -> None:
    refused(loose.run(None, "--jobs", "baseline.json"), 2, "baseline.json")
    refused(loose.run(None, "--jobs", loose.folder), 2, str(loose.folder), "directory")


def test_an_argument_that_is_not_text(loose: Suites) -> None:
    line = [os.fsencode(word) for word in loose.line([job()])] + [b"--outdir", b"\xff"]
    ended = subprocess.run(line, env=loose.environment, cwd=loose.folder, capture_output=True, text=True)
    refused(ended, 2, "UTF-8")


@pytest.mark.parametrize(("encoding", "folder"), [("utf-8:strict", b"\xff"), ("ascii:strict", "\u20ac".encode())])
def test_a_place_that_the_output_cannot_show(loose: Suites, encoding: str, folder: bytes) -> None:
    place = loose.folder / os.fsdecode(folder)
    ended = loose.run([job()], "--users", 1, PYTHONIOENCODING=encoding, BASE=str(place))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"records: {loose.folder}/?" in ended.stdout
    assert len(list((place / "output").glob("jobs.job.R0.*.json"))) == 1


def test_an_output_directory_that_cannot_be(loose: Suites) -> None:
    (loose.folder / "file").write_text("")
    for place in (loose.folder / "file", loose.folder / "file/below", "/proc/nothing", "/sys/nothing"):
        refused(loose.run([job()], "--outdir", place), 2, "Nothing can be written to", str(place))
    assert not loose.leftovers()


def test_a_place_for_temporary_files_that_cannot_be(loose: Suites) -> None:
    """--outdir would not help."""
    ended = loose.run([job()], "--outdir", loose.output, BASE="/proc/nothing")
    refused(ended, 2, "Nothing can be written to /proc/nothing/tmp/", "BASE names another place for temporary files.")
    assert not loose.leftovers()


def test_a_full_output_directory(loose: Suites) -> None:
    """A limit on the size of files stands for a full disk: the write fails half-way."""
    line = loose.line([job()], "--outdir", loose.output)
    ended = subprocess.run(
        line,
        env=loose.environment,
        cwd=loose.folder,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)),
    )
    refused(ended, 2, "Nothing can be written to", str(loose.output), "File too large")
    assert not loose.leftovers()


def test_a_disk_that_fills_while_a_suite_runs(loose: Suites) -> None:
    """Enough for the probe, the log and the summary, not for a record."""
    line = loose.line([job(args={"--repeat": 700, "--number": 1})], "--users", 1)
    ended = subprocess.run(
        line,
        env=loose.environment,
        cwd=loose.folder,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (70_000, 70_000)),
    )
    refused(ended, 2, "Nothing can be written to", "File too large")
    assert not loose.leftovers()
    assert not loose.records()


def test_a_command_that_there_is_not() -> None:
    for word, sentence in (
        ("dotcor", "cotenant: There is no command 'dotcor'. Did you mean 'doctor'?"),
        ("vae", "cotenant: There is no command 'vae'. Commands: run, plan, "),
    ):
        ended = subprocess.run([sys.executable, str(ROOT / "run.py"), word], capture_output=True, text=True)
        refused(ended, 2, sentence)


def test_a_second_suite_at_the_same_time(loose: Suites) -> None:
    lock = SuiteLock(Path(loose.environment["COTENANT_LOCK"]))
    lock.acquire()
    try:
        refused(loose.run([job()]), 2, "Another suite is running", f"pid {os.getpid()}")
    finally:
        lock.release()
    assert not loose.output.exists()


def test_required_isolation_that_cannot_be_had(loose: Suites) -> None:
    for asked in ("require", "v1"):
        refused(loose.run([job()], "--isolation", asked, "--cgroup-base", "nobody/made/this"), 4, "solation")
    assert not loose.outcomes()


@pytest.mark.skipif(not has_v1(), reason="needs writable v1 cgroups as root")
def test_isolation_degrades_only_where_nothing_else_was_asked_for(loose: Suites) -> None:
    ended = loose.run([job("plain.sh", "0")], "--users", 1, "--isolation", "auto", "--cgroup-base", "nobody/made/this")
    assert ended.returncode == 0, ended.stderr
    (record,) = loose.records()
    assert record["isolation"]["backend"] == "affinity"
    assert "degraded" in [finding["rule"] for finding in record["findings"]]


def test_a_temporary_directory_of_any_length(loose: Suites) -> None:
    long = loose.folder / ("t" * 90)
    long.mkdir()
    ended = loose.run([job(args={"--repeat": 3})], "--users", 1, TMPDIR=str(long))
    assert ended.returncode == 0, ended.stderr
    assert loose.outcomes() == ["completed"]
    assert not list(long.iterdir())


def test_an_environment_too_large_to_start_anything(loose: Suites) -> None:
    """Its own job fails with a sentence, and others go on."""
    ended = loose.run([job("plain.sh", "0", env={"A": "x" * 200_000}), job("plain.sh", "0", name="next")], "--users", 1)
    assert ended.returncode == 1
    assert "could not be executed: Argument list too long." in ended.stdout
    assert "Traceback" not in loose.log() + ended.stderr
    assert loose.outcomes() == ["failed", "completed"]
    assert not loose.leftovers()


def test_a_command_that_does_not_exist() -> None:
    line = [sys.executable, "-c", "import sys; from cotenant.cli import main; sys.exit(main(['rnu']))"]
    ended = subprocess.run(line, env=os.environ | {"PYTHONPATH": str(ROOT / "common")}, capture_output=True, text=True)
    refused(ended, 2, "There is no command 'rnu'.", "Did you mean 'run'?")


def test_a_reader_that_leaves_does_not_end_the_suite(loose: Suites) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    line = loose.line([job("plain.sh", "0")], "--users", 1)
    with os.fdopen(writer, "wb") as closed:
        ended = subprocess.run(
            line, env=loose.environment, cwd=loose.folder, stdout=closed, stderr=subprocess.PIPE, text=True
        )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert loose.outcomes() == ["completed"]


def test_a_suite_whose_standard_output_is_closed(loose: Suites) -> None:
    line = ["sh", "-c", 'exec "$@" >&-', "sh", *loose.line([job("plain.sh", "0")], "--users", 1)]
    ended = subprocess.run(line, env=loose.environment, cwd=loose.folder, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert loose.outcomes() == ["completed"]


def test_a_name_that_standard_output_cannot_hold(loose: Suites) -> None:
    ended = loose.run([job("plain.sh", "0", name="日本")], "--users", 1, PYTHONIOENCODING="ascii")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "??" in ended.stdout
    line = [sys.executable, str(ROOT / "run.py"), "report", str(loose.output)]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(line, env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "??" in ended.stdout
