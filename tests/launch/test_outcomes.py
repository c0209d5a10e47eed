"""Every way a tenant can end, through the real runner."""

import os
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cotenant.machine.topology import discover
from tenants.suites import Suites, job, script, until, with_data

MIB = 1 << 20


def rogue(*words: str | int, who: int | None = 0, repeat: int = 6, **more: Any) -> dict[str, Any]:
    """A job in which one tenant does something wrong."""
    whose = [] if who is None else ["--who", who]
    args: dict[str, Any] = {"--repeat": repeat} | more.pop("args", {})
    return job("rogue.py", *whose, *words, args=args, **more)


def small_slices(mebibytes: int) -> list[object]:
    """Flags that leave two slices of this size."""
    return ["--users", 2, "--reserve", discover().memory_bytes - 2 * mebibytes * MIB]


@pytest.mark.parametrize("place", ["start", "hello", "ready"])
def test_a_death_before_go_aborts_the_others_and_names_the_culprit(loose: Suites, place: str) -> None:
    ended = loose.run([rogue("--at", place, "--do", "exit", 7, "--others-late", 1)], "--users", 2)
    assert ended.returncode == 1
    failed, aborted = loose.records()
    assert failed["outcome"] == "failed"
    assert "exit status 7" in failed["message"]
    assert "last words of the log" in failed["message"]
    assert aborted["outcome"] == "aborted"
    assert "Tenant 0" in aborted["message"]
    assert "last words of the log" in aborted["message"]
    assert "[ 1/ 1][ 2/ 2] FAILED |" in (loose.output / "summary.txt").read_text()


@pytest.mark.parametrize(("place", "seen"), [("go", 0), ("observed", 2), ("done", 6)])
def test_a_death_after_go_leaves_the_neighbour_its_record_marked(loose: Suites, place: str, seen: int) -> None:
    ended = loose.run([rogue("--at", place, "--do", "die")], "--users", 2)
    assert ended.returncode == 1
    dead, survivor = loose.records()
    assert dead["outcome"] == "failed"
    assert "SIGKILL" in dead["message"]
    assert len(dead["observations"]) == seen
    assert dead["train"] is None
    assert survivor["outcome"] == "completed"
    assert not survivor["comparable"]
    assert "neighbour_lost" in [one["rule"] for one in survivor["findings"] if one["severity"] == "error"]
    assert len(survivor["observations"]) == 6


def test_a_death_after_the_record_is_a_failure(loose: Suites) -> None:
    assert loose.run([rogue("--at", "record", "--do", "exit", 3)], "--users", 2).returncode == 1
    assert loose.outcomes() == ["failed", "completed"]
    assert "exit status 3" in loose.records()[0]["message"]


def test_leaving_without_a_record_is_a_failure_even_with_status_zero(loose: Suites) -> None:
    assert loose.run([rogue("--at", "done", "--do", "exit", 0)], "--users", 1).returncode == 1
    assert "before its record was complete" in loose.records()[0]["message"]


def test_a_real_time_signal_has_no_name(loose: Suites) -> None:
    assert loose.run([rogue("--at", "go", "--do", "die", 40)], "--users", 1).returncode == 1
    assert "killed by signal 40" in loose.records()[0]["message"]


def test_losses_that_are_not_finite_are_an_outcome(loose: Suites) -> None:
    assert loose.run([rogue("--nan")], "--users", 2).returncode == 1
    assert loose.outcomes() == ["nan", "completed"]
    assert loose.records()[0]["message"] == "2 of 9 losses were not finite."
    assert loose.records()[0]["batch_loss"] == [1.0, None]


@pytest.mark.parametrize("place", ["start", "hello"])
def test_a_hang_before_go_is_a_timeout_of_the_one_that_hangs(loose: Suites, place: str) -> None:
    ended = loose.run([rogue("--at", place, "--do", "hang")], "--users", 2, "--timeout", 3)
    assert ended.returncode == 1
    assert loose.outcomes() == ["timeout", "aborted"]
    assert "--timeout" in loose.records()[0]["message"]


def test_a_hang_during_the_load_costs_the_neighbour_nothing_but_the_comparison(loose: Suites) -> None:
    ended = loose.run([rogue("--at", "observed", "--do", "hang")], "--users", 2, "--timeout", 3)
    assert ended.returncode == 1
    assert loose.outcomes() == ["timeout", "completed"]
    assert not loose.records()[1]["comparable"]


def test_a_plain_program_that_hangs_is_a_timeout(loose: Suites) -> None:
    """What gives it longer is its own timeout: --timeout would have no effect."""
    ended = loose.run([job("plain.sh", "1000", timeout=1)], "--users", 2, "--timeout", 30, limit_s=20)
    assert (ended.returncode, loose.outcomes()) == (1, ["timeout", "timeout"])
    expected = "It was not finished after 1 s. Give it longer with 'timeout' in the job file."
    assert {record["message"] for record in loose.records()} == {expected}


def test_a_child_without_the_marker_does_not_keep_the_runner(loose: Suites) -> None:
    script(loose.folder / "bare.sh", "exec env -i /bin/sleep 1000")
    bare = {"name": "bare", "cmd": "./bare.sh", "args": {}, "cgroup": "student", "timeout": 1}
    assert loose.run([bare], "--users", 1, limit_s=20).returncode == 1
    assert loose.outcomes() == ["timeout"]


def test_what_a_tenant_says_of_its_failure_is_its_outcome(loose: Suites) -> None:
    words = ["--at", "go", "--do", "fail", "device_out_of_memory", "no", "room"]
    assert loose.run([rogue(*words)], "--users", 2, limit_s=40).returncode == 1
    assert loose.outcomes() == ["device_out_of_memory", "completed"]
    assert loose.records()[0]["message"] == "no room"


def test_tenants_that_disagree_on_the_work_all_fail(loose: Suites) -> None:
    assert loose.run([rogue("--repeat-of-mine", 9)], "--users", 2).returncode == 1
    assert loose.outcomes() == ["failed", "failed"]
    assert "disagree" in loose.records()[0]["message"]


def test_a_plain_program_beside_one_that_joined_is_named(loose: Suites) -> None:
    joining = f'exec {job("rogue.py")["cmd"]} "$@"'
    script(loose.folder / "mixed.sh", '[ "$JOB_ID" = 0 ] && exit 0', "sleep 0.3", joining)
    jobs = [{"name": "mixed", "cmd": "./mixed.sh", "args": {}, "cgroup": "student"}]
    assert loose.run(jobs, "--users", 2).returncode == 1
    assert loose.outcomes() == ["failed", "aborted"]
    assert "without joining the rendezvous" in loose.records()[0]["message"]


def test_a_program_that_wrote_nothing_has_an_empty_log(loose: Suites) -> None:
    script(loose.folder / "silent.sh", "exit 1")
    jobs = [{"name": "silent", "cmd": "./silent.sh", "args": {}, "cgroup": "student"}]
    assert loose.run(jobs, "--users", 1).returncode == 1
    assert loose.records()[0]["message"] == "It ended with exit status 1. Its log is empty."


def test_a_program_that_a_signal_ended_is_said_to_be_killed(loose: Suites) -> None:
    script(loose.folder / "killed.sh", "kill -XFSZ $$")
    jobs = [{"name": "killed", "cmd": "./killed.sh", "args": {}, "cgroup": "student"}]
    assert loose.run(jobs, "--users", 1).returncode == 1
    assert loose.records()[0]["message"] == "It was killed by SIGXFSZ. Its log is empty."


def test_a_script_without_its_interpreter_is_named(loose: Suites) -> None:
    script(loose.folder / "broken.sh").write_text("#!/no/such/interpreter\n")
    jobs = [{"name": "broken", "cmd": "./broken.sh", "args": {}, "cgroup": "student"}]
    assert loose.run(jobs, "--users", 1).returncode == 1
    assert "broken.sh could not be executed: No such file or directory." in loose.records()[0]["message"]


def test_missing_data_is_known_before_anything_starts(loose: Suites) -> None:
    jobs = with_data(loose.folder, "exit 4")
    assert loose.run(jobs, "--users", 2).returncode == 1
    assert loose.outcomes() == ["missing_data", "missing_data"]
    assert "exit status 4" in loose.records()[0]["message"]
    assert not list((loose.output / "logs").iterdir())


def test_what_a_maker_leaves_behind_does_not_disturb_a_launch(loose: Suites) -> None:
    left = 'setsid sleep 1000 & echo $! >"$BASE/left"'
    unless_it_lives = 'test -z "$(tr -d "\\0" <"/proc/$(cat "$BASE/left")/cmdline")"'
    jobs = with_data(loose.folder, left, "sleep 0.3", then=unless_it_lives)
    assert loose.run(jobs, "--users", 1).returncode == 0
    assert loose.outcomes() == ["completed"]


def test_raise_error_stops_after_the_first_launch_that_fails(loose: Suites) -> None:
    jobs = [job("plain.sh", "0", "5", name="bad"), job("plain.sh", "0", name="good")]
    assert loose.run(jobs, "--users", 1, "--raise-error").returncode == 1
    assert [record["name"] for record in loose.records()] == ["bad"]
    assert loose.run(jobs, "--users", 1).returncode == 1
    assert [record["name"] for record in loose.records()] == ["bad", "bad", "good"]


@pytest.mark.v1
@pytest.mark.parametrize("deed", ["hog", "worker-hog"])
def test_who_needs_too_much_after_go_dies_alone(v1: Suites, deed: str) -> None:
    ended = v1.run([rogue("--at", "observed", "--do", deed, repeat=20)], *small_slices(128))
    assert ended.returncode == 1
    hog, neighbour = v1.records()
    assert hog["outcome"] == "out_of_memory"
    assert "0.12 GiB" in hog["message"] or "0.13 GiB" in hog["message"]
    assert neighbour["outcome"] == "completed"
    assert len(neighbour["observations"]) == 20
    assert not neighbour["comparable"]


@pytest.mark.v1
def test_on_request_the_rest_of_a_tenant_goes_on_without_the_process_that_was_killed(v1: Suites) -> None:
    """It is out of memory all the same: its number is not that of the work that was asked for."""
    jobs = [rogue("--at", "observed", "--do", "worker-hog-and-go-on")]
    assert v1.run(jobs, "--on-oom", "process", *small_slices(128)).returncode == 1
    hog, neighbour = v1.records()
    assert hog["outcome"] == "out_of_memory"
    assert len(hog["observations"]) == 6
    assert hog["isolation"]["policies"]["on_oom"] == "process"
    assert neighbour["outcome"] == "completed"


@pytest.mark.v1
def test_each_tenant_has_a_dev_shm_of_its_own_which_goes_with_it(v1: Suites) -> None:
    """Both write the same name; what somebody else copies to the machine's meanwhile is none of theirs."""
    others = Path("/dev/shm", f"{v1.name}-others")
    try:
        others.write_bytes(bytes(1 << 20))
        jobs = [rogue("--at", "go", "--do", "fill-shm", v1.name, 3 << 20, who=None)]
        assert v1.run(jobs, "--users", 2).returncode == 0
        assert not Path("/dev/shm", v1.name).exists()
        for record in v1.records():
            assert f"['{v1.name}']" in Path(record["log"]).read_text()
            assert "shm_kept" not in record["meters"]
    finally:
        others.unlink(missing_ok=True)


def test_what_is_new_in_a_shared_dev_shm_is_reported(loose: Suites) -> None:
    left = Path("/dev/shm", loose.name)
    try:
        assert loose.run([rogue("--at", "go", "--do", "fill-shm", loose.name, 3 << 20)], "--users", 2).returncode == 0
        assert left.exists()
        for record in loose.records():
            assert record["meters"]["shm_kept"] == {"files": 1, "memory_bytes": 3 << 20}
            assert "shm_kept" in [finding["rule"] for finding in record["findings"]]
    finally:
        left.unlink(missing_ok=True)


def test_the_input_is_brought_into_the_state_that_was_asked_for(loose: Suites) -> None:
    jobs = with_data(loose.folder, 'mkdir -p "$BASE/data/x"; head -c 5000 /dev/zero >"$BASE/data/x/one"', then="exit 0")
    assert loose.run(jobs, "--users", 1, "--cache", "warm").returncode == 0
    (record,) = loose.records()
    assert record["isolation"]["policies"]["cache"] == "warm"
    treated = record["meters"]["input"]
    assert (treated["files"], treated["size_bytes"]) == (1, 5000)
    assert treated["cached_bytes"] in (8192, None)


@pytest.mark.v1
def test_who_needs_too_much_before_go_aborts_the_others(v1: Suites) -> None:
    assert v1.run([rogue("--at", "hello", "--do", "hog", who=1)], *small_slices(128)).returncode == 1
    aborted, hog = v1.records()
    assert hog["outcome"] == "out_of_memory"
    assert aborted["outcome"] == "aborted"
    assert "Tenant 1 ended before GO (out_of_memory)" in aborted["message"]


@pytest.mark.v1
def test_a_kill_beside_a_hog_is_not_the_hosts_lack_of_memory(v1: Suites) -> None:
    """The kernel's count of such kills holds the slices' own."""
    rogues = f'exec {job("rogue.py")["cmd"]} "$@"'
    script(
        v1.folder / "both.sh", f'[ "$JOB_ID" = 0 ] && {rogues} --at observed --do hog', f"{rogues} --at done --do die"
    )
    jobs = [{"name": "both", "cmd": "./both.sh", "args": {"--repeat": 20}, "cgroup": "student"}]
    assert v1.run(jobs, *small_slices(128)).returncode == 1
    assert v1.outcomes() == ["out_of_memory", "failed"]
    assert "killed by SIGKILL" in v1.records()[1]["message"]


@pytest.mark.v1
def test_too_much_is_answered_with_half_the_batch(v1: Suites) -> None:
    words = ["-c", "x = b'x' * (1 << 30)", "--batch-size", "64"]
    script(v1.folder / "py.sh", 'exec python3 "$@"')
    jobs = [{"name": "py", "cmd": "./py.sh", "args": {}, "cgroup": "student"}]
    assert v1.run(jobs, *small_slices(64), "--", *words).returncode == 1
    assert v1.records()[0]["message"].endswith("Try half the batch: -- --batch-size 32")


@pytest.mark.v1
@pytest.mark.parametrize("place", ["hello", "observed", "record"])
def test_children_do_not_outlive_their_tenant(v1: Suites, place: str) -> None:
    """Not even a daemon, nor one that has dropped the run's marker."""
    assert v1.run([rogue("--at", place, "--do", "children", who=None)], "--users", 2).returncode == 0
    assert v1.outcomes() == ["completed", "completed"]
    assert not v1.leftovers()


def test_what_the_runner_had_for_a_child_before_it_began_lives(loose: Suites) -> None:
    """As `tee` in `exec > >(tee log) 2>&1; exec ./run.sh`."""
    line = " ".join(
        map(shlex.quote, loose.line([job("plain.sh", "0"), job("plain.sh", "0", name="more")], "--users", 1))
    )
    shell = f"sleep 1000 & echo $! >{loose.folder}/pid; exec {line}"
    assert subprocess.run(["bash", "-c", shell], env=loose.environment, cwd=loose.folder, timeout=60).returncode == 0
    pid = int((loose.folder / "pid").read_text())
    assert loose.processes() == [pid]
    os.kill(pid, signal.SIGKILL)
    until(lambda: not loose.processes(), "its end")


def test_nor_without_cgroups(loose: Suites) -> None:
    """A daemon that has dropped the run's marker becomes a child of the runner when its parent ends."""
    jobs = [rogue("--at", "record", "--do", "children", who=None)]
    assert loose.run(jobs, "--users", 2, COTENANT_LEAVE_UNMARKED="yes").returncode == 0
    assert not loose.leftovers()
    assert not loose.here()


def test_a_package_missing_at_the_top_of_a_program_is_named(loose: Suites) -> None:
    program = loose.folder / "needy.sh"
    script(program, "exec python -c 'import torchvision_of_another_world.ops'")
    ended = loose.run([{"name": "needy", "cmd": str(program), "cgroup": "student"}], "--users", 1)
    assert ended.returncode == 1
    (record,) = loose.records()
    assert record["outcome"] == "missing_package"
    assert record["message"].endswith("pip install torchvision_of_another_world")
