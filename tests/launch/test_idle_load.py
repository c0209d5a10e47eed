"""Tenants that rest while others are observed: seen by their processor time, whatever they say of their load."""

from __future__ import annotations

import os
import threading
import time

import pytest

from cotenant.launch.work import ProcessClocks
from cotenant.results.build import Statement
from results.made import T0_NS, a_part, steady
from tenants.suites import Suites, errors, found, job

HONEST = {"even": (), "slow": ("--slow", 1), "asleep": ("--sleep", 0.004)}


def test_no_load_goes_on_behind_stop() -> None:
    rows = steady()
    stop_ns = rows[-1].end_ns + 5
    for said_ns, end_ns in ((stop_ns + 10**12, stop_ns), (stop_ns - 1, stop_ns - 1), (0, rows[-1].end_ns)):
        statement = Statement(observations=rows, part=a_part(load_end_ns=said_ns), stop_ns=stop_ns)
        assert statement.load() == (T0_NS, end_ns)
    # A benchmark alone has no runner that could say STOP.
    assert Statement(observations=rows, part=a_part(load_end_ns=stop_ns + 7)).load() == (T0_NS, stop_ns + 7)


def test_a_process_is_read_with_all_its_threads_and_counts_on_when_it_has_ended() -> None:
    clocks = ProcessClocks([os.getpid()])
    begin_ns, own_ns = clocks.processor_ns(), time.process_time_ns()
    worker = threading.Thread(target=lambda: sum(range(300_000)))
    worker.start()
    worker.join()
    used_ns, own_ns = clocks.processor_ns() - begin_ns, time.process_time_ns() - own_ns
    assert 0 < used_ns <= own_ns + 1_000_000
    gone = os.spawnlp(os.P_NOWAIT, "true", "true")
    clocks = ProcessClocks([os.getpid(), gone])
    clocks.processor_ns()
    os.waitpid(gone, 0)
    before_ns = clocks.processor_ns()
    assert clocks.processor_ns() >= before_ns


@pytest.mark.slow
@pytest.mark.parametrize("suites", ["v1", "loose"], indirect=True)
def test_tenants_that_never_load_each_other_are_invalid(suites: Suites) -> None:
    """Their reported overlap is 1; honest ones that end early, or wait for their input, are not accused."""
    # Over a second beside others also where a processor is fast: of less than half a second nothing is said.
    amount = ("--repeat", 12, "--number", 60)
    jobs = [job("idlers.py", "--idle", "turns", *amount, name="turns")]
    jobs += [job("idlers.py", *words, *amount, name=name) for name, words in HONEST.items()]
    suites.run(jobs, "--users", 2, limit_s=120)
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
