#!/usr/bin/env python3
"""A benchmark of known cost without torch: it spins until the clock has advanced by exactly the planted time.

    ./planted.py --repeat 20 --number 10 --batch-ms 4 --drift 0.1 --spike 12 --stall 15 --slow-tenant 1

An observation ends where it was planned to: on a busy machine, where the tenant sees that moment late, the rest of its
time lies between observations. So the planted rate is the true one anywhere.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from cotenant.protocol.client import Rendezvous, wait_until

ROWS = 32
SPIKE, LATE, SLOWER = 3.0, 2.0, 1.25


@dataclass(frozen=True)
class Planted:
    """The seconds of one observation, and how many of them it waited for its data."""

    seconds: float
    wait_s: float


def plan(given: argparse.Namespace, tenant: int) -> list[Planted]:
    """Return the seconds of each observation: a spike and a stall multiply them, a slow tenant is slow in all."""
    each_s = given.number * given.batch_ms / 1e3 * (SLOWER if tenant == given.slow_tenant else 1)
    made = []
    for index in range(given.repeat):
        # Work repeats to a thousandth, as it does on a quiet machine.
        seconds = each_s * (1 + (index * 7 % 11 - 5) / 5000) / (1 + given.drift * index / max(1, given.repeat - 1))
        wait_s = 0.02 * seconds
        if index in given.spike:
            seconds *= SPIKE
        if index in given.stall:
            wait_s += LATE * seconds
            seconds += LATE * seconds
        made.append(Planted(seconds, wait_s))
    return made


def flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--repeat", type=int, default=20)
    add("--number", type=int, default=10)
    add("--skip", type=int, default=2)
    add("--seed", type=int, default=0)
    add("--one-seed", action="store_true", help="say that the seed is 7, whatever was asked for")
    add("--batch-ms", type=float, default=4.0)
    add("--drift", type=float, default=0.0, help="how much the rate rises over the launch, 0.1 for 10 percent")
    add("--spike", type=int, nargs="*", default=[], help="observations that take three times as long")
    add("--stall", type=int, nargs="*", default=[], help="observations whose data come late")
    add("--slow-tenant", type=int)
    return parser


def spin(until_ns: int) -> None:
    while time.perf_counter_ns() < until_ns:
        pass


def measure(runner: Rendezvous, given: argparse.Namespace, planted: Sequence[Planted]) -> None:
    start_ns = time.perf_counter_ns()
    spin(start_ns + round(given.batch_ms * 1e6))
    runner.ready(given.number, given.repeat, given.skip, warm_up_ns=[time.perf_counter_ns() - start_ns])
    t0_ns, number, _ = runner.await_go()
    wait_until(t0_ns)
    for index, one in enumerate(planted):
        start_ns = time.perf_counter_ns()
        end_ns = start_ns + round(one.seconds * 1e9)
        spin(end_ns)
        runner.observation(
            index=index, start_ns=start_ns, end_ns=end_ns, items=number * ROWS, data_wait_ns=round(one.wait_s * 1e9)
        )
    runner.done()
    while not runner.stopped():
        spin(time.perf_counter_ns() + 1_000_000)
    seed = 7 if given.one_seed else given.seed
    arguments = {"repeat": given.repeat, "number": number, "batch_size": ROWS, "seed": seed, "workers": 1}
    load_end_ns = time.perf_counter_ns()
    runner.record({"arguments": arguments, "item": "row", "load_end_ns": load_end_ns, "observed": {"workers": 1}})


def main() -> int:
    given = flags().parse_args()
    runner = Rendezvous.from_environment()
    measure(runner, given, plan(given, int(os.environ["JOB_ID"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
