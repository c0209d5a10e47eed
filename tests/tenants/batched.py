#!/usr/bin/env python3
"""A benchmark without torch whose rate and memory follow from its batch: b / (2 ms + b / 10,000) items a second."""

import argparse
import sys
import time

from cotenant.protocol.client import Rendezvous, wait_until


def main() -> int:
    parser = argparse.ArgumentParser()
    for name, default in (("--batch-size", 4), ("--repeat", 8), ("--number", 8), ("--seed", 0)):
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--channels-last", action="store_true")
    given = parser.parse_args()
    size = given.batch_size
    held = b"x" * (size << 20)

    def observe(number: int) -> tuple[int, int]:
        start_ns = time.perf_counter_ns()
        time.sleep(number * (0.002 + 1e-4 * size))
        return start_ns, time.perf_counter_ns()

    runner = Rendezvous.from_environment()
    assert runner is not None
    start_ns, end_ns = observe(1)
    runner.ready(given.number, given.repeat, 2, warm_up_ns=[end_ns - start_ns])
    t0_ns, number, repeat = runner.await_go()
    wait_until(t0_ns)
    for index in range(repeat):
        start_ns, end_ns = observe(number)
        items = number * size
        runner.observation(index=index, start_ns=start_ns, end_ns=end_ns, items=items, data_wait_ns=0)
        if runner.enough():
            break
    runner.done()
    while not runner.stopped():
        observe(1)
    arguments = {name: value for name, value in vars(given).items() if name != "number"} | {"number": number}
    ignored = ["--channels-last"] if given.channels_last else []
    runner.record({"arguments": arguments, "ignored": ignored, "item": "row", "load_end_ns": time.perf_counter_ns()})
    return len(held) == 0


if __name__ == "__main__":
    sys.exit(main())
