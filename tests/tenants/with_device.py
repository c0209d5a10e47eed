#!/usr/bin/env python3
"""The runner on this host as if it had devices of NVIDIA's: `with_device.py COUNT WORDS`. No driver is there to ask."""

import sys
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "common"), str(ROOT / "tests")]

if __name__ == "__main__":
    from cotenant import cli
    from cotenant.commands import suite_run
    from machine.invented import device

    host = suite_run.discover()
    machine = replace(host, accelerators=tuple(map(device, range(int(sys.argv[1])))))
    suite_run.discover = lambda: machine
    sys.exit(cli.main(sys.argv[2:]))
