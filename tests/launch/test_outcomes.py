"""Every way a tenant can end, through the real runner: most of them launches of one suite."""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cotenant.launch import outcome
from cotenant.launch.endings import Ending
from cotenant.machine.topology import discover
from patience import HANG_S
from tenants.fixtures import suites_in
from tenants.suites import CGROUPS, ROOT, SUMS, ByJob, Suites, errors, found, job, rogue, script, until, with_data

MIB = 1 << 20
SMALL_SLICES = ["--users", 2, "--reserve", discover().memory_bytes - 256 * MIB]
"""Flags that leave two slices of 128 MiB."""


def scripted(folder: Path, name: str, *lines: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "cmd": str(script(folder / f"{name}.sh", *lines)), "cgroup": "student", **more}


def every_end(folder: Path, in_shm: str) -> list[dict[str, Any]]:
    """Jobs of which most end in a way of their own; one leaves a file of this name in /dev/shm."""
    joining = f'exec {job("rogue.py")["cmd"]} "$@"'
    (missing_data,) = with_data(folder, "exit 4")
    left = 'setsid sleep 1000 & echo $! >"$BASE/left"'
    unless_it_lives = 'test -z "$(tr -d "\\0" <"/proc/$(cat "$BASE/left")/cmdline")" && ' + SUMS
    (maker,) = with_data(folder / "maker", left, "sleep 0.3", then=unless_it_lives)
    no_interpreter = scripted(folder, "broken")
    Path(no_interpreter["cmd"]).write_text("#!/no/such/interpreter\n")
    return [
        *(rogue(f"exit-{at}", at, "exit", 7, "--others-late", 1) for at in ("start", "ready")),
        rogue("die-observed", "observed", "die"),
        rogue("leaves", "done", "exit", 0),
        job("rogue.py", "--who", 0, "--nan", name="nan"),
        rogue("hang-hello", "hello", "hang", timeout=3),
        job("plain.sh", "1000", name="plain-hangs", timeout=1),
        rogue("fails", "go", "fail", "device_out_of_memory", "no", "room"),
        job("rogue.py", "--who", 0, "--repeat-of-mine", 9, name="disagrees"),
        scripted(folder, "mixed", '[ "$JOB_ID" = 0 ] && exit 0', "sleep 0.3", joining),
        scripted(folder, "silent", "exit 1"),
        scripted(folder, "killed", "kill -XFSZ $$"),
        no_interpreter,
        scripted(folder, "needy", "exec python -c 'import torchvision_of_another_world.ops'"),
        missing_data,
        maker | {"name": "maker", "cmd": str(folder / "maker" / maker["cmd"])},
        job("ranks.sh", "2", "--at", "go", "--do", "exit", "5", name="ranks", group="all", args={"--repeat": 6}),
        rogue("children", "record", "children", who=None),
        rogue("shm", "go", "fill-shm", in_shm, 3 << 20),
        # In the place of a log: near the end, as another's log may go with it.
        rogue("fifo-for-a-log", "observed", "fifo-for-a-log"),
        job(name="after"),
    ]


def rarer_ends(folder: Path) -> list[dict[str, Any]]:
    return [
        rogue("exit-hello", "hello", "exit", 7, "--others-late", 1),
        *(rogue(f"die-{at}", at, "die") for at in ("go", "done")),
        rogue("exit-record", "record", "exit", 3),
        rogue("signal-40", "go", "die", 40),
        *(rogue(f"hang-{at}", at, "hang", timeout=3) for at in ("start", "observed")),
        scripted(folder, "bare", "exec env -i /bin/sleep 1000", timeout=1),
        rogue("remove-directories", "observed", "remove-directories"),
    ]


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suites]:
    yield from suites_in(tmp_path_factory.mktemp("beside"), "none")


@pytest.fixture(scope="module")
def ended(shared: Suites) -> ByJob:
    """The records of a suite in which nearly every launch ends in another way."""
    jobs, left = every_end(shared.folder, shared.name), Path("/dev/shm", shared.name)
    try:
        shared.run(jobs, "--users", 2, status=1, COTENANT_LEAVE_UNMARKED="yes")
        assert left.exists()
    finally:
        left.unlink(missing_ok=True)
    assert not shared.leftovers()
    summary = (shared.output / "summary.txt").read_text()
    assert f"[ 1/{len(jobs)}][ 2/ 2] FAILED |" in summary
    assert f"[ 3/{len(jobs)}][ 1/ 2] FAILED |" in summary
    return shared.by_job()


@pytest.fixture(scope="module")
def ended_rarely(beside: Suites) -> ByJob:
    beside.run(rarer_ends(beside.folder), "--users", 2, status=1)
    return beside.by_job()


def outcomes(records: list[dict[str, Any]]) -> list[str]:
    return [record["outcome"] for record in records]


OVERDUE = "It was not finished after 1 s. Give it longer with 'timeout' in the job file."
LONGER = "3 s. Give it longer with 'timeout'"
NO_RECORD = "It ended with exit status 3. "
ENDS = {
    **dict.fromkeys(("exit-start", "exit-ready"), ("failed", "aborted", "exit status 7")),
    "die-observed": ("failed", "completed", "SIGKILL"),
    "leaves": ("failed", "completed", "before its record was complete"),
    "hang-hello": ("timeout", "aborted", LONGER),
    "plain-hangs": ("timeout", "timeout", OVERDUE),
    "nan": ("nan", "completed", "2 of 9 losses were not finite."),
    "fails": ("device_out_of_memory", "completed", "no room"),
    "disagrees": ("failed", "failed", "disagree"),
    "mixed": ("failed", "aborted", "without joining the rendezvous, with exit status 0. Its log is"),
    "d": ("missing_data", "missing_data", "exit status 4"),
    "fifo-for-a-log": ("failed", "completed", NO_RECORD),
}
"""How a launch ends for the tenant that does something wrong, and for its neighbour, and words on the first."""
RARER = {
    "exit-hello": ("failed", "aborted", "exit status 7"),
    **dict.fromkeys(("die-go", "die-done"), ("failed", "completed", "SIGKILL")),
    "exit-record": ("failed", "completed", "exit status 3"),
    # A real-time signal has no name.
    "signal-40": ("failed", "completed", "killed by signal 40"),
    "hang-start": ("timeout", "aborted", LONGER),
    "hang-observed": ("timeout", "completed", LONGER),
    # A child without the run's marker hangs.
    "bare": ("timeout", "timeout", OVERDUE),
    "remove-directories": ("failed", "completed", NO_RECORD),
}


def check_end(records: list[dict[str, Any]], outcome: str, neighbours: str, words: str) -> None:
    first, second = records
    assert (first["outcome"], second["outcome"]) == (outcome, neighbours)
    assert words in first["message"]
    if neighbours == "aborted":
        assert second["message"] == f"User 0 ended before GO ({outcome}): {first['message']}"
    elif neighbours == "completed":
        assert (second["comparable"], len(second["observations"])) == (False, 6)
        assert "neighbour_lost" in errors(second)


@pytest.mark.parametrize("name", ENDS)
def test_a_launch_ends_for_both_tenants_with_its_reason(name: str, ended: ByJob) -> None:
    check_end(ended[name], *ENDS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", RARER)
def test_a_rarer_end_has_its_reason_too(name: str, ended_rarely: ByJob) -> None:
    check_end(ended_rarely[name], *RARER[name])
    observations = {"die-go": 0, "die-done": 6}
    assert name not in observations or len(ended_rarely[name][0]["observations"]) == observations[name]


def test_observations_before_a_death_are_kept(ended: ByJob, shared: Suites) -> None:
    dead, _ = ended["die-observed"]
    assert (dead["train"], len(dead["observations"])) == (None, 2)
    assert all("last words of the log" in record["message"] for record in ended["exit-ready"])
    assert ended["nan"][0]["batch_loss"] == [1.0, None]
    assert not list((shared.output / "logs").glob("d.*")), "missing data is known before anything starts"
    assert outcomes(ended["after"]) == ["completed", "completed"]


def test_a_rank_that_dies_ends_its_launch(ended: ByJob) -> None:
    (record,) = ended["ranks"]
    assert record["outcome"] == "failed"
    # How a rank ended for which its parent has waited already nobody tells.
    assert re.match(r"(Rank [01] of 2|It) ended (with exit status 5|before its record)", record["message"])
    assert "Its log ends: last words of the log" in record["message"]


def test_a_program_that_never_joined_is_explained_by_its_status(ended: ByJob) -> None:
    messages = {
        name: next(record["message"] for record in ended[name] if record["outcome"] != "aborted")
        for name in ("silent", "killed", "broken", "needy")
    }
    assert messages["silent"] == "It ended with exit status 1. Its log is empty."
    assert messages["killed"] == "It was killed by SIGXFSZ. Its log is empty."
    assert "broken.sh could not be executed: No such file or directory." in messages["broken"]
    assert messages["needy"].endswith("pip install torchvision_of_another_world")
    assert "missing_package" in outcomes(ended["needy"])


def test_advice_installs_a_missing_cotenant_from_its_checkout() -> None:
    tail = "ModuleNotFoundError: No module named 'cotenant'"
    tenant: Any = SimpleNamespace(status=1, log_tail=lambda: tail)
    missing = f"The package 'cotenant' is missing. pip install {ROOT}"
    assert outcome._died(tenant) == Ending("missing_package", missing)


def test_children_outlive_neither_a_tenant_nor_a_maker(ended: ByJob, shared: Suites) -> None:
    """A daemon that has dropped the run's marker becomes a child of the runner when its parent ends."""
    assert outcomes(ended["maker"]) == outcomes(ended["children"]) == ["completed"] * 2
    assert not shared.here()


@pytest.mark.slow
def test_raise_error_stops_after_the_first_launch_that_fails(loose: Suites) -> None:
    jobs = [job("plain.sh", "0", "5", name="bad"), job(name="good")]
    loose.run(jobs, "--users", 1, "--raise-error", status=1)
    assert [record["name"] for record in loose.records()] == ["bad"]
    loose.run(jobs, "--users", 1, status=1)
    assert [record["name"] for record in loose.records()] == ["bad", "good"]


@pytest.mark.v1
def test_each_user_has_its_own_memory_and_dev_shm(v1: Suites) -> None:
    """A user that needs too much memory ends alone, and before GO it ends the others too.

    Both users write the same name in /dev/shm; a file that others put there is not counted as theirs.
    """
    others = Path("/dev/shm", f"{v1.name}-others")
    jobs = [
        rogue("worker", "observed", "worker-hog", "--repeat", 20),
        rogue("before-go", "hello", "hog", who=1),
        rogue("shm", "go", "fill-shm", v1.name, 3 << 20, who=None),
    ]
    try:
        others.write_bytes(bytes(1 << 20))
        v1.run(jobs, *SMALL_SLICES, status=1)
    finally:
        others.unlink(missing_ok=True)
    records = v1.by_job()
    check_worn(records["worker"])
    aborted, hog = records["before-go"]
    assert (hog["outcome"], aborted["outcome"]) == ("out_of_memory", "aborted")
    assert "User 1 ended before GO (out_of_memory)" in aborted["message"]
    assert not Path("/dev/shm", v1.name).exists()
    assert outcomes(records["shm"]) == ["completed"] * 2
    for record in records["shm"]:
        assert f"['{v1.name}']" in Path(record["log"]).read_text()
        assert "shm_kept" not in record["meters"]


def check_worn(records: list[dict[str, Any]]) -> None:
    """Assert that the first ended at the memory of its slice, and the other was measured."""
    hog, neighbour = records
    assert (hog["outcome"], neighbour["outcome"]) == ("out_of_memory", "completed")
    assert hog["message"].startswith("It reached the 128 MiB of its slice")
    assert (len(neighbour["observations"]), neighbour["comparable"]) == (20, False)


@pytest.mark.slow
@pytest.mark.v1
def test_kills_for_memory_are_told_from_other_ends(v1: Suites) -> None:
    """The kernel's count of kills on the host holds the slices' own."""
    rogues = f'exec {job("rogue.py")["cmd"]} "$@"'
    beside = f'[ "$JOB_ID" = 0 ] && {rogues} --at observed --do hog', f"{rogues} --at done --do die"
    jobs = [
        rogue("hog", "observed", "hog", "--repeat", 20),
        scripted(v1.folder, "both", *beside, args={"--repeat": 20}),
        scripted(v1.folder, "py", 'exec python3 -c "x = b\'x\' * (1 << 30)" "$@"', args={"--batch-size": 64}),
    ]
    v1.run(jobs, *SMALL_SLICES, status=1)
    records = v1.by_job()
    check_worn(records["hog"])
    assert outcomes(records["both"]) == ["out_of_memory", "failed"]
    assert "killed by SIGKILL" in records["both"][1]["message"]
    assert any(record["message"].endswith("Try half the batch: -- --batch-size 32") for record in records["py"])


@pytest.mark.v1
def test_a_full_cgroup_above_the_slices_is_not_the_slice(v1: Suites) -> None:
    """Of two users of 100 MiB each stays below its limit of 128 MiB, and together they need more than 160 MiB."""
    above = CGROUPS / "memory" / v1.name
    above.mkdir()
    (above / "memory.limit_in_bytes").write_text(str(160 * MIB))
    holding = "exec python3 -c \"x = b'x' * (100 << 20); import time; time.sleep(3)\""
    v1.run([scripted(v1.folder, "holding", holding)], *SMALL_SLICES, status=1)
    (killed,) = (record for record in v1.records() if record["outcome"] == "host_out_of_memory")
    assert "of 128 MiB: the host, a NUMA node of it or a cgroup above the slice was full" in killed["message"]


@pytest.mark.slow
@pytest.mark.v1
def test_a_tenant_goes_on_without_its_killed_process_on_request(v1: Suites) -> None:
    """It is out of memory all the same: its number is not that of the work that was asked for."""
    v1.run([rogue("goes-on", "observed", "worker-hog-and-go-on")], "--on-oom", "process", *SMALL_SLICES, status=1)
    hog, neighbour = v1.records()
    assert (hog["outcome"], neighbour["outcome"]) == ("out_of_memory", "completed")
    assert len(hog["observations"]) == 6
    assert hog["isolation"]["policies"]["on_oom"] == "process"


def test_what_is_new_in_a_shared_dev_shm_is_reported(ended: ByJob) -> None:
    assert outcomes(ended["shm"]) == ["completed"] * 2
    for record in ended["shm"]:
        assert record["meters"]["shm_kept"] == {"files": 1, "memory_bytes": 3 << 20}
        assert found(record, "shm_kept")


@pytest.mark.slow
def test_what_the_runner_had_for_a_child_before_it_began_lives(loose: Suites) -> None:
    """As `tee` in `exec > >(tee log) 2>&1; exec ./run.sh`."""
    jobs = [job(), job(name="more")]
    line = " ".join(map(shlex.quote, loose.line(jobs, "--users", 1)))
    shell = f"sleep 1000 & echo $! >{loose.folder}/pid; exec {line}"
    assert (
        subprocess.run(["bash", "-c", shell], env=loose.environment, cwd=loose.folder, timeout=HANG_S).returncode == 0
    )
    pid = int((loose.folder / "pid").read_text())
    assert loose.processes() == [pid]
    os.kill(pid, signal.SIGKILL)
    until(lambda: not loose.processes(), "its end")
