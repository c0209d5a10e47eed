#!/usr/bin/env python3
"""sums.py whose rate and memory follow from its batch: b / (2 ms + b / 10,000) items a second, b MiB."""

import time

import sums

from cotenant.protocol.client import Rendezvous


class Batched(Rendezvous):
    ignored: tuple[str, ...] = ()

    def record(self, record: dict[str, object]) -> dict[str, object]:
        return super().record(record | {"item": "row", "ignored": [*self.ignored]})


def observe(number: int, *_: object) -> tuple[int, int]:
    start_ns = time.perf_counter_ns()
    time.sleep(number * (0.002 + 1e-4 * sums.BATCH))
    return start_ns, time.perf_counter_ns()


if __name__ == "__main__":
    parser = sums.flags()
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--channels-last", action="store_true")
    given = parser.parse_args()
    sums.BATCH, sums.observe = given.batch_size, observe
    held = b"x" * (given.batch_size << 20)
    runner = Batched.from_environment()
    runner.ignored = ("--channels-last",) if given.channels_last else ()
    sums.measure(runner, given)
