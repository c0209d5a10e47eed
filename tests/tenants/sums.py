#!/usr/bin/env python3
"""A benchmark without torch that joins a runner's rendezvous: one item is one sum of a thousand numbers.

    ./sums.py --repeat 5 --number 10

Every clock of the rendezvous is `time.perf_counter_ns`, which all processes of a host share.
"""

import argparse
import sys
import time

from cotenant.protocol.client import Rendezvous, wait_until

BATCH = 200


def step(sleep_s: float, sums: int = BATCH) -> None:
    time.sleep(sleep_s)
    for _ in range(sums):
        sum(range(1000))


def observe(number: int, sleep_s: float, sums: int = BATCH) -> tuple[int, int]:
    """Do `number` steps; return when they began and ended."""
    start_ns = time.perf_counter_ns()
    for _ in range(number):
        step(sleep_s, sums)
    return start_ns, time.perf_counter_ns()


def measure(runner: Rendezvous, given: argparse.Namespace) -> None:
    """Be measured beside the other tenants, from READY to the record."""
    start_ns, end_ns = observe(1, given.sleep, given.sums)
    runner.ready(given.number, given.repeat, min(5, given.repeat // 3), warm_up_ns=[end_ns - start_ns])
    # The runner waits for all tenants, and tells each the same moment and the same amount of work.
    t0_ns, number, repeat = runner.await_go()
    wait_until(t0_ns)
    while time.perf_counter_ns() < t0_ns + runner.settle_ns:
        observe(number, given.sleep, given.sums)
    for index in range(repeat):
        start_ns, end_ns = observe(number, given.sleep, given.sums)
        runner.observation(index=index, start_ns=start_ns, end_ns=end_ns, items=number * BATCH, data_wait_ns=0)
        # Its interval may be narrow enough, or its budget spent, before the last observation.
        if runner.enough():
            break
    runner.done()
    # The others may still be measured: the load goes on, untimed, until the runner says STOP.
    while not runner.stopped():
        step(given.sleep, given.sums)
    arguments = {"repeat": index + 1, "number": number, "batch_size": BATCH, "seed": given.seed}
    runner.record({"arguments": arguments, "item": "sum", "load_end_ns": time.perf_counter_ns()})


def flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=6)
    parser.add_argument("--number", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sleep", type=float, default=0.0, help="seconds that every step sleeps")
    parser.add_argument("--sums", type=int, default=BATCH, help="sums that a step makes, whatever it counts")
    return parser


def main() -> int:
    given = flags().parse_args()
    runner = Rendezvous.from_environment()
    if runner is None:
        for index in range(given.repeat):
            start_ns, end_ns = observe(given.number, given.sleep, given.sums)
            print(f"[{index}/{given.repeat}] {given.number * BATCH * 1e9 / (end_ns - start_ns):.0f} sums/s")
    else:
        measure(runner, given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
