#!/usr/bin/env python3
"""The benchmark of sums.py, of which tenant `--who` takes memory without end some seconds after GO."""

import os
import resource
import sys
import threading
import time
from typing import ClassVar

import sums

from cotenant.protocol.client import Rendezvous

MOST_BYTES = 2 << 30
"""Where no slice ends it, its own limit does."""


def hog(after_s: float) -> None:
    time.sleep(after_s)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    held = []
    try:
        while True:
            held.append(bytearray(b"x") * (8 << 20))
    except MemoryError:
        os._exit(1)


class Doomed(Rendezvous):
    after_s: ClassVar[float]

    def await_go(self) -> tuple[int, int, int]:
        word = super().await_go()
        threading.Thread(target=hog, args=[self.after_s], daemon=True).start()
        return word


def main() -> int:
    parser = sums.flags()
    parser.add_argument("--who", type=int, required=True)
    parser.add_argument("--after", type=float, required=True)
    given = parser.parse_args()
    Doomed.after_s = given.after
    kind = Doomed if int(os.environ["COTENANT_TENANT"]) == given.who else Rendezvous
    runner = kind.from_environment()
    assert runner is not None, "doomed.py is run by the runner"
    sums.measure(runner, given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
