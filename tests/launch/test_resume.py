"""A suite that was ended early goes on after its last finished launch."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from commands.calling import write
from cotenant.launch.resume import _progress
from cotenant.results.journal import Ended, Launched, Started, append, read_journal
from report.making import launch
from results.made import NOON, hashes
from tenants.suites import SUMS, Suites, job, script, until

NAMES = ("a", "b", "c")


def suite(sleep_s: float = 0.0) -> list[dict[str, Any]]:
    return [job("sums.py", "--repeat", 6, "--number", 2, "--sleep", sleep_s, name=name) for name in NAMES]


def identities(suites: Suites) -> list[tuple[str, int]]:
    return sorted((record["name"], record["tenant"]) for record in suites.records())


WHOLE = [(name, tenant) for name in NAMES for tenant in (0, 1)]


def gated(suites: Suites) -> list[dict[str, Any]]:
    """Jobs that say that they are there, and begin as soon as a file of their name is."""
    jobs = []
    for name in NAMES:
        gate = suites.folder / f"{name}.open"
        lines = (f': >"{suites.folder}/{name}.$JOB_ID"', f"until [ -e {gate} ]; do sleep 0.1; done", f'{SUMS} "$@"')
        command = script(suites.folder / f"{name}.sh", *lines)
        jobs.append(job("", "--repeat", 6, "--number", 2, name=name) | {"cmd": str(command)})
    return jobs


@pytest.mark.v1
def test_a_resumed_suite_ends_with_every_record_once(v1: Suites) -> None:
    flags, jobs = ("--users", 2, "--uid", 3), gated(v1)
    # In the middle of a launch whose neighbours in the suite have their records.
    for number, (done, at) in ((signal.SIGKILL, "ab"), (signal.SIGINT, "bc")):
        (v1.folder / f"{done}.open").touch()
        runner = v1.start(jobs, *flags, *(["--resume"] if at == "c" else []))
        for tenant in (0, 1):
            until((v1.folder / f"{at}.{tenant}").exists, f"user {tenant} of {at} is there")
        os.kill(runner.pid, number)
        runner.wait()
    (v1.folder / "c.open").touch()
    ended = v1.run(jobs, *flags, "--resume", status=0)
    assert "2 launches done, 1 to come" in ended.stdout
    assert "\n3/3 " in ended.stdout
    assert identities(v1) == WHOLE
    # The table also holds the launches before the interruption.
    assert all(re.search(rf"^{name} .* sum/s ", ended.stdout, re.M) for name in NAMES)
    assert len({record["suite_start_time"] for record in v1.records()}) == 1, "to its readers it is one run"
    entries = read_journal(v1.output).entries
    assert [type(entry) for entry in entries][-2:] == [Launched, Ended]
    assert {name for entry in entries if isinstance(entry, Launched) for name in entry.records} >= {
        path.name for path in v1.output.glob("*.json")
    }


def ended_on(folder: Path, *hosts: str) -> dict[str, str]:
    """Let hosts begin the suite, and the first end its launch; return the hashes of its records."""
    begun = (NOON - timedelta(minutes=1)).isoformat()
    for host in hosts:
        append(folder, Started(suite="baselines", uid=0, host=host, time=begun, launches=("vae",), conditions={}))
    files = hashes(write(folder, launch("vae", place={"suite_started": NOON}), journal=False).glob("*.json"))
    ended = Launched(suite="baselines", uid=0, label="vae", time=begun, outcomes=(), records=files, host=hosts[0])
    append(folder, ended)
    return files


def test_records_of_another_host_stay_and_do_not_count_as_done(tmp_path: Path) -> None:
    files = ended_on(tmp_path, "a", "b")
    # The line of a is about to be written; b was killed before it wrote its own.
    write(tmp_path, launch("wlm", place={"hostname": "a", "suite_started": NOON}), journal=False)
    files |= hashes(tmp_path.glob("*.wlm.*.json"))
    write(tmp_path, launch("cart", place={"hostname": "b", "suite_started": NOON}), journal=False)
    journal = read_journal(tmp_path)
    start = journal.last_start("baselines", 0, "b")
    assert start is not None
    assert _progress(journal, start, [], tmp_path).finished == frozenset()
    assert {path.name for path in tmp_path.glob("*.json")} == set(files)


@pytest.mark.parametrize(
    "damaged",
    [
        lambda record: None,
        lambda record: record | {"start_time": "yesterday"},
        lambda record: record | {"suite_start_time": "2026-11-28T10:00:00"},
    ],
    ids=["gone", "no time", "no time zone"],
)
def test_unreadable_records_of_a_finished_launch_are_named(
    tmp_path: Path, damaged: Callable[[dict[str, Any]], dict[str, Any] | None]
) -> None:
    gone = min(ended_on(tmp_path, "node1"))
    if (record := damaged(json.loads((tmp_path / gone).read_bytes()))) is None:
        (tmp_path / gone).unlink()
    else:
        (tmp_path / gone).write_text(json.dumps(record))
    journal = read_journal(tmp_path)
    start = journal.last_start("baselines", 0, "node1")
    assert start is not None
    state = _progress(journal, start, [], tmp_path)
    assert (state.finished, len(state.records), state.lost) == (frozenset({"vae"}), 1, (gone,))
    assert state.sentences[-1].startswith(
        f"1 record of these launches cannot be read, which are not made again: {gone}."
    )


@pytest.mark.slow
@pytest.mark.v1
def test_twenty_random_kills_do_not_change_the_set_of_records(v1: Suites) -> None:
    chance, kills = random.Random(7), 0
    while kills < 20:
        v1.output.mkdir(parents=True, exist_ok=True)
        runner = v1.start(suite(0.02), "--users", 2, "--resume", "--uid", kills // 4)
        deadline = time.monotonic() + chance.uniform(0.0, 3.0)
        while runner.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        runner.send_signal(chance.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM]))
        runner.wait()
        kills += 1
    for uid in range(5):
        v1.run(suite(0.02), "--users", 2, "--resume", "--uid", uid, status=0)
    found = sorted((record["run_id"], record["name"], record["tenant"]) for record in v1.records())
    assert found == [(uid, name, tenant) for uid in range(5) for name, tenant in WHOLE]
