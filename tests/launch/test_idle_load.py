"""Tenants that rest while others are observed: seen by their processor time, whatever they say of their load."""

from __future__ import annotations

import sys

import pytest

from cotenant.checkout import SOURCE_ROOT
from tenants.suites import Suites, errors, found, job

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
RUN = "import time\nwhile time.process_time() < 0.2: pass"


@pytest.mark.parametrize(("flag", "program", "item_s"), [("--again", STEPS, 0.01), ("--runs 6", RUN, 0.2)])
def test_a_program_that_ends_counts_with_all_its_starts(loose: Suites, flag: str, program: str, item_s: float) -> None:
    flags = f"{flag} --baseline none --budget 6"
    loose.executes(sys.executable, "-c", program, flags=flags, status=0)
    for record in loose.records():
        assert record["outcome"] == "completed", record["message"]
        # While a program starts again its neighbour has none, which `overlap` and `idle_load` say of a busy host.
        assert flag == "--again" or "idle_load" not in errors(record), record["meters"]["beside"]
        rows, seen = record["observations"], record["meters"]["beside"][record["tenant"]]
        # Of one start alone it would be a sixth; readings between which it is interpolated are up to a second apart.
        spun_s = sum(row["items"] for row in rows) * item_s
        assert seen["own"] > 0.25 * spun_s * 1e9 / sum(row["end_ns"] - row["start_ns"] for row in rows)


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
