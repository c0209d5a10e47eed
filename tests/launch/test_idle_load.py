"""Tenants that rest while others are observed: seen by their processor time, whatever they say of their load."""

from __future__ import annotations

import sys

import pytest

from cotenant.checkout import SOURCE_ROOT
from tenants.suites import Suites, errors, found, job, processor_share

HONEST = {"even": (), "slow": ("--slow", 1), "asleep": ("--sleep", 0.004)}


STEPS = f"""
import sys, time
sys.path.insert(0, {str(SOURCE_ROOT)!r})
import cotenant
with cotenant.measure() as measured:
    for _ in range(100):
        until = time.process_time() + 0.01
        while time.process_time() < until: pass
        measured.step()
"""


@pytest.mark.slow
def test_a_program_that_is_started_again_counts_with_all_starts(loose: Suites) -> None:
    """tests/launch/test_exec.py has a command that is measured by whole runs."""
    loose.executes(sys.executable, "-c", STEPS, flags="--again --baseline none --budget 6", status=0)
    for record in loose.records():
        assert record["outcome"] == "completed", record["message"]
        assert processor_share(record, 0.01) > 0.25


@pytest.mark.slow
@pytest.mark.parametrize("suites", ["v1", "loose"], indirect=True)
def test_tenants_that_never_load_each_other_are_invalid(suites: Suites) -> None:
    """Their reported overlap is 1; honest ones that end early, or wait for their input, are not accused."""
    # Over a second beside others also where a processor is fast: of less than half a second nothing is said.
    amount = ("--repeat", 12, "--number", 60)
    jobs = [job("idlers.py", "--idle", "turns", *amount, name="turns")]
    jobs += [job("idlers.py", *words, *amount, name=name) for name, words in HONEST.items()]
    suites.run(jobs, "--users", 2)
    records = suites.by_job()
    for record in records["turns"]:
        assert record["outcome"] == "completed", record["message"]
        assert record["rendezvous"]["overlap"] == 1.0
        (idle,) = found(record, "idle_load")
        assert (idle["severity"], idle["value"] < 0.3, idle["effect"] > 0.3) == ("error", True, True), idle
    for name in HONEST:
        for record in records[name]:
            # On a busy machine a tenant may have lost half of its processor time: a warning is all that it may get.
            assert "idle_load" not in errors(record), (name, record["meters"]["beside"])
            assert len(record["meters"]["beside"]) == 2
    (ended_early, _) = records["slow"][0]["meters"]["beside"]
    assert ended_early["beside_s"] > 0.3
