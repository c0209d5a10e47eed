"""Every way a tenant can end, through the real runner: most of them launches of one suite."""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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


DEATHS = {"go": 0, "observed": 2, "done": 6}
"""The observations that a tenant has sent when it dies at a place."""


def every_end(folder: Path) -> list[dict[str, Any]]:
    joining = f'exec {job("rogue.py")["cmd"]} "$@"'
    (missing_data,) = with_data(folder, "exit 4")
    no_interpreter = scripted(folder, "broken")
    Path(no_interpreter["cmd"]).write_text("#!/no/such/interpreter\n")
    return [
        *(rogue(f"exit-{at}", at, "exit", 7, "--others-late", 1) for at in ("start", "hello", "ready")),
        *(rogue(f"die-{at}", at, "die") for at in DEATHS),
        rogue("exit-record", "record", "exit", 3),
        rogue("leaves", "done", "exit", 0),
        rogue("signal-40", "go", "die", 40),
        job("rogue.py", "--who", 0, "--nan", name="nan"),
        *(rogue(f"hang-{at}", at, "hang", timeout=3) for at in ("start", "hello", "observed")),
        job("plain.sh", "1000", name="plain-hangs", timeout=1),
        scripted(folder, "bare", "exec env -i /bin/sleep 1000", timeout=1),
        rogue("fails", "go", "fail", "device_out_of_memory", "no", "room"),
        job("rogue.py", "--who", 0, "--repeat-of-mine", 9, name="disagrees"),
        scripted(folder, "mixed", '[ "$JOB_ID" = 0 ] && exit 0', "sleep 0.3", joining),
        scripted(folder, "silent", "exit 1"),
        scripted(folder, "killed", "kill -XFSZ $$"),
        no_interpreter,
        scripted(folder, "needy", "exec python -c 'import torchvision_of_another_world.ops'"),
        missing_data,
        # In the place of a log, or of the run's directories: at last, as the others' logs go with them.
        *(rogue(deed, "observed", deed) for deed in ("fifo-for-a-log", "remove-directories")),
        job(name="after"),
    ]


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suites]:
    yield from suites_in(tmp_path_factory.mktemp("beside"), "none")


@pytest.fixture(scope="module")
def ended(shared: Suites, beside: Suites) -> ByJob:
    """The records of suites in which every launch ends in another way; those that hang do so beside the others."""
    jobs = every_end(shared.folder)
    hanging = [one for one in jobs if "timeout" in one]
    others = [one for one in jobs if "timeout" not in one]
    with ThreadPoolExecutor() as pool:
        ran = pool.map(lambda of, those: of.run(those, "--users", 2), (shared, beside), (others, hanging))
        assert [one.returncode for one in ran] == [1, 1]
    summary = (shared.output / "summary.txt").read_text()
    assert f"[ 1/{len(others)}][ 2/ 2] FAILED |" in summary
    assert f"[ 4/{len(others)}][ 1/ 2] FAILED |" in summary
    return shared.by_job() | beside.by_job()


def outcomes(records: list[dict[str, Any]]) -> list[str]:
    return [record["outcome"] for record in records]


OVERDUE = "It was not finished after 1 s. Give it longer with 'timeout' in the job file."
ENDS = {
    **dict.fromkeys(("exit-start", "exit-hello", "exit-ready"), ("failed", "aborted", "exit status 7")),
    **dict.fromkeys(("die-go", "die-observed", "die-done"), ("failed", "completed", "SIGKILL")),
    "exit-record": ("failed", "completed", "exit status 3"),
    "leaves": ("failed", "completed", "before its record was complete"),
    # A real-time signal has no name.
    "signal-40": ("failed", "completed", "killed by signal 40"),
    **dict.fromkeys(("hang-start", "hang-hello"), ("timeout", "aborted", "3 s. Give it longer with 'timeout'")),
    "hang-observed": ("timeout", "completed", "3 s. Give it longer with 'timeout'"),
    # Of the second one a child without the run's marker hangs.
    **dict.fromkeys(("plain-hangs", "bare"), ("timeout", "timeout", OVERDUE)),
    "nan": ("nan", "completed", "2 of 9 losses were not finite."),
    "fails": ("device_out_of_memory", "completed", "no room"),
    "disagrees": ("failed", "failed", "disagree"),
    "mixed": ("failed", "aborted", "without joining the rendezvous, with exit status 0. Its log is"),
    "d": ("missing_data", "missing_data", "exit status 4"),
    **dict.fromkeys(("fifo-for-a-log", "remove-directories"), ("failed", "completed", "It ended with exit status 3. ")),
}
"""How a launch ends for the tenant that does something wrong, and for its neighbour, and words on the first."""


@pytest.mark.parametrize("name", ENDS)
def test_a_launch_ends_for_both_tenants_with_its_reason(name: str, ended: ByJob) -> None:
    outcome, neighbours, words = ENDS[name]
    first, second = ended[name]
    assert (first["outcome"], second["outcome"]) == (outcome, neighbours)
    assert words in first["message"]
    if neighbours == "aborted":
        assert second["message"] == f"User 0 ended before GO ({outcome}): {first['message']}"
    elif neighbours == "completed":
        assert (second["comparable"], len(second["observations"])) == (False, 6)
        assert "neighbour_lost" in errors(second)


def test_observations_before_a_death_are_kept(ended: ByJob, shared: Suites) -> None:
    for at, observations in DEATHS.items():
        dead, _ = ended[f"die-{at}"]
        assert (dead["train"], len(dead["observations"])) == (None, observations)
    assert all("last words of the log" in record["message"] for record in ended["exit-ready"])
    assert ended["nan"][0]["batch_loss"] == [1.0, None]
    assert not list((shared.output / "logs").glob("d.*")), "missing data is known before anything starts"
    assert outcomes(ended["after"]) == ["completed", "completed"]


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


def test_what_a_maker_leaves_behind_does_not_disturb_a_launch(loose: Suites) -> None:
    left = 'setsid sleep 1000 & echo $! >"$BASE/left"'
    unless_it_lives = 'test -z "$(tr -d "\\0" <"/proc/$(cat "$BASE/left")/cmdline")" && ' + SUMS
    jobs = with_data(loose.folder, left, "sleep 0.3", then=unless_it_lives)
    loose.run(jobs, "--users", 1, status=0)
    assert loose.outcomes() == ["completed"]


@pytest.mark.slow
def test_raise_error_stops_after_the_first_launch_that_fails(loose: Suites) -> None:
    jobs = [job("plain.sh", "0", "5", name="bad"), job(name="good")]
    loose.run(jobs, "--users", 1, "--raise-error", status=1)
    assert [record["name"] for record in loose.records()] == ["bad"]
    loose.run(jobs, "--users", 1, status=1)
    assert [record["name"] for record in loose.records()] == ["bad", "bad", "good"]


@pytest.mark.v1
def test_who_needs_too_much_memory_ends_alone(v1: Suites) -> None:
    """Before GO it ends the others with it. The kernel's count of kills on the host holds the slices' own."""
    rogues = f'exec {job("rogue.py")["cmd"]} "$@"'
    beside = f'[ "$JOB_ID" = 0 ] && {rogues} --at observed --do hog', f"{rogues} --at done --do die"
    jobs = [
        rogue("hog", "observed", "hog", "--repeat", 20),
        rogue("worker", "observed", "worker-hog", "--repeat", 20),
        rogue("before-go", "hello", "hog", who=1),
        scripted(v1.folder, "both", *beside, args={"--repeat": 20}),
        scripted(v1.folder, "py", 'exec python3 -c "x = b\'x\' * (1 << 30)" "$@"', args={"--batch-size": 64}),
    ]
    v1.run(jobs, *SMALL_SLICES, status=1)
    records = v1.by_job()
    for name in ("hog", "worker"):
        hog, neighbour = records[name]
        assert (hog["outcome"], neighbour["outcome"]) == ("out_of_memory", "completed"), name
        assert hog["message"].startswith("It reached the 128 MiB of its slice")
        assert (len(neighbour["observations"]), neighbour["comparable"]) == (20, False)
    aborted, hog = records["before-go"]
    assert (hog["outcome"], aborted["outcome"]) == ("out_of_memory", "aborted")
    assert "User 1 ended before GO (out_of_memory)" in aborted["message"]
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


@pytest.mark.v1
def test_each_tenant_has_its_own_dev_shm_that_goes_with_it(v1: Suites) -> None:
    """Both write the same name; a file that others put into the machine's /dev/shm is not counted as theirs."""
    others = Path("/dev/shm", f"{v1.name}-others")
    try:
        others.write_bytes(bytes(1 << 20))
        v1.run([rogue("shm", "go", "fill-shm", v1.name, 3 << 20, who=None)], "--users", 2, status=0)
        assert not Path("/dev/shm", v1.name).exists()
        assert v1.outcomes() == ["completed"] * 2
        for record in v1.records():
            assert f"['{v1.name}']" in Path(record["log"]).read_text()
            assert "shm_kept" not in record["meters"]
    finally:
        others.unlink(missing_ok=True)


def test_what_is_new_in_a_shared_dev_shm_is_reported(loose: Suites) -> None:
    left = Path("/dev/shm", loose.name)
    try:
        loose.run([rogue("shm", "go", "fill-shm", loose.name, 3 << 20)], "--users", 2, status=0)
        assert left.exists()
        assert loose.outcomes() == ["completed"] * 2
        for record in loose.records():
            assert record["meters"]["shm_kept"] == {"files": 1, "memory_bytes": 3 << 20}
            assert found(record, "shm_kept")
    finally:
        left.unlink(missing_ok=True)


def test_children_do_not_outlive_their_tenant_without_cgroups(loose: Suites) -> None:
    """A daemon that has dropped the run's marker becomes a child of the runner when its parent ends."""
    jobs = [rogue("daemon", "record", "children", who=None)]
    loose.run(jobs, "--users", 2, status=0, COTENANT_LEAVE_UNMARKED="yes")
    assert not loose.leftovers()
    assert not loose.here()


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
