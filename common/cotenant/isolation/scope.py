"""What a scope of systemd's would give us: this file runs inside one, says it in a line of JSON, and ends.

Run as `python -I -S scope.py`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from cotenant.isolation.v2tree import controllers
    from cotenant.machine.limits import cgroup_mounts, memory_limit, quota_processors

    mounts = cgroup_mounts()
    own = mounts.own_path()
    said = {
        "controllers": [] if own is None else sorted(controllers(own / "cgroup.controllers")),
        "processors": sorted(os.sched_getaffinity(0)),
        "memory_bytes": memory_limit(mounts),
        "quota_processors": quota_processors(mounts),
    }
    print(json.dumps(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
