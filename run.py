#!/usr/bin/env python3
"""The job runner: `python run.py --jobs baselines.json`; `python run.py doctor` and the like for other commands.

./run.sh also makes the environment it needs.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))

from cotenant.__main__ import start

if __name__ == "__main__":
    words = sys.argv[1:]
    # The runner takes flags only: any other first word is a command, or meant to be one.
    sys.exit(start(["run", *words] if not words or (words[0].startswith("-") and words[0] != "--version") else words))
