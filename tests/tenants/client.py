#!/usr/bin/env python3
"""sums.py as a client of MPS: it finds its daemon, meets its neighbours in /dev/shm, and states one of them.

--sees mps|time is its statement. Its findings are in its record's metrics.
"""

import os
from pathlib import Path

import sums

from cotenant.protocol.client import Rendezvous

SHM = Path("/dev/shm")


class Client(Rendezvous):
    sees = "mps"

    def record(self, record: dict[str, object]) -> None:
        found = {
            "daemon": (Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/none")) / "control").exists(),
            "daemon_shm": (SHM / "of-the-daemon").exists(),
            "neighbours": len(list(SHM.glob("of-tenant-*"))),
            "percent": os.environ.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "0"),
        }
        observed = {"device": "cuda:0", "mps": self.sees == "mps", "device_share": {"memory_fraction": None}}
        super().record(
            record | {"metrics": {name: float(value) for name, value in found.items()}, "observed": observed}
        )


if __name__ == "__main__":
    parser = sums.flags()
    parser.add_argument("--sees", default="mps")
    given = parser.parse_args()
    (SHM / f"of-tenant-{os.environ['COTENANT_TENANT']}").touch()
    runner = Client.from_environment()
    runner.sees = given.sees
    sums.measure(runner, given)
