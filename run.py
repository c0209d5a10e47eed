#!/usr/bin/env python3
"""The job runner: `python run.py --jobs baselines.json`. ./run.sh also makes the environment it needs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))

from cotenant.cli import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
