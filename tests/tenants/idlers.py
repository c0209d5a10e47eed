#!/usr/bin/env python3
"""sums.py as two tenants that never load each other, and say that they do: `--idle` is how.

`turns`: tenant 1 sleeps in its first observation, which is skipped, until tenant 0 is done, and tenant 0 sleeps from
there to STOP. `done`: whoever is done sleeps. `none`: nobody does. They say that their load lasted a minute longer.
"""

import os
import time
from pathlib import Path

import sums

from cotenant.protocol.client import Rendezvous

DONE = Path(os.environ.get("OUTPUT_DIRECTORY", "/tmp"), "tenant-0-is-done")
TENANT = int(os.environ["COTENANT_TENANT"])


class Idler(Rendezvous):
    """Sleeps where a tenant has to work."""

    idle = "none"
    observed = 0

    def await_go(self) -> tuple[int, int, int]:
        DONE.unlink(missing_ok=True)
        go = super().await_go()
        if self.idle == "turns" and TENANT == 1:
            sums.observe = self.after_tenant_0
        return go

    def after_tenant_0(self, number: int, sleep_s: float, sums_n: int) -> tuple[int, int]:
        sums.observe = observe
        start_ns = time.perf_counter_ns()
        while not DONE.exists():
            time.sleep(0.01)
        return start_ns, observe(number, sleep_s, sums_n)[1]

    def done(self) -> None:
        super().done()
        if TENANT == 0:
            DONE.touch()
        while self.idle == "turns" and not self.stopped():
            time.sleep(0.01)

    def record(self, record: dict[str, object]) -> dict[str, object]:
        return super().record(record | {"load_end_ns": time.perf_counter_ns() + 60_000_000_000})


observe = sums.observe

if __name__ == "__main__":
    parser = sums.flags()
    parser.add_argument("--idle", default="none", choices=("none", "turns"))
    parser.add_argument("--slow", type=int, default=-1)
    given = parser.parse_args()
    runner = Idler.from_environment()
    runner.idle = given.idle
    if given.slow == TENANT:
        sums.BATCH *= 2
        given.sums *= 2
    sums.measure(runner, given)
