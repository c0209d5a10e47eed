#!/usr/bin/env python3
"""The job runner: `python run.py --jobs baselines.json`; `python run.py doctor` and the like for other commands.

./run.sh also makes the environment it needs.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))

from cotenant.__main__ import start

if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
