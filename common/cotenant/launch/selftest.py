"""Asks a child whether torch works: the runner itself never imports it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from cotenant.checkout import SOURCE_ROOT
from cotenant.findings.facts import SelfTest
from cotenant.launch.tenant import signal_name

PROGRAM = SOURCE_ROOT / "cotenant/bench/selftest.py"
LIMIT_S = 120.0


def self_test(program: Path = PROGRAM, limit_s: float = LIMIT_S) -> SelfTest:
    """Return what the child found out, in about 3 s on a processor; initialising accelerators takes longer."""
    # -P: the program's directory must not stand on the path of what it imports.
    line = [sys.executable, "-P", str(program)]
    try:
        ended = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return SelfTest(died=f"did not end within {limit_s:g} s")
    if ended.returncode != 0:
        last = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2][:200]
        return SelfTest(died=f"ended ({signal_name(ended.returncode)}){f': {last}' if last else ''}")
    try:
        # What packages print while they are imported comes before.
        return msgspec.json.decode(ended.stdout.strip().rpartition(b"\n")[2], type=SelfTest)
    except msgspec.DecodeError:
        return SelfTest(died="printed no report")
