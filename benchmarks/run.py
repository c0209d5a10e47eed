"""Everything the harness itself costs, side by side, in one run: `make bench`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PARTS = ("harness", "meeting", "start", "slices")


def main() -> int:
    names = sys.argv[1:] or PARTS
    source = os.pathsep.join(filter(None, [str(HERE.parent / "common"), os.environ.get("PYTHONPATH")]))
    print(f"{os.cpu_count()} processors, load average before: {os.getloadavg()[0]:.2f}", flush=True)
    for name in names:
        command = [sys.executable, str(HERE / f"{name}.py")]
        ended = subprocess.run(command, env=os.environ | {"PYTHONPATH": source}, check=False)
        if ended.returncode:
            return ended.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
