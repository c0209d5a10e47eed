"""`cotenant compare --confirm` on real launches: a difference by chance is not confirmed, a slower job is."""

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from commands.calling import Capture, call
from cotenant.commands import confirm
from cotenant.isolation.lock import SuiteLock
from cotenant.isolation.runs import RunName
from cotenant.launch.paths import RunPaths
from cotenant.launch.suite import SuiteResult
from cotenant.results.journal import FILE
from launch.resolving import HOST
from tenants.suites import RUN, Suites, job

LAUNCHES = 5
JOB = job(args={"--repeat": 6, "--number": 1})
MARGIN = 0.5
"""Wide, so that other tests on the machine do not decide a verdict."""


def changed(source: Path, place: Path, times: float = 1.0, cell: str = "*", **fields: Any) -> Path:
    """Copy records as launches of another day; those of `cell` get `times` their rate, and `fields`.

    The journal is left out: its hashes are those of the original files.
    """
    shutil.copytree(source, place, ignore=shutil.ignore_patterns(FILE))
    for path in place.glob(f"*.{cell}.R*.D*.json"):
        record = json.loads(path.read_text()) | fields
        record["statistics"]["median"] *= times
        path.write_text(json.dumps(record))
    for path in place.glob("*.R*.D*.json"):
        record = json.loads(path.read_text())
        start = datetime.fromisoformat(record["start_time"]) - timedelta(days=sum(place.name.encode()))
        path.write_text(json.dumps(record | {"start_time": start.isoformat()}))
    return place


def launched(suites: Suites, jobs: list[dict[str, Any]], place: Path) -> Path:
    """Run the jobs once, and copy their records into five launches that differ a little."""
    assert suites.run(jobs, "--users", 1, "--outdir", place).returncode == 0
    for path in list(place.glob("*.R0.D*.json")):
        record = json.loads(path.read_text())
        for uid in range(1, LAUNCHES):
            start = datetime.fromisoformat(record["start_time"]) + timedelta(hours=uid)
            other = record | {"run_id": uid, "start_time": start.isoformat()}
            other["statistics"] = record["statistics"] | {"median": record["statistics"]["median"] * (1 + uid / 1000)}
            path.with_name(path.name.replace(".R0.", f".R{uid}.")).write_text(json.dumps(other))
    return place


@pytest.fixture
def measured(loose: Suites) -> Path:
    return launched(loose, [JOB], loose.output)


def words(loose: Suites, a: Path, b: Path, *more: object, jobs: Any = None) -> list[str]:
    flags = ["--confirm", "--fail-on", "slower", "--margin", MARGIN, "--", "--users", 1, "--isolation", "none"]
    return ["compare", *map(str, (a, b, *flags, "--jobs", loose.jobs(jobs or [JOB]), *more))]


Compare = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def compare(loose: Suites) -> Compare:
    def run(*given: Any, jobs: Any = None) -> subprocess.CompletedProcess[str]:
        return loose.typed([*RUN, *words(loose, *given, jobs=jobs)], 300)

    return run


def test_what_is_slower_is_confirmed_by_new_launches_of_it_alone(loose: Suites, compare: Compare) -> None:
    """The slower cell runs under its own name; the job's other cell does not run."""
    cells = [job(args={"--repeat": 6, "--number": [1, 2]})]
    b = launched(loose, cells, loose.output)
    ended = compare(changed(b, loose.folder / "a", times=10, cell="job.c2"), b, jobs=cells)
    assert ended.returncode == 3, ended.stderr
    assert "SLOWER   CONFIRMED by new launches (before SLOWER, 0.1" in ended.stdout
    assert "5, 5" in ended.stdout
    again = sorted(path.name.split(".R")[0:2] for path in loose.output.with_name("output.confirm").glob("*.R*.D*.json"))
    assert [(name, uid.split(".")[0]) for name, uid in again] == [("jobs.job.c2", str(uid)) for uid in range(5, 10)]
    assert len(loose.records()) == 2 * LAUNCHES, "B has no new launches: a later comparison would pool them"


@dataclass(frozen=True)
class FakeOptions:
    """The options of a suite that a new launch changes."""

    paths: RunPaths
    jobs: tuple[str, ...] = ()
    uid: int = 0


def test_sides_take_turns_and_each_launches_as_often_as_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sides begin by turns; B had one launch more, and other repetition numbers."""
    ran = []

    class FakeSuite:
        starts = ()

        def __init__(self, options: FakeOptions, _: object) -> None:
            ran.append((options.paths.output.name, options.uid, options.jobs))

        def settle(self) -> None:
            pass

    monkeypatch.setattr(confirm, "PreparedSuite", FakeSuite)
    monkeypatch.setattr(confirm, "heading", lambda _: [])
    monkeypatch.setattr(confirm, "SuiteRun", lambda *_: SimpleNamespace(run=SuiteResult))
    monkeypatch.setattr(confirm, "launches_of", lambda _: ({"job": []}, ["left out"]))
    monkeypatch.setattr(confirm, "read_records", lambda _: SimpleNamespace(frame=None))
    sides = []
    for name, uids in (("A", (0, 1, 2)), ("B", (5, 6, 7, 8))):
        options = FakeOptions(RunPaths.of_run(Path(), Path(), Path(name), RunName()))
        launches = {"job": [SimpleNamespace(run_id=uid, work=()) for uid in uids]}
        sides.append(confirm.SideAgain(name, launches, options, {"job": "job"}))
    assert confirm._launch_by_turns(sides, None) is None
    assert [(side.anew, side.left_out) for side in sides] == [({"job": []}, ["left out"])] * 2
    turns = [("A", 3), ("B", 9), ("B", 10), ("A", 4), ("A", 5), ("B", 11), ("B", 12)]
    assert ran == [(name, uid, ("job",)) for name, uid in turns]


@pytest.mark.slow
def test_both_sides_again_by_turns_see_that_one_had_a_good_day(loose: Suites, measured: Path, compare: Compare) -> None:
    as_b = ["---", "--users", 1, "--isolation", "none", "--jobs", loose.jobs([JOB])]
    a = changed(measured, loose.folder / "a", times=10)
    ended = compare(a, measured, *as_b)
    assert ended.returncode == 0, ended.stderr
    assert "NOT CONFIRMED by new launches (before SLOWER, 0.1" in ended.stdout
    first, second = (
        sorted(json.loads(path.read_text())["start_time"] for path in place.glob("*.R*.D*.json"))
        for place in (a.with_name("a.confirm"), measured.with_name("output.confirm"))
    )
    assert len(first) == len(second) == LAUNCHES
    assert [one < other for one, other in zip(first, second, strict=True)] == [True, False, True, False, True]


@pytest.mark.slow
def test_a_launch_that_fails_again_is_no_passing(loose: Suites, measured: Path, compare: Compare) -> None:
    ended = compare(changed(measured, loose.folder / "a", times=10), measured, "--", "--no-such-flag")
    assert ended.returncode == 1
    assert "INVALID  NOT CONFIRMED by new launches" in ended.stdout
    assert "repetition 5: user 0 failed." in ended.stderr


def test_what_is_the_same_or_cannot_confirm_is_not_run(here: Suites, measured: Path, capsys: Capture) -> None:
    def refused(*given: Any, jobs: Any = None) -> str:
        """Return the refusal, which another running suite does not delay."""
        with SuiteLock(Path(here.environment["COTENANT_LOCK"])):
            status, said, errors = call(capsys, *words(here, *given, jobs=jobs))
        assert (status, said) == (2, "")
        return errors

    status, _, errors = call(capsys, *words(here, measured, changed(measured, here.folder / "b")))
    assert (status, errors) == (0, "")
    a = changed(measured, here.folder / "a", times=10)
    machine = here.records()[0]["machine"]
    software = {"software": machine["software"] | {"kernel": "2.6.32"}}
    for number, (other, text) in enumerate(
        [
            ({"hostname": "node7"}, "This is not what B ran on: host node7 -> "),
            (software, "kernel 2.6.32 -> "),
            ({"accelerators": [{"name": "Abacus", "driver": "1"}]}, "accelerators Abacus -> none"),
        ]
    ):
        said = refused(a, changed(measured, here.folder / f"elsewhere{number}", machine=machine | other))
        assert text in said
        assert "Confirm where B was measured." in said
    assert "Leave out --name, --exclude, --uid and --repetitions." in refused(a, measured, "--name", "job")
    as_b = ["---", "--users", 1, "--isolation", "none", "--jobs", here.jobs([JOB])]
    far = changed(measured, here.folder / "far", times=10, machine=machine | {"hostname": "node7"})
    assert "This is not what A ran on: host node7 -> " in refused(far, measured, *as_b)
    both = refused(a, measured, "--outdir", "both", *as_b, "--outdir", "both")
    assert "A and B would write into" in both
    assert "lies in B" in refused(a, measured, "--outdir", measured / "more")
    assert "holds something already" in refused(a, measured, "--outdir", a)
    assert "Did you mean '--users'?" in refused(a, measured, "--usres", "2")
    said = refused(a, measured, jobs=[job(name="jbo")])
    assert "no job 'job'" in said
    assert "Did you mean 'jbo'?" in said
    other_suite = changed(measured, here.folder / "renamed", suite="others")
    assert "B is of the suite others, not jobs." in refused(a, other_suite)
    assert not list(here.folder.glob("*.confirm"))
    assert not measured.with_name("output.confirm").exists()


def test_mixes_and_curves_of_the_job_file_are_not_launched_again(tmp_path: Path) -> None:
    """They were, in every turn; and a file with curves was refused for a --baseline that nobody had given."""
    options = confirm._options("B", tmp_path, ["--jobs", "cotenancy"], HOST)
    assert [job.name for job in options.jobs] == ["vae", "wlm", "convnet", "loader", "recom", "decode"]
    assert (options.mixes, options.neighbours, options.users) == ((), (), 2)


@pytest.mark.slow
def test_other_work_is_seen_after_its_first_launch(loose: Suites, measured: Path, compare: Compare) -> None:
    a = changed(measured, loose.folder / "a", times=10, unique_id="x")
    ended = compare(a, changed(measured, loose.folder / "b", unique_id="x"), "--outdir", "again")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "What ran again is not what B ran: job: different source or arguments" in ended.stderr
    assert "the flags B was run with" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(list((loose.folder / "again").glob("*.R*.D*.json"))) == 1
