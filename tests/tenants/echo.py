#!/usr/bin/env python3
"""Prints its arguments, environment and place as one line of JSON, and ends. It never says hello."""

import json
import os
import sys

print(json.dumps({"argv": sys.argv[1:], "env": dict(os.environ), "processors": sorted(os.sched_getaffinity(0))}))
