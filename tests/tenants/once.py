"""The text of a program that makes one observation, for launches in a test's own process."""

from __future__ import annotations

UNTIL_STOP = "while not runner.stopped(): time.sleep(0.01)"
PROGRAM = """#!/usr/bin/env python3
import os, socket, sys, time
from pathlib import Path
from cotenant.protocol.client import Rendezvous, RunnerGoneError, wait_until
tenant = os.environ["COTENANT_TENANT"]
{begin}
runner = Rendezvous.from_environment()
{joined}
runner.ready(1, 1, 0, [])
wait_until(runner.await_go()[0])
start_ns = time.perf_counter_ns()
{work}
runner.observation(index=0, start_ns=start_ns, end_ns=time.perf_counter_ns(), items=1, data_wait_ns=0)
runner.done()
{done}
runner.record({{}})
"""


def once(begin: str = "", joined: str = "", work: str = "", done: str = UNTIL_STOP) -> str:
    """Return the program that also does these: at its begin, once it has joined, in its observation and behind it."""
    return PROGRAM.format(begin=begin, joined=joined, work=work, done=done)
