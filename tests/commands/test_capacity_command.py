"""`capacity`: calls that it refuses before anything starts, and the real runner on processors of known capacity."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from commands.calling import Capture, check_refusals
from cotenant.checkout import output_directory
from cotenant.commands import capacity
from cotenant.isolation.memory_shares import PAGE_BYTES, reserve_of
from cotenant.machine.topology import discover
from tenants.suites import RUN, Suites, job, until

REFUSED = {
    "": "Capacity is found for one job (--name), or for one command after --.",
    "--name vae -- true": "Capacity is found for one job (--name), or for one command after --.",
    "--name vae,wlm": "2 jobs are chosen.",
    "--name vae --keep 2": "'2' does not lie between 0 and 1",
    "--name vae --rate 0": "'0' is no rate",
    "--name vae --p95 0ms": "a time must be positive",
    "--name vae --keep 0.5 --rate 3": "not allowed with argument",
    "--name vae --share turns": "turns",
    "--name vae --users 0": "--users 0 leaves a slice without a user, of",
    "--name vae --users -3": "--users -3 leaves a slice without a user, of",
    "-- no-such-program": "'no-such-program' is no program that can be run.",
}


def test_a_wrong_call_is_refused_in_a_sentence(capsys: Capture) -> None:
    check_refusals(capsys, "capacity", REFUSED)


def test_capacity_records_lie_outside_the_output_directory() -> None:
    options = capacity._options(capacity.parser().parse_words(["--name", "vae"]), (), discover())
    assert not options.paths.output.is_relative_to(output_directory())


def finds(suites: Suites, *flags: object, limit_s: float) -> subprocess.CompletedProcess[str]:
    """Run `capacity` to its end, on the first two processors."""
    two = ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))
    line = ["taskset", "--cpu-list", two, *RUN, "capacity", "--isolation", suites.isolation]
    return suites.typed([*line, "--cgroup-base", suites.name, *map(str, flags)], limit_s)


@pytest.mark.slow
@pytest.mark.v1
def test_processor_time_limits_the_tenants_of_one_thread(v1: Suites) -> None:
    """Each of K users keeps 2 / K of its rate alone: four keep at least 0.42, five do not. Other work allows fewer."""
    jobs = v1.jobs([job("sums.py", "--repeat", 8, name="sums")])
    ended = finds(v1, "--jobs", jobs, "--keep", 0.42, "--budget", "4m", "--json", limit_s=600)
    document = json.loads(ended.stdout)
    (found,), estimates = document["rows"], document["parts"]["estimates"]["rows"]
    assert ended.returncode == (0 if found["settled"] else 1), ended.stderr
    assert 1 <= found["users"] <= 4
    assert found["memory_users"] > 100
    searched = {each["users"]: each["logs"][0] for each in estimates if each["over"] == "rounds"}
    assert searched[max(searched)] < searched[2]
    if found["settled"]:
        confirmed = {each["users"]: each["n"] for each in estimates if each["over"] == "launches"}
        assert all(confirmed[found["users"] + more] >= 3 for more in (0, 1) if found["users"] > 1)
    until(lambda: not v1.leftovers(), "nothing is left", 2)


@pytest.mark.slow
@pytest.mark.v1
def test_capacity_for_vae_on_one_slice_is_found_or_left_open(v1: Suites) -> None:
    ended = finds(v1, "--name", "vae", "--slices", 1, "--keep", 0.3, "--budget", "8m", "--json", limit_s=1200)
    (found,), machine = json.loads(ended.stdout)["rows"], discover()
    assert ended.returncode == (0 if found["settled"] else 1), ended.stderr
    assert found["alone_rate"] > 0
    room, peak = machine.memory_bytes - reserve_of(machine, None), found["alone_peak_bytes"]
    held = [users for users in range(1, 512) if room // users // PAGE_BYTES * PAGE_BYTES >= peak]
    assert found["memory_users"] == max(held)
    assert found["settled"] or found["answer"].startswith("No answer")
