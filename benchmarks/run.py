"""The costs of the harness itself, measured in one run: `make bench`.

python benchmarks/run.py [PART ...] [arguments of the last part]     for example: run.py tasks vae --pairs 40
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PARTS = ("harness", "tasks", "start", "commands", "plans")
NAMED = ("kept",)
"""Runs only if it is named, as it takes long."""


def main() -> int:
    given = sys.argv[1:]
    if given and given[0] in ("-h", "--help"):
        print(f"{__doc__}\nParts: {', '.join(PARTS)}; only where it is asked for: {', '.join(NAMED)}.")
        return 0
    rest = list(itertools.dropwhile((*PARTS, *NAMED).__contains__, given))
    names = given[: len(given) - len(rest)] or PARTS
    if given and names is PARTS:
        print(f"There is no part '{given[0]}'. Parts: {', '.join((*PARTS, *NAMED))}.", file=sys.stderr)
        return 2
    source = os.pathsep.join(filter(None, [str(HERE.parent / "common"), os.environ.get("PYTHONPATH")]))
    print(f"{os.cpu_count()} processors, load average before: {os.getloadavg()[0]:.2f}", flush=True)
    status = 0
    for name in names:
        command = [sys.executable, str(HERE / f"{name}.py"), *(rest if name == names[-1] else [])]
        ended = subprocess.run(command, env=os.environ | {"PYTHONPATH": source}, check=False)
        status = status or ended.returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
