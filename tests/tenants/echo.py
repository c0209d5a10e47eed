#!/usr/bin/env python3
"""Prints its arguments, environment and place as one line of JSON, and becomes sums.py."""

import json
import os
import sys
from pathlib import Path

print(
    json.dumps({"argv": sys.argv[1:], "env": dict(os.environ), "processors": sorted(os.sched_getaffinity(0))}),
    flush=True,
)
os.execv(sys.executable, [sys.executable, str(Path(__file__).with_name("sums.py"))])
